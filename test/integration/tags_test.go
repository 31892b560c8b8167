package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// tagCase is a message to destinations whose tags have numbers.
type tagCase struct {
	Destinations []tagDestination `json:"destinations"`
	Request      [][]string       `json:"request"` // terms of an OR of ANDs
}

type tagDestination struct {
	Name     string   `json:"name"` // one that begins with bad fails
	Tags     []string `json:"tags"`
	Optional bool     `json:"optional"`
}

// tagOutcome is who got the message, sorted, and whether that is a success.
type tagOutcome struct {
	Got []string `json:"got"`
	OK  bool     `json:"ok"`
}

// TestNumbersInTags sends random messages with Apprise and with the gateway. The
// same destinations get them, as often, and the outcome is the same.
func TestNumbersInTags(t *testing.T) {
	python := program(t, "python3", "python3")
	if out, err := exec.Command(python, "-c", "import apprise").CombinedOutput(); err != nil {
		t.Skipf("the Python module apprise is not installed: %s", out)
	}
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(texts ...string) string { return texts[random.IntN(len(texts))] }
	var cases []tagCase
	for range 1000 {
		var c tagCase
		for i := range 1 + random.IntN(5) {
			d := tagDestination{Name: fmt.Sprintf("%s%d", pick("good", "good", "bad"), i), Optional: random.IntN(6) == 0}
			for _, name := range []string{"ops", "db", "always"} {
				if random.IntN(2) == 0 && (name != "always" || random.IntN(4) == 0) {
					d.Tags = append(d.Tags, pick("", "1:", "1:", "2:", "3:")+name)
				}
			}
			c.Destinations = append(c.Destinations, d)
		}
		for range 1 + random.IntN(2) {
			term := []string{pick("", "", "", "1:", "2:") + pick("ops", "db") + pick("", "", "", ":0", ":1")}
			if random.IntN(4) == 0 {
				term = append(term, pick("ops", "db"))
			}
			c.Request = append(c.Request, term)
		}
		cases = append(cases, c)
	}
	var in bytes.Buffer
	for _, c := range cases {
		if err := json.NewEncoder(&in).Encode(c); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(python, "tags_apprise.py")
	cmd.Stdin = &in
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if strings.Contains(errs.String(), "has no numbers in tags") {
		t.Skip(errs.String())
	}
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	theirs := json.NewDecoder(bytes.NewReader(out))
	send := newTagSender(t)
	for _, c := range cases {
		var want tagOutcome
		if err := theirs.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if got, ok := send(c); ok && (got.OK != want.OK || !slices.Equal(got.Got, want.Got)) {
			t.Errorf("%v to %+v: %+v, and with Apprise %+v", c.Request, c.Destinations, got, want)
		}
	}
}

// newTagSender returns a function that sends a message as the gateway does. It
// reports false if the tags match no destination.
func newTagSender(t *testing.T) func(c tagCase) (out tagOutcome, ok bool) {
	var mu sync.Mutex
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.Trim(r.URL.Path, "/")
		mu.Lock()
		got = append(got, name)
		mu.Unlock()
		if strings.HasPrefix(name, "bad") {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(server.Close)
	s := newSender(t)
	return func(c tagCase) (out tagOutcome, ok bool) {
		var targets []notifier.Target
		for _, d := range c.Destinations {
			query := "?wait=0"
			if d.Optional {
				query += "&optional=yes"
			}
			to, err := s.Parse("json://"+strings.TrimPrefix(server.URL, "http://")+"/"+d.Name+query, nil)
			if err != nil {
				t.Fatal(err)
			}
			targets = append(targets, notifier.Target{Destination: to, Tags: d.Tags})
		}
		defer func(all []notifier.Target) {
			for _, t := range all {
				s.Release(t.Destination)
			}
		}(targets)
		var terms []string
		for _, term := range c.Request {
			terms = append(terms, strings.Join(term, " "))
		}
		e, err := notifier.ParseTags(strings.Join(terms, ","))
		if err != nil {
			t.Fatal(err)
		}
		if targets = e.Select(targets); len(targets) == 0 {
			return out, false
		}
		got = nil
		report := s.Send(context.Background(), &notifier.Message{Body: "x"}, targets, notifier.Options{})
		slices.Sort(got)
		return tagOutcome{got, report.OK()}, true
	}
}
