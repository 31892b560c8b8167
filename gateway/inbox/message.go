package inbox

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// The maximum sizes of the kept parts of a message.
const (
	maxTitle    = 1 << 10  // bytes
	maxBody     = 32 << 10 // bytes
	maxFiles    = 100
	maxFileName = 255 // bytes
)

// Message is a message in the inbox of its key.
type Message struct {
	Cursor Cursor

	// ID is the gateway's ID of the message, by which the results of its deliveries are found.
	ID      string
	Time    time.Time // when it came in
	Expires time.Time // until when it can be read

	Type   notifier.Type
	Title  string // one line
	Body   string
	Format notifier.Format // of Body
	Cut    bool            // Body was longer

	// Foreign means that the texts come from another program's payload, and are shown unchanged.
	Foreign bool

	Incident string // what it is about; "" for nothing
	Source   string // the name of the format in which it came in; "" for the gateway's own
	Files    []File

	Published message.Published // the fields that a publisher sets for ntfy's clients

	plain sync.Once
	text  string // see Text
}

// File is the name of an attachment, which is not kept.
type File struct {
	Name string
	Type string
	Size int64
}

// newMessage returns m as a key keeps it until expires. Its Cursor is not set.
func newMessage(m *notifier.Message, id, source string, expires time.Time) *Message {
	title := queued.PlainTitle(m, maxTitle)
	m = m.WithoutDialect()
	out := &Message{
		ID: id, Time: m.Time, Expires: expires, Type: m.Type, Title: title,
		Body: markup.TruncateBytes(m.Body, maxBody), Format: m.Format, Cut: len(m.Body) > maxBody, Foreign: m.Foreign, Incident: m.Incident.Name,
		Source: source,
	}
	for _, a := range m.Attachments[:min(len(m.Attachments), maxFiles)] {
		out.Files = append(out.Files, File{markup.TruncateBytes(a.Name, maxFileName), markup.TruncateBytes(a.ContentType, maxFileName), a.Size})
	}
	return out
}

// Plain converts a text in the format of the message to plain text.
func (m *Message) Plain(text string) string {
	if m.Foreign {
		return markup.ConvertForeign(text, m.Format, notifier.Text, false)
	}
	return markup.Convert(text, m.Format, notifier.Text)
}

// Text returns the body as plain text, with the names of the attachments below it. Several
// goroutines may call it.
func (m *Message) Text() string {
	m.plain.Do(func() {
		m.text = m.WithFiles(m.Plain(m.Body))
	})
	return m.text
}

// WithFiles returns a text with the names of the attachments below it.
func (m *Message) WithFiles(text string) string {
	lines := []string{text}
	for _, f := range m.Files {
		lines = append(lines, fmt.Sprintf("Attached: %s (%s)", markup.OneLine(f.Name), humanize.Bytes(uint64(max(f.Size, 0)))))
	}
	return strings.TrimPrefix(strings.Join(lines, "\n"), "\n")
}

// PublishedID returns the ID of m for its publisher.
func (m *Message) PublishedID() string { return message.PublishedID(m.ID, message.NtfyIDLength) }

// until returns until when m can be read if the key keeps messages for keep. That may be earlier
// than Expires, if keep was longer when m came in.
func (m *Message) until(keep time.Duration) time.Time {
	if until := m.Time.Add(keep); until.Before(m.Expires) {
		return until
	}
	return m.Expires
}

// Size returns the approximate size of m in a store, in bytes.
func (m *Message) Size() int {
	p := &m.Published
	n := overhead + len(m.Title) + len(m.Body) + len(m.Incident) + len(p.Click) + len(p.Actions) + len(p.Prefix) + len(p.Suffix)
	for _, tag := range p.Tags {
		n += len(tag)
	}
	for _, f := range m.Files {
		n += len(f.Name) + len(f.Type)
	}
	return n
}

// overhead is the approximate size of a stored message without its texts, in bytes.
const overhead = 400

func (m *Message) fields(c *wire.Codec) {
	wire.Text(c, 1, &m.ID)
	wire.Time(c, 2, &m.Time)
	wire.Time(c, 3, &m.Expires)
	wire.Text(c, 4, &m.Type)
	wire.Text(c, 5, &m.Title)
	wire.Text(c, 6, &m.Body)
	wire.Text(c, 7, &m.Format)
	wire.True(c, 8, &m.Cut)
	wire.True(c, 9, &m.Foreign)
	wire.Text(c, 10, &m.Incident)
	wire.Text(c, 11, &m.Source)
	wire.Records(c, 12, &m.Files, (*File).fields)
	wire.Number(c, 13, &m.Cursor)
	wire.Texts(c, 14, &m.Published.Tags)
	wire.Number(c, 15, &m.Published.Priority)
	wire.Text(c, 16, &m.Published.Click)
	wire.Text(c, 17, &m.Published.Actions)
	wire.Text(c, 18, &m.Published.Prefix)
	wire.Text(c, 19, &m.Published.Suffix)
}

func (f *File) fields(c *wire.Codec) {
	wire.Text(c, 1, &f.Name)
	wire.Text(c, 2, &f.Type)
	wire.Number(c, 3, &f.Size)
}
