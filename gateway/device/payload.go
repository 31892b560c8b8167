package device

import (
	"bytes"
	"encoding/json"
	"math"
	"sort"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/webpush"
)

// Payload is what the service worker of a device gets.
type Payload struct {
	Key         string        `json:"key"`
	Title       string        `json:"title,omitempty"`
	Text        string        `json:"text,omitempty"`
	Type        notifier.Type `json:"type"`
	Time        time.Time     `json:"time"`
	Incident    string        `json:"incident,omitempty"`    // the tag of the notification
	Renotify    bool          `json:"renotify,omitempty"`    // the incident opens
	Link        string        `json:"link,omitempty"`        // the page of the incident
	Acknowledge bool          `json:"acknowledge,omitempty"` // the incident can be acknowledged there
	Badge       *int          `json:"badge,omitempty"`       // how many incidents of the key are open
	Device      string        `json:"device"`
	Receipt     string        `json:"receipt,omitempty"` // the token for the receipt
}

// payload returns what d gets of a message to a key. Its Badge and Receipt are not set.
func (d *Device) payload(key string, m *notifier.Message) *Payload {
	return &Payload{
		Key: key, Title: m.Title, Text: m.Body, Type: m.Type, Time: m.Time.UTC(), Device: d.ID,
		Incident: m.Incident.ID, Renotify: m.Incident.State == notifier.Open, Link: m.AcknowledgeURL, Acknowledge: m.AcknowledgeURL != "",
	}
}

// MaxTitle is the length in bytes that a title is cut to if not all of the message fits.
const MaxTitle = 250

// encode returns the payload as JSON. If it does not fit into a push, it has the beginning of
// the title, and as much of the text as fits.
func (p *Payload) encode() ([]byte, error) {
	out, err := p.json()
	if err != nil || len(out) <= webpush.MaxPayload {
		return out, err
	}
	p.Title = markup.TruncateBytes(p.Title, MaxTitle)
	if out, err = p.cut(&p.Text); err != nil || len(out) <= webpush.MaxPayload {
		return out, err
	}
	return p.cut(&p.Title)
}

// cut cuts a text of the payload so that it fits, and returns it as JSON.
func (p *Payload) cut(field *string) ([]byte, error) {
	text := *field
	var err error
	n := sort.Search(min(len(text), webpush.MaxPayload)+1, func(n int) bool {
		*field = markup.TruncateBytes(text, n)
		var b []byte
		b, err = p.json()
		return err != nil || len(b) > webpush.MaxPayload
	})
	*field = markup.TruncateBytes(text, max(n-1, 0))
	return p.json()
}

func (p *Payload) json() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(p)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// newPush returns the push of a message that is worthless after a time. Its Payload and
// Contact are not set.
func newPush(m *notifier.Message, left time.Duration) *webpush.Push {
	p := &webpush.Push{TTL: int(math.Ceil(min(max(left.Seconds(), 0), webpush.MaxTTL))), Topic: m.Incident.ID}
	switch {
	case m.Digest:
		p.Urgency = webpush.UrgencyLow
	case m.Type == notifier.Failure || m.Type == notifier.Warning:
		p.Urgency = webpush.UrgencyHigh
	}
	return p
}
