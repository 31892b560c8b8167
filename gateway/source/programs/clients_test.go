package programs

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/gateway/source/programs/internal/compose"
	"github.com/caddy-notify/caddy-notify/internal/golden"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// clientRequest is a request of a client of an API, from testdata/clients.
type clientRequest struct {
	name, source string
	source.Request
}

// clientRequests reads a file with requests of clients, separated by lines with ===.
// Each begins with comments, the first of which is its name. The path begins with the
// source.
func clientRequests(t *testing.T, file string) (out []clientRequest) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(string(data), "\n===\n") {
		var c clientRequest
		for strings.HasPrefix(part, "#") {
			comment, rest, _ := strings.Cut(part, "\n")
			if c.name == "" {
				c.name = strings.TrimSpace(comment[1:])
			}
			part = rest
		}
		head, body, _ := strings.Cut(part, "\n\n")
		line, headers, _ := strings.Cut(strings.TrimSuffix(head, "\n"), "\n")
		method, target, ok := strings.Cut(line, " ")
		u, err := url.Parse(target)
		if !ok || err != nil {
			t.Fatalf("%s: %q: %v", file, line, err)
		}
		c.Method, c.Query, c.Header = method, u.Query(), http.Header{}
		c.source, c.Path, _ = strings.Cut(u.Path, "/")
		_, c.RawPath, _ = strings.Cut(u.EscapedPath(), "/")
		c.Address, c.Time = "https://alerts.example.com/notify/ops/"+c.source, time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
		if headers != "" {
			h, err := textproto.NewReader(bufio.NewReader(strings.NewReader(headers + "\n\n"))).ReadMIMEHeader()
			if err != nil {
				t.Fatalf("%s: %s: %v", file, c.name, err)
			}
			c.Header = http.Header(h)
		}
		c.Body = []byte(strings.TrimSuffix(body, "\n"))
		out = append(out, c)
	}
	return out
}

// TestClients checks the messages that requests of the clients of APIs make, and the
// answers to them.
func TestClients(t *testing.T) {
	files, err := filepath.Glob("testdata/clients/*.http")
	if err != nil || len(files) == 0 {
		t.Fatal("no requests", err)
	}
	for _, file := range files {
		var b strings.Builder
		for _, c := range clientRequests(t, file) {
			s := withImages(t, c.source)
			fmt.Fprintf(&b, "=== %s\n", c.name)
			if !slices.Contains(s.Methods(c.Path), c.Method) {
				t.Errorf("%s: %s: the address has the methods %v", file, c.name, s.Methods(c.Path))
				continue
			}
			o := source.Outcome{Status: http.StatusOK, ID: c.name, Time: c.Time, Request: &c.Request}
			var err error
			if o.Message, err = s.Read(t.Context(), &c.Request); err != nil {
				e, ok := errors.AsType[*source.Error](err)
				if !ok {
					t.Fatalf("%s: %s: %v", file, c.name, err)
				}
				o.Status, o.Error, o.Code, o.ID = e.Status, e.Error(), e.Code, ""
			} else {
				b.WriteString(goldenText(o.Message))
			}
			reply := s.Reply(o)
			if reply == nil {
				t.Fatalf("%s: %s: no answer", file, c.name)
			}
			fmt.Fprintf(&b, "--- %d %s\n%s\n", reply.Status, reply.ContentType, strings.TrimSuffix(string(reply.Body), "\n"))
		}
		golden.Check(t, strings.TrimSuffix(file, ".http")+".golden", b.String())
	}
}

