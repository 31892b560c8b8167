package services

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// TestDiscordUpdate checks that the messages of an incident change the first one,
// that a short message tells of its end, and that a deleted message is replaced.
func TestDiscordUpdate(t *testing.T) {
	var got []string
	deleted := false
	service := servicetest.API(func(q *http.Request, body string) (int, string) {
		var m struct{ Content string }
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Error(err)
		}
		got = append(got, q.Method+" "+q.URL.RequestURI()+" "+m.Content)
		if deleted && q.Method == http.MethodPatch {
			return 404, `{"message": "Unknown Message", "code": 10008}`
		}
		return 200, `{"id": "77"}`
	})
	send := service.Destination(t, "discord://123/token?update=yes")
	tell := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if err := send(servicetest.Message(t, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("got %q\nwant %q", got, want)
		}
		got = nil
	}
	const (
		post = "POST /api/webhooks/123/token?wait=true "
		edit = "PATCH /api/webhooks/123/token/messages/77 "
	)
	tell("open", "worse", "updated", "acknowledged", "resolved")
	history := "\n\n1 Mar 12:30 warning\n1 Mar 12:30 failure"
	check(
		post+"Disk almost full\r\nVolume /data is at 91% on host-7",
		edit+"Disk almost full\r\nVolume /data is at 99% on host-7"+history,
		post+"Disk almost full",
		edit+"Disk\r\na larger one is ordered"+history+"\n1 Mar 12:30 updated",
		edit+"Disk almost full: acknowledged\r\nby Ann"+history+"\n1 Mar 12:30 updated\n1 Mar 12:30 acknowledged",
		edit+"Disk has space again\r\nVolume /data is at 40% on host-7"+history+"\n"+
			"1 Mar 12:30 updated\n1 Mar 12:30 acknowledged\n1 Mar 12:30 resolved",
		post+"Disk has space again",
	)
	// When it opens again, it is a new message. An alert that joins is told in a message, too.
	alerts := func(identifiers ...string) {
		t.Helper()
		m := servicetest.Message(t, "open")
		m.Incident.Name = "disk host-9"
		m.Incident = m.Incident.For("ops", "")
		m.Incident.Alerts = notifier.AlertWords(identifiers)
		if err := send(m); err != nil {
			t.Fatal(err)
		}
	}
	var methods []string
	for _, identifiers := range []string{"a", "a", "a b", "b", "b a"} {
		alerts(strings.Fields(identifiers)...)
		var of []string
		for _, request := range got {
			method, _, _ := strings.Cut(request, " ")
			of = append(of, method)
		}
		methods, got = append(methods, strings.Join(of, "+")), nil
	}
	if want := []string{"POST", "PATCH", "PATCH+POST", "PATCH", "PATCH+POST"}; !slices.Equal(methods, want) {
		t.Errorf("alerts that join: %q, want %q", methods, want)
	}
	tell("open")
	check(post + "Disk almost full\r\nVolume /data is at 91% on host-7")
	deleted = true
	tell("worse")
	check(
		edit+"Disk almost full\r\nVolume /data is at 99% on host-7"+history,
		post+"Disk almost full\r\nVolume /data is at 99% on host-7",
	)
	// A message about nothing in particular is one of its own.
	tell("plain")
	check("POST /api/webhooks/123/token Disk almost full\r\nVolume /data is at 91% on host-7")
}

// TestDiscordUpdateLimit checks that a long text stays within the limit of Discord with
// the lines of its history, and that a message in several parts changes the first one.
func TestDiscordUpdateLimit(t *testing.T) {
	var contents []string
	service := servicetest.API(func(q *http.Request, body string) (int, string) {
		var m struct{ Content string }
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Error(err)
		}
		if n := utf8.RuneCountInString(m.Content); n > 2000 {
			t.Errorf("a content of %d characters", n)
		}
		contents = append(contents, q.Method+" "+m.Content)
		return 200, `{"id": "77"}`
	})
	for _, overflow := range []string{"truncate", "split"} {
		contents = nil
		send := service.Destination(t, "discord://123/token?update=yes&overflow="+overflow)
		for i := range 15 {
			m := servicetest.Message(t, []string{"open", "worse"}[i%2])
			m.Body = servicetest.Message(t, "long").Body[:5000]
			if err := send(m); err != nil {
				t.Fatal(err)
			}
		}
		edits := slices.DeleteFunc(contents, func(c string) bool { return !strings.HasPrefix(c, http.MethodPatch) })
		if len(edits) != 14 || !strings.HasSuffix(edits[13], "1 Mar 12:30 failure\n1 Mar 12:30 warning") ||
			!strings.Contains(edits[13], "1 Mar 12:30 warning\n…\n") {
			t.Errorf("%s: %d changes, the last one to %q", overflow, len(edits), edits[len(edits)-1])
		}
	}
}

// TestDiscordUpdateButton checks that the button to acknowledge an incident stays when
// something is added to it, and goes away when somebody has acknowledged it. Discord
// keeps the components that a change does not name.
func TestDiscordUpdateButton(t *testing.T) {
	var got []string
	send := servicetest.API(func(q *http.Request, body string) (int, string) {
		text := q.Method
		switch {
		case strings.Contains(body, servicetest.AcknowledgeURL):
			text += " with a button"
		case strings.Contains(body, `"components":[]`):
			text += " without components"
		}
		if q.URL.Query().Get("with_components") == "true" {
			text += ", respected"
		}
		got = append(got, text)
		return 200, `{"id": "77"}`
	}).Destination(t, "discord://123/token?update=yes")
	for _, name := range []string{"button", "updated", "acknowledged", "updated"} {
		if err := send(servicetest.Message(t, name)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"POST with a button, respected", "PATCH with a button, respected", "PATCH without components, respected", "PATCH"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestDiscordUpdateQuestion checks that the outcome of a question changes the message that has
// asked it and removes its buttons, and that a short message tells the outcome.
func TestDiscordUpdateQuestion(t *testing.T) {
	var got []string
	service := servicetest.API(func(q *http.Request, body string) (int, string) {
		var m struct {
			Content    string
			Components []any
		}
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Error(err)
		}
		got = append(got, fmt.Sprintf("%s %s, %d rows of buttons", q.Method, m.Content, len(m.Components)))
		return 200, `{"id": "77"}`
	})
	send := service.Destination(t, "discord://123/token?update=yes")
	m := servicetest.Message(t, "plain")
	m.Title, m.Body, m.Thread = "Deploy?", "It adds a column.", "question 1"
	m.Link = notifier.Link{Label: "Answer", URL: "https://alerts.example.com/notify/asks/k4fzmoyq2xr6vnw7tdbhj3ce5a"}
	m.Choices = []notifier.Link{{Label: "yes", URL: m.Link.URL + "?answer=yes"}, {Label: "no", URL: m.Link.URL + "?answer=no"}}
	if err := send(m); err != nil {
		t.Fatal(err)
	}
	m.Body, m.Link, m.Choices = "yes, by Ann, after 2 min.", notifier.Link{}, nil
	if err := send(m); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"POST Deploy?\r\nIt adds a column., 1 rows of buttons",
		"PATCH Deploy?\r\nyes, by Ann, after 2 min.\n\n1 Mar 12:30 asked\n1 Mar 12:30 decided, 0 rows of buttons",
		"POST yes, by Ann, after 2 min., 0 rows of buttons",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
