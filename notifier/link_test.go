package notifier_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/notifier"
	_ "github.com/caddy-notify/caddy-notify/notifier/services"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// TestAcknowledgeLine checks the line that the text ends with, in each format, and that
// it counts for the limits: no part is too long, and the last one has the whole line.
func TestAcknowledgeLine(t *testing.T) {
	const address = servicetest.AcknowledgeURL
	long := strings.Repeat("some words that fill the line ", 100)
	for _, tt := range []struct {
		name, url, body string
		limit           int
		parts           int    // 0 for any number
		end             string // of the last part
		start           string // of the first part
	}{
		{name: "text", url: "mmost://example.com/token", body: "full", limit: 4000, parts: 1, end: "full\n\nAcknowledge: " + address},
		{
			name: "Markdown", url: "rocket://user:password@example.com/%23room", body: "full",
			limit: 1000, parts: 1, end: "full\n\n[Acknowledge](" + address + ")",
		},
		{name: "HTML", url: "mailto://user:pass@example.com", body: "full", parts: 1, end: `<p><a href="` + address + `">Acknowledge</a></p>`},
		{name: "SMS", url: "d7sms://token@15551234567", body: "full", limit: 160, parts: 1, end: "full\n" + address},
		{name: "no text", url: "mmost://example.com/token", limit: 4000, parts: 1, end: "Acknowledge: " + address},
		{
			name: "SMS that is cut", url: "d7sms://token@15551234567?overflow=truncate",
			body: long, limit: 160, parts: 1, end: " \n" + address, start: "some words",
		},
		{name: "SMS in parts", url: "d7sms://token@15551234567?overflow=split", body: long, limit: 160, end: "\n" + address, start: "some words"},
		{
			name: "SMS whose link needs a part", url: "d7sms://token@15551234567?overflow=split",
			body: long[:150], limit: 160, parts: 2, end: "\n" + address, start: "some words",
		},
		{name: "SMS as it is", url: "d7sms://token@15551234567", body: long, parts: 1, start: address + "\nsome words"},
		{
			name: "title and text share the limit", url: "guilded://id/token?overflow=split",
			body: long, limit: 2000, parts: 2, end: "Acknowledge: " + address, start: "some words",
		},
		{name: "a pager", url: "dapnet://user:pass@DF1ABC", body: "full", limit: 80, parts: 1, end: "full"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, err := notifier.Parse(tt.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			m := &notifier.Message{Body: tt.body, Type: notifier.Failure, Link: notifier.Link{Label: notifier.AcknowledgeLabel, URL: address}}
			parts := d.DryRun(t.Context(), "test", m).Messages
			if tt.parts > 0 && len(parts) != tt.parts {
				t.Errorf("%d parts, want %d", len(parts), tt.parts)
			}
			for i, p := range parts {
				if n := utf8.RuneCountInString(p.Title + p.Body); tt.limit > 0 && n > tt.limit {
					t.Errorf("part %d has %d characters; the limit is %d", i+1, n, tt.limit)
				}
				if i < len(parts)-1 && strings.Contains(p.Body, address) {
					t.Errorf("part %d of %d has the address", i+1, len(parts))
				}
			}
			if last := parts[len(parts)-1].Body; !strings.HasSuffix(last, strings.TrimPrefix(tt.end, " ")) {
				t.Errorf("the last part is %q, want it to end with %q", last, tt.end)
			}
			if first := parts[0].Body; !strings.HasPrefix(first, tt.start) {
				t.Errorf("the first part is %q, want it to begin with %q", first, tt.start)
			}
		})
	}
}

// TestAcknowledgeWhen checks which messages have the address.
func TestAcknowledgeWhen(t *testing.T) {
	d, err := notifier.Parse("mmost://example.com/token", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"open": true, "worse": true, "updated": false, "acknowledged": false, "resolved": false, "plain": false,
	} {
		m := servicetest.Message(t, name)
		m.Link = notifier.Link{Label: notifier.AcknowledgeLabel, URL: servicetest.AcknowledgeURL}
		if got := strings.Contains(d.DryRun(t.Context(), "test", m).Messages[0].Body, servicetest.AcknowledgeURL); got != want {
			t.Errorf("%s has the address: %t, want %t", name, got, want)
		}
	}
}

// TestAcknowledgeNoRoom checks that a message goes without the link, and that the result
// says so, if the link would take the place of the text.
func TestAcknowledgeNoRoom(t *testing.T) {
	var sent string
	r := &servicetest.Recorder{}
	m := servicetest.Message(t, "open")
	m.Link = notifier.Link{Label: notifier.AcknowledgeLabel, URL: "https://" + strings.Repeat("a", 110) + ".example.com/notify/incidents/1"}
	report := servicetest.Report(t, servicetest.NewSenderOver(t, r), "d7sms://token@15551234567", m, 10*time.Second)
	if sent = strings.Join(r.Requests, ""); strings.Contains(sent, "incidents") || !strings.Contains(sent, "host-7") {
		t.Errorf("sent %s", sent)
	}
	said := false
	for _, line := range report.Records {
		said = said || strings.Contains(line.Text, "no room for the link")
	}
	if report.Results[0].Err != nil || !said {
		t.Errorf("the result is %+v, the records are %+v", report.Results[0], report.Records)
	}
}

// TestAcknowledgeLinkIsMasked checks that the link, with which anybody can acknowledge,
// is in no error and no record if a service repeats what it was sent.
func TestAcknowledgeLinkIsMasked(t *testing.T) {
	echo := servicetest.API(func(_ *http.Request, body string) (int, string) { return 400, "invalid: " + body })
	for _, address := range []string{
		"tgram://123456789:AAabcdefghijklmnopqrstuvwxyz0123456/42",
		"json://example.com/a", "d7sms://token@15551234567", "form://example.com/a",
	} {
		report := echo.Report(t, address, servicetest.Message(t, "button"))
		text := report.Results[0].Err.Error()
		if !strings.Contains(text, "invalid: ") {
			t.Errorf("%s: the error is %q", address, text)
		}
		for _, line := range report.Records {
			text += line.Text
		}
		if id := servicetest.AcknowledgeURL[strings.LastIndexByte(servicetest.AcknowledgeURL, '/')+1:]; strings.Contains(text, id) {
			t.Errorf("%s: the link is in %q", address, text)
		}
	}
}
