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

// Payload is the content of a push to the service worker of a device.
type Payload struct {
	Key         string          `json:"key"`
	Title       string          `json:"title,omitempty"`
	Text        string          `json:"text,omitempty"`
	Type        notifier.Type   `json:"type"`
	Time        time.Time       `json:"time"`
	Incident    string          `json:"incident,omitempty"`    // the tag of the notification
	Renotify    bool            `json:"renotify,omitempty"`    // the incident opens
	Link        string          `json:"link,omitempty"`        // the page of the incident
	Acknowledge bool            `json:"acknowledge,omitempty"` // the incident can be acknowledged there
	Actions     []PayloadAction `json:"actions,omitempty"`     // the answers to a question
	Badge       *int            `json:"badge,omitempty"`       // how many incidents of the key are open
	Device      string          `json:"device"`
	Receipt     string          `json:"receipt,omitempty"` // the token for the receipt
}

// PayloadAction is a button of the notification: an answer to the question of the message.
type PayloadAction struct {
	Title string `json:"title"`
	Link  string `json:"link"` // to the page, with the answer chosen
}

// maxActions is the number of buttons that every browser shows in a notification.
const maxActions = 2

// actionsOf returns the buttons of a question. With more than maxActions answers, there are none,
// and the page shows the answers.
func actionsOf(m *notifier.Message) (out []PayloadAction) {
	if !m.Asks() || len(m.Choices) > maxActions {
		return nil
	}
	for _, l := range m.Choices {
		out = append(out, PayloadAction{l.Label, l.URL})
	}
	return out
}

// payload returns the payload of a message to a key for d, without Badge and Receipt.
func (d *Device) payload(key string, m *notifier.Message) *Payload {
	return &Payload{
		Key: key, Title: m.Title, Text: m.Body, Type: m.Type, Time: m.Time.UTC(), Device: d.ID,
		Incident: m.Incident.ID, Renotify: m.Incident.State == notifier.Open, Link: m.Link.URL, Acknowledge: m.Link.URL != "" && !m.Asks(),
		Actions: actionsOf(m),
	}
}

// MaxTitle is the length in bytes that a title is cut to if not all of the message fits.
const MaxTitle = 250

// encode returns the payload as JSON. If the payload does not fit into a push, encode shortens the
// title, and then the text until it fits.
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

// cut shortens a text field so that the payload fits, and returns the payload as JSON.
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

// newPush returns the push of a message that expires after left, without Payload and Contact.
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
