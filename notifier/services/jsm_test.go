package services

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// jsmServer is a fake of the API. The IDs of its alerts differ from the IDs of
// the requests that created them, and it refuses actions on unknown alerts.
type jsmServer struct {
	alerts int
	steps  []string
}

func (s *jsmServer) answer(q *http.Request, body string) (int, string) {
	path := strings.TrimPrefix(q.URL.Path, "/v2/alerts")
	code, answer := 202, `{"requestId":"step"}`
	request, isStatus := strings.CutPrefix(path, "/requests/request-")
	alert, step, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch {
	case path == "":
		s.alerts++
		answer = fmt.Sprintf(`{"requestId":"request-%d"}`, s.alerts)
	case isStatus:
		code, answer = 200, fmt.Sprintf(`{"data":{"alertId":"alert-%s"}}`, request)
	case strings.HasPrefix(alert, "request-"):
		code, answer = 404, `{"message":"no such alert"}`
	default:
		var payload struct{ Note string }
		_ = json.Unmarshal([]byte(body), &payload) // a DELETE has no body
		s.steps = append(s.steps, strings.Join([]string{q.Method, alert, step, q.URL.Query().Get("identifierType"), payload.Note}, " "))
	}
	return code, answer
}

// TestJSMActions sends messages to an Opsgenie URL one after the other.
func TestJSMActions(t *testing.T) {
	for _, c := range []struct {
		name, url string
		types     string // of the messages: i, s, w, f; a capital means another subject
		alerts    int
		steps     []string
	}{
		{"no alert", "opsgenie://key1", "is", 0, nil},
		{"note and close", "opsgenie://key1", "fis", 1, []string{"POST alert-1 notes id b", "POST alert-1 close id b"}},
		{"another subject", "opsgenie://key1", "fS", 1, nil},
		{"an alert for each target", "opsgenie://key1/@ann/#ops", "fs", 2, []string{"POST alert-1 close id b", "POST alert-2 close id b"}},
		{"the entity is the subject", "opsgenie://key1?entity=host-7", "fS", 1, []string{"POST alert-1 close id b"}},
		{"by alias", "opsgenie://key1/@ann/#ops?alias=disk", "fS", 2, []string{"POST disk close alias b"}},
		{"by alias, after a restart", "opsgenie://key1?alias=disk", "is", 0, []string{"POST disk notes alias b", "POST disk close alias b"}},
		{"by alias, with nothing stored", "opsgenie://key1?alias=disk&store=no", "fs", 1, []string{"POST disk close alias b"}},
		{"with nothing stored", "opsgenie://key1?store=no", "fs", 1, nil},
		{"the newest alert", "opsgenie://key1", "fws", 2, []string{"POST alert-2 close id b"}},
		{"delete once", "opsgenie://key1?:success=delete", "fss", 1, []string{"DELETE alert-1  id "}},
	} {
		server := &jsmServer{}
		send := servicetest.API(server.answer).Destination(t, c.url)
		for _, kind := range c.types {
			m := &notifier.Message{Title: "disk full", Body: "b"}
			if kind < 'a' {
				m.Title = "other"
			}
			m.Type = map[string]notifier.Type{
				"i": notifier.Info, "s": notifier.Success, "w": notifier.Warning, "f": notifier.Failure,
			}[strings.ToLower(string(kind))]
			if err := send(m); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		slices.Sort(server.steps)
		slices.Sort(c.steps)
		if server.alerts != c.alerts || !slices.Equal(server.steps, c.steps) {
			t.Errorf("%s: %d alerts and %q, want %d and %q", c.name, server.alerts, server.steps, c.alerts, c.steps)
		}
	}
}

// A message without effect is reported as skipped, with a warning.
func TestJSMSkips(t *testing.T) {
	for address, want := range map[string]string{
		"opsgenie://key1": "nothing was sent: a message of type info would add a note to an " +
			"alert about the same subject, and no such alert is known; send a message of type failure first, " +
			"or add :info=new to the URL to create an alert, or add alias= to the URL",
		"jira://key1?action=close": "would close an alert",
		"opsgenie://key1?action=delete": "would delete an alert about the same subject, " +
			"and no such alert is known; send a message of type failure first, or add action=new to the URL",
		"jira://key1?action=acknowledge": "would acknowledge an alert",
	} {
		report := servicetest.API(new(jsmServer).answer).Report(t, address, &notifier.Message{Body: "b"})
		if r := report.Records[0]; !report.OK() || len(report.Records) > 1 ||
			r.Level != notifier.LevelWarning || !strings.Contains(r.Text, want) {
			t.Errorf("%s: %v", address, report.Records)
		}
		if r := report.Results[0]; r.Status != notifier.Skipped || r.Err != nil {
			t.Errorf("%s: %s, %v", address, r.Status, r.Err)
		}
	}
}

func TestJSMForgetsOldestSubjects(t *testing.T) {
	var a jsmAlerts
	for i := range jsmSubjects + 10 {
		a.remember(fmt.Sprint(i), "r")
	}
	if len(a.Requests) != jsmSubjects || len(a.Order) != jsmSubjects {
		t.Errorf("%d subjects are remembered, want %d", len(a.Requests), jsmSubjects)
	}
	if a.Requests["0"] != nil || a.Requests[fmt.Sprint(jsmSubjects+9)] == nil {
		t.Error("the subjects forgotten are not the oldest")
	}
}

// A word is another priority in Apprise. It is no mistake, because Apprise
// itself writes words into its URLs.
func TestJSMPriorityWords(t *testing.T) {
	for word, want := range map[string]string{
		"low":       "Jira: priority low is p5 here and p1 in Apprise; write p5 or p1 instead of the word",
		"Emergency": "Jira: priority Emergency is p1 here and p5 in Apprise; write p1 or p5 instead of the word",
		"h":         "Jira: priority h is p2 here and p4 in Apprise; write p2 or p4 instead of the word",
		"moderate":  "Jira: priority moderate is p4 here and p2 in Apprise; write p4 or p2 instead of the word",
		"normal":    "", "p1": "", "5": "",
	} {
		d, err := notifier.Parse("jira://apikey?priority="+word, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(d.Warnings(), "; "); got != want || d.Mistake() != "" {
			t.Errorf("%s: warnings %q and mistake %q, want %q", word, got, d.Mistake(), want)
		}
	}
}

// TestJSMIncidentWithManyTargets checks that an incident is one alert for 50
// targets, and that all of its alerts are closed.
func TestJSMIncidentWithManyTargets(t *testing.T) {
	var server jsmServer
	var created []string
	service := servicetest.API(func(q *http.Request, body string) (int, string) {
		var alert struct {
			Alias      string
			Responders []any
		}
		if err := json.Unmarshal([]byte(body), &alert); err != nil {
			t.Error(err)
		}
		if alert.Alias != "" {
			created = append(created, fmt.Sprintf("%s to %d", alert.Alias, len(alert.Responders)))
		}
		return server.answer(q, body)
	})
	url := "opsgenie://01234567-89ab-cdef-0123-456789abcdef"
	for i := range 60 {
		url += fmt.Sprintf("/@person%d", i)
	}
	send := service.Destination(t, url)
	open := servicetest.Message(t, "open")
	for _, m := range []*notifier.Message{open, servicetest.Message(t, "resolved")} {
		if err := send(m); err != nil {
			t.Fatal(err)
		}
	}
	id := open.Incident.ID
	slices.Sort(created)
	slices.Sort(server.steps)
	if want := []string{id + " to 50", id + "-2 to 10"}; !slices.Equal(created, want) {
		t.Errorf("created %q, want %q", created, want)
	}
	note := "Volume /data is at 40% on host-7"
	if want := []string{"POST " + id + " close alias " + note, "POST " + id + "-2 close alias " + note}; !slices.Equal(server.steps, want) {
		t.Errorf("steps %q, want %q", server.steps, want)
	}
}