// TestIDs checks that messages of the same moment have different IDs, and that a
// message that is sent again has the same one. Without a queue, messages have no ID.
func TestIDs(t *testing.T) {
	o := source.Outcome{
		Time:    time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC),
		Request: &source.Request{Path: "1/TOKEN", Query: url.Values{"wait": {"true"}}}, Message: &source.Message{},
	}
	replies := map[string]func(source.Outcome) source.Reply{"ntfy": replyNtfy, "gotify": replyGotify, "discord": replyDiscord}
	for name, reply := range replies {
		id := func(o source.Outcome) any {
			v, err := payload.Decode(reply(o).Body)
			if err != nil {
				t.Fatal(err)
			}
			return payload.Get(v, "id")
		}
		seen := map[any]bool{}
		for range 5 {
			seen[id(o)] = true
		}
		if len(seen) < 4 { // of Gotify's IDs, two in a few thousand may be equal
			t.Errorf("%s: the IDs are %v", name, seen)
		}
		again := o
		again.ID = "019a9c1e-7c00-7000-8000-000000000000"
		if a, b := id(again), id(again); a != b || a == nil {
			t.Errorf("%s: a message has the IDs %v and %v", name, a, b)
		}
	}
	o.Time = time.Date(2080, 1, 1, 0, 0, 0, 0, time.UTC)
	if id := compose.NumericID(o, 12); id >= 1<<53 {
		t.Errorf("the ID %d of Gotify is no exact floating-point number", id)
	}
}

// TestHostileClients checks that requests to all endpoints with missing fields, wrong
// types and garbage make a message or an error with a status of 4xx, and have an answer.
func TestHostileClients(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/clients/*.http")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range racetest.Part(files, 5) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			seen := map[string]bool{}
			for _, c := range clientRequests(t, file) {
				s := withImages(t, c.source)
				try := func(r source.Request) {
					r.Payload = nil
					check(t, c.name, s, &r)
					o := source.Outcome{Status: http.StatusOK, Time: r.Time, Request: &r}
					var err error
					if o.Message, err = s.Read(t.Context(), &r); err != nil {
						o.Status, o.Error = http.StatusBadRequest, err.Error()
					}
					if reply := s.Reply(o); reply == nil || reply.Status < 200 || reply.Status > 499 {
						t.Errorf("%s: %.200s: the answer is %+v", c.name, r.Body, reply)
					}
				}
				for _, body := range []string{
					"", "{", "[]", "null", `"x"`, "\xff", "a=b&c", `{"a":` + strings.Repeat("[", 500),
					strings.Repeat("x;,=\"'", 1000),
				} {
					r := c.Request
					r.Body = []byte(body)
					try(r)
					for name := range c.Header {
						r.Header = c.Header.Clone()
						r.Header.Set(name, body)
						try(r)
					}
					for name := range c.Query {
						r.Header, r.Query = c.Header, url.Values{name: {body}}
						try(r)
					}
				}
				data, err := payload.Decode(c.Body)
				if object, ok := data.(map[string]any); err != nil || !ok || len(object) == 0 {
					continue
				}
				for _, variant := range hostileVariants(data, seen) {
					r := c.Request
					r.Body = []byte(payload.Encode(variant))
					try(r)
				}
			}
		})
	}
}

// TestEcho checks that an answer does not repeat a long value, which would stay in memory
// until the message is delivered.
func TestEcho(t *testing.T) {
	var m source.Message
	compose.Echo(&m, "short", "x")
	compose.Echo(&m, "long", []any{strings.Repeat("x", compose.MaxEcho)})
	compose.Echo(&m, "empty", "")
	compose.Echo(&m, "none", nil)
	if len(m.Echo) != 1 || m.Echo["short"] != "x" {
		t.Errorf("the answer repeats %d values", len(m.Echo))
	}
}

// TestManyDetails checks that an alert has a bounded number of details, and says how many
// it leaves out.
func TestManyDetails(t *testing.T) {
	details := map[string]any{}
	for i := range 5000 {
		details[fmt.Sprintf("name%04d", i)] = "value"
		if i%2 == 0 {
			details[fmt.Sprintf("name%04d", i)] = fmt.Sprint("value ", i)
		}
	}
	var l compose.Lines
	l.Details(details)
	if len(l.Parts) != compose.MaxFacts+1 || l.Parts[0] != "name0000: value 0" || l.Parts[compose.MaxFacts] != "and 4951 more" {
		t.Errorf("%d lines: %q", len(l.Parts), l.Parts)
	}
}
