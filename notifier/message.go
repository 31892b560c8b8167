package notifier

import (
	"cmp"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Format is the markup language of a text.
type Format = markup.Format

// The formats of a text. The zero Format counts as [Text].
const (
	Text     = markup.Text
	Markdown = markup.Markdown
	HTML     = markup.HTML
)

// Message is a message, either as a client sends it or, once it is rendered for
// a destination, as its service gets it.
type Message struct {
	// Title is one line and may be empty. It is always empty for a service
	// whose limit for titles is 0: the title is the body's first line there.
	Title string

	// Body is the text, written in Format. It may be empty if there are
	// attachments.
	Body string

	// Type is never empty when a service gets the message.
	Type Type

	// Format is the format of Body and Title: the client's at first, the
	// destination's when a service gets the message.
	Format Format

	// Source is the format of the client's message. [Sender.Send] sets it.
	Source Format

	// Attachments are the files of the message. If a message is divided, its
	// last part has them. They are empty for a service that cannot send files.
	Attachments []*Attachment

	// Identity is the sender to show. nil means [DefaultIdentity].
	Identity *Identity

	// Time is when the client sent the message. A service gets it in the time
	// zone of the destination (the parameter tz). Zero means now.
	Time time.Time

	// Hops is the number of gateways that the message has passed through, for
	// destinations that are gateways themselves.
	Hops int
}

// withDefaults returns a copy of m with its defaults filled in.
func (m *Message) withDefaults() Message {
	c := *m
	c.Type = cmp.Or(c.Type, Info)
	c.Format = cmp.Or(c.Format, Text)
	c.Source = c.Format
	if c.Identity == nil {
		id := DefaultIdentity()
		c.Identity = &id
	}
	if c.Time.IsZero() {
		c.Time = time.Now()
	}
	return c
}

// withoutFiles returns a copy of m without its attachments.
func (m *Message) withoutFiles() *Message {
	c := *m
	c.Attachments = nil
	return &c
}

// Icon returns the URL of the picture for the message's type, pixels wide and
// high, or "" if the operator has set no icon.
func (m *Message) Icon(pixels int) string { return m.Identity.icon(m.Type, pixels) }

// Text returns the title, sep and the body, or just one of the texts if the
// other is empty. It is for services that have no title in some of their modes.
func (m *Message) Text(sep string) string {
	switch {
	case m.Title == "":
		return m.Body
	case m.Body == "":
		return m.Title
	}
	return m.Title + sep + m.Body
}
