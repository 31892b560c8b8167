package device

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/webpush"
)

// TestPayload checks what a device gets of a message.
func TestPayload(t *testing.T) {
	d := &Device{ID: "id"}
	m := &notifier.Message{
		Title: "Disk", Body: "<full>", Type: notifier.Failure, Time: second(1),
		Link: notifier.Link{Label: notifier.AcknowledgeLabel, URL: "https://alerts.example.com/notify/incidents/x"},
	}
	m.Incident.ID, m.Incident.State = "incident", notifier.Open
	b, err := d.payload("ops", m).encode()
	want := `{"key":"ops","title":"Disk","text":"<full>","type":"failure","time":"2026-03-01T12:00:01Z","incident":"incident",` +
		`"renotify":true,` +
		`"link":"https://alerts.example.com/notify/incidents/x","acknowledge":true,"device":"id"}`
	if err != nil || string(b) != want {
		t.Errorf("%s, want %s, %v", b, want, err)
	}
	b, err = d.payload("ops", &notifier.Message{Body: "b", Type: notifier.Info, Time: second(1)}).encode()
	if want := `{"key":"ops","text":"b","type":"info","time":"2026-03-01T12:00:01Z","device":"id"}`; err != nil || string(b) != want {
		t.Errorf("%s, want %s, %v", b, want, err)
	}
}

// TestLongText checks that a text is cut so that the payload fits into a push, and that as
// much of it as possible is there.
func TestLongText(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("ä", 9000), strings.Repeat(`"\`, 3000), strings.Repeat("<", 3990),
		strings.Repeat("\x00", 3000),
	} {
		b, err := (&Payload{Key: "ops", Title: strings.Repeat(`"`, 250), Text: text}).encode()
		var p Payload
		if err != nil || len(b) > webpush.MaxPayload || len(b) < webpush.MaxPayload-10 || json.Unmarshal(b, &p) != nil ||
			!strings.HasSuffix(p.Text, "…") {
			t.Errorf("%.3q: %d bytes, the text ends with %q, %v", text, len(b), p.Text[max(len(p.Text)-10, 0):], err)
		}
	}
}

// TestPush checks how urgent a message is, and how long it is worth something.
func TestPush(t *testing.T) {
	for _, tt := range []struct {
		m       notifier.Message
		left    time.Duration
		urgency string
		ttl     int
	}{
		{notifier.Message{Type: notifier.Info}, time.Hour, "", 3600},
		{notifier.Message{Type: notifier.Success}, 1500 * time.Millisecond, "", 2},
		{notifier.Message{Type: notifier.Warning}, 0, webpush.UrgencyHigh, 0},
		{notifier.Message{Type: notifier.Failure}, -time.Hour, webpush.UrgencyHigh, 0},
		{notifier.Message{Type: notifier.Failure, Digest: true}, 1000 * time.Hour, webpush.UrgencyLow, webpush.MaxTTL},
	} {
		tt.m.Incident.ID = "incident"
		if p := newPush(&tt.m, tt.left); p.Urgency != tt.urgency || p.TTL != tt.ttl || p.Topic != "incident" {
			t.Errorf("%s: %+v", tt.m.Type, p)
		}
	}
}
