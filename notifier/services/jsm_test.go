package services

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// jsmServer keeps alerts. It names them otherwise than the requests that have
// raised them, and refuses to act upon what it does not know.
type jsmServer struct {
	mu     sync.Mutex
	alerts int
	steps  []string
}

func (s *jsmServer) RoundTrip(q *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimPrefix(q.URL.Path, "/v2/alerts")
	code, body := 202, `{"requestId":"step"}`
	request, isStatus := strings.CutPrefix(path, "/requests/request-")
	alert, step, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch {
	case path == "":
		s.alerts++
		body = fmt.Sprintf(`{"requestId":"request-%d"}`, s.alerts)
	case isStatus:
		code, body = 200, fmt.Sprintf(`{"data":{"alertId":"alert-%s"}}`, request)
	case strings.HasPrefix(alert, "request-"):
		code, body = 404, `{"message":"no such alert"}`
	default:
		var payload struct{ Note string }
		if q.Body != nil {
			_ = json.NewDecoder(q.Body).Decode(&payload)
		}
		s.steps = append(s.steps, strings.Join([]string{q.Method, alert, step, q.URL.Query().Get("identifierType"), payload.Note}, " "))
	}
	return &http.Response{StatusCode: code, Request: q, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}}, nil
}

// TestJSMFollow sends messages to an Opsgenie URL one after the other.
func TestJSMFollow(t *testing.T) {
	for _, c := range []struct {
		name, url string
		types     string // of the messages: i, s, w, f; in capitals about another subject
		alerts    int
		steps     []string
	}{
		{"nothing to follow", "opsgenie://key1", "is", 0, nil},
		{"note and close", "opsgenie://key1", "fis", 1, []string{"POST alert-1 notes id b", "POST alert-1 close id b"}},
		{"another subject", "opsgenie://key1", "fS", 1, nil},
		{"an alert for each target", "opsgenie://key1/@ann/#ops", "fs", 2, []string{"POST alert-1 close id b", "POST alert-2 close id b"}},
		{"the entity is the subject", "opsgenie://key1?entity=host-7", "fS", 1, []string{"POST alert-1 close id b"}},
		{"by alias", "opsgenie://key1/@ann/#ops?alias=disk", "fS", 2, []string{"POST disk close alias b"}},
		{"the newest alert", "opsgenie://key1", "fws", 2, []string{"POST alert-2 close id b"}},
		{"delete once", "opsgenie://key1?:success=delete", "fss", 1, []string{"DELETE alert-1  id "}},
	} {
		server := &jsmServer{}
		sender := notifier.NewSender(notifier.NewPoolOver("test", server), 0)
		d, err := sender.Parse(c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range c.types {
			m := &notifier.Message{Title: "disk full", Body: "b"}
			if kind < 'a' {
				m.Title = "other"
			}
			m.Type = map[string]notifier.Type{"i": notifier.Info, "s": notifier.Success, "w": notifier.Warning, "f": notifier.Failure}[strings.ToLower(string(kind))]
			report := sender.Send(context.Background(), m, []notifier.Target{{Destination: d}}, notifier.Options{})
			if !report.OK() {
				t.Errorf("%s: %v", c.name, report.Results[0].Err)
			}
		}
		slices.Sort(server.steps)
		slices.Sort(c.steps)
		if server.alerts != c.alerts || !slices.Equal(server.steps, c.steps) {
			t.Errorf("%s: %d alerts and %q, want %d and %q", c.name, server.alerts, server.steps, c.alerts, c.steps)
		}
	}
}

func TestJSMRemembersNotForEver(t *testing.T) {
	j := &jsm{}
	for i := range jsmSubjects + 10 {
		j.remember(fmt.Sprint(i), "r")
	}
	if len(j.requests) != jsmSubjects || len(j.order) != jsmSubjects {
		t.Errorf("%d subjects are remembered, want %d", len(j.requests), jsmSubjects)
	}
	if j.remembered("0") != nil || j.remembered(fmt.Sprint(jsmSubjects+9)) == nil {
		t.Error("it is not the oldest subjects that are forgotten")
	}
}
