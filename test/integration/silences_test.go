package integration

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// serveTold serves a destination. told returns the titles and texts that it has got.
func serveTold(t *testing.T) (s *httptest.Server, told func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	s = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m struct{ Title, Message string }
		if json.NewDecoder(r.Body).Decode(&m) == nil {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, m.Title+"\n"+m.Message)
		}
	}))
	t.Cleanup(s.Close)
	return s, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// TestSilencePostgres makes a silence at one of two gateways that share a database. It
// holds at the other one after a second, and what is open when it ends is told once.
func TestSilencePostgres(t *testing.T) {
	t.Parallel()
	p := newPostgres(t)
	destination, all := serveTold(t)
	key := "key ops {\nurl json" + strings.TrimPrefix(destination.URL, "http") + "/\n}"
	site := "console {\nmanage open\n}"
	a, b := newQueueGatewayWith(t, p, key, site), newQueueGatewayWith(t, p, key, site)
	post := func(g *queueGateway, path string, fields url.Values) (status int, text string) {
		t.Helper()
		resp, err := http.PostForm(g.url+path, fields)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}
	alert := func(g *queueGateway, typ, incident string) string {
		t.Helper()
		_, text := post(g, "/notify/ops", url.Values{"title": {incident + " is " + typ}, "body": {"x"}, "type": {typ}, "incident": {incident}})
		return text
	}
	alert(b, "failure", "known")
	status, text := post(a, "/notify/ops/silences", url.Values{"for": {"1h"}, "tag": {"all"}})
	var silence struct{ ID string }
	if err := json.Unmarshal([]byte(text), &silence); err != nil || status != http.StatusCreated {
		t.Fatalf("status %d %s", status, text)
	}
	eventually(t, "the other gateway knows the silence", func() bool {
		_, text := post(b, "/notify/ops", url.Values{"body": {"probe"}})
		return strings.Contains(text, "a silence matches it")
	})
	before := len(all())
	alert(a, "failure", "over")
	alert(b, "success", "over")
	alert(b, "failure", "open-1")
	alert(a, "failure", "open-2")
	if got := all(); len(got) != before {
		t.Fatalf("told during the silence: %q", got[before:])
	}
	alert(a, "success", "known")
	if got := all(); len(got) != before+1 || !strings.HasPrefix(got[before], "known is success") {
		t.Fatalf("the end of what was known is not told: %q", got[before:])
	}
	if status, answer := ask(t, request(t, http.MethodDelete, b.url+"/notify/ops/silences/"+silence.ID, "")); status != http.StatusOK {
		t.Fatalf("ending the silence: %d %s", status, answer)
	}
	eventually(t, "what is open is told", func() bool { return len(all()) > before+1 })
	eventually(t, "both gateways send again", func() bool {
		_, x := post(a, "/notify/ops", url.Values{"body": {"again"}})
		_, y := post(b, "/notify/ops", url.Values{"body": {"again"}})
		return !strings.Contains(x+y, "a silence matches it")
	})
	digests := slices.DeleteFunc(all()[before+1:], func(x string) bool { return strings.Contains(x, "again") })
	if len(digests) != 1 || !strings.Contains(digests[0], "2 failures") ||
		!strings.Contains(digests[0], "open-1") || !strings.Contains(digests[0], "open-2") {
		t.Errorf("told %q", digests)
	}
}

// TestPlannedSilencePostgres checks that two gateways that share a database tell the beginning
// and the end of a silence once, and have the silences of the configuration and planned ones.
func TestPlannedSilencePostgres(t *testing.T) {
	t.Parallel()
	p := newPostgres(t)
	destination, told := serveTold(t)
	count := func(beginning string) (n int) {
		for _, x := range told() {
			if strings.HasPrefix(x, beginning) {
				n++
			}
		}
		return n
	}
	now := time.Now().UTC()
	window := now.Add(-time.Hour).Format("15:04") + "-" + now.Add(time.Hour).Format("15:04")
	key := "key ops {\nurl json" + strings.TrimPrefix(destination.URL, "http") +
		"/\nsilence " + window + " UTC {\ntitle window\nreason backups\ntell\n}\n}"
	site := "console {\nmanage open\n}"
	a, b := newQueueGatewayWith(t, p, key, site), newQueueGatewayWith(t, p, key, site)
	post := func(g *queueGateway, path string, fields url.Values) string {
		t.Helper()
		resp, err := http.PostForm(g.url+path, fields)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return string(body)
	}
	eventually(t, "the silence of the configuration is told", func() bool { return count("A silence has begun: backups") > 0 })
	for _, g := range []*queueGateway{a, b} {
		if text := post(g, "/notify/ops", url.Values{"title": {"window"}, "body": {"x"}}); !strings.Contains(text, "a silence matches it") {
			t.Errorf("in the window: %s", text)
		}
	}
	var made struct{ ID string }
	begin := time.Now().Add(2 * time.Second)
	text := post(a, "/notify/ops/silences", url.Values{
		"from": {begin.Format(time.RFC3339Nano)}, "for": {"1h"},
		"title": {"disk"}, "reason": {"disks"}, "tell": {"yes"},
	})
	if err := json.Unmarshal([]byte(text), &made); err != nil || !strings.Contains(text, `"planned"`) {
		t.Fatalf("planned: %s", text)
	}
	eventually(t, "the planned silence is told", func() bool { return count("A silence has begun: disks") > 0 })
	eventually(t, "it holds at the other gateway", func() bool {
		return strings.Contains(post(b, "/notify/ops", url.Values{
			"title": {"disk is full"}, "body": {"x"}, "type": {"failure"}, "incident": {"disk"},
		}), "a silence matches it")
	})
	if status, answer := ask(t, request(t, http.MethodDelete, b.url+"/notify/ops/silences/"+made.ID, "")); status != http.StatusOK {
		t.Fatalf("ending the silence: %d %s", status, answer)
	}
	eventually(t, "what is open is told", func() bool { return count("disk is full") > 0 })
	eventually(t, "the end is told", func() bool { return count("A silence has ended: disks\nIt began ") > 0 })
	if n, m, o := count("A silence has begun: backups"), count("A silence has begun: disks"),
		count("A silence has ended"); n != 1 || m != 1 || o != 1 {
		t.Errorf("told %d, %d and %d times", n, m, o)
	}
}
