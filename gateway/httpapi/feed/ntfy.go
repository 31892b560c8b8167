package feed

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/inbox"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// NtfyEvent is a line of a stream for ntfy's clients. See https://docs.ntfy.sh/subscribe/api/, as
// of version 2.13.
type NtfyEvent struct {
	ID          string   `json:"id"`
	Time        int64    `json:"time"`              // in seconds since 1970
	Expires     int64    `json:"expires,omitempty"` // like Time
	Event       string   `json:"event"`
	Topic       string   `json:"topic"`
	Title       string   `json:"title,omitempty"`
	Message     string   `json:"message,omitempty"`
	Priority    int      `json:"priority,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	ContentType string   `json:"content_type,omitempty"`
	Click       string   `json:"click,omitempty"`

	Actions json.RawMessage `json:"actions,omitempty"`

	published string // the publisher's ID of the message
}

// newNtfyEvent returns an event that is not a message.
func newNtfyEvent(event, topics string, now time.Time) NtfyEvent {
	return NtfyEvent{ID: rand.Text()[:message.NtfyIDLength], Time: now.Unix(), Event: event, Topic: topics}
}

// ntfyTypes are the priority and the tag for each type. ntfy shows the tag as an emoji.
var ntfyTypes = map[notifier.Type]struct {
	priority int
	tag      string
}{
	notifier.Failure: {5, "rotating_light"}, notifier.Warning: {4, "warning"}, notifier.Success: {3, "white_check_mark"},
	notifier.Info: {3, ""},
}

// newNtfyMessage returns m as a message of a topic of ntfy. until is when the inbox drops it.
func newNtfyMessage(m *inbox.Message, topic string, until time.Time) NtfyEvent {
	t, p := ntfyTypes[m.Type], &m.Published
	title, body := asPublished(m)
	out := NtfyEvent{
		ID: m.Cursor.String(), Time: m.Time.Unix(), Expires: until.Unix(), Event: inbox.EventMessage, Topic: topic,
		Title: title, Priority: cmp.Or(p.Priority, t.priority), Tags: p.Tags, Click: p.Click, published: m.PublishedID(),
	}
	if t.tag != "" && len(p.Tags) == 0 {
		out.Tags = []string{t.tag}
	}
	if p.Actions != "" {
		out.Actions = json.RawMessage(p.Actions)
	}
	switch {
	case m.Format == notifier.Markdown && !m.Foreign:
		out.Message, out.ContentType = m.WithFiles(body), "text/markdown"
	case body == m.Body:
		out.Message = m.Text()
	default:
		out.Message = m.WithFiles(m.Plain(body))
	}
	out.Message = markup.TruncateBytes(out.Message, maxNtfy)
	if out.Message == "" { // ntfy's messages are never empty
		out.Message = "triggered"
	}
	return out
}

// asPublished returns the title and the body without the tags, the click and the buttons that other
// destinations get in the text.
func asPublished(m *inbox.Message) (title, body string) {
	p := &m.Published
	title, body = m.Title, strings.TrimSuffix(m.Body, p.Suffix)
	if title == "" {
		return "", strings.TrimPrefix(body, p.Prefix)
	}
	return strings.TrimPrefix(title, p.Prefix), body
}

// maxNtfy is the maximum length of the text of a message, in bytes. ntfy's command reads lines of
// at most 64 KiB, in which a byte can take six.
const maxNtfy = 8 << 10

// Line returns the event as a line of JSON.
func (e *NtfyEvent) Line() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(e)
	return b.Bytes(), err
}

// Raw returns the text of the event in one line, or "" for an event other than a message.
func (e *NtfyEvent) Raw() ([]byte, error) {
	return []byte(markup.OneLine(e.Message) + "\n"), nil
}

// ServerSent returns the event in the format of server-sent events.
func (e *NtfyEvent) ServerSent() ([]byte, error) {
	line, err := e.Line()
	event := ""
	if e.Event != inbox.EventMessage {
		event = "event: " + e.Event + "\n"
	}
	return slices.Concat([]byte(event+"data: "), line, []byte("\n")), err
}
