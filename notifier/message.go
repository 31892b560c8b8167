package notifier

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
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

	// Body is the text, written in Format. It may be empty if there are attachments.
	Body string

	// Type is never empty when a service gets the message.
	Type Type

	// Format is the format of Body and Title: the client's at first, the
	// destination's when a service gets the message.
	Format Format

	// Source is the format of the client's message. [Sender.Send] sets it.
	Source Format

	// Dialect is the chat in whose markup Body is written, if Format is [Markdown].
	// The chat gets it as it is; for others it is converted, and references, such as
	// mentions, become words. Title is plain. For a client's Markdown it is "".
	Dialect markup.Dialect

	// Foreign means that title and body come from the payload of another program, such as the title
	// of an issue or a logged URL, which strangers may have written. A destination shows such a
	// text as it is, so that it can neither mention people nor disguise a link: see [ForeignText].
	Foreign bool

	// Part is the number of this part of a message that is divided, from 0.
	Part int

	// Attachments are the files of the message. If a message is divided, its
	// last part has them. They are empty for a service that cannot send files.
	Attachments []*Attachment

	// Identity is the sender to show. nil means [DefaultIdentity].
	Identity *Identity

	// Time is when the client sent the message. A service gets it in the time
	// zone of the destination (the parameter tz). Zero means now.
	Time time.Time

	// Incident is the message's incident, for services that understand incidents (see
	// [Schema.Incidents]).
	Incident Incident

	// Link leads to the page on which the incident of the message can be acknowledged, or its
	// question answered. A service shows it as a button if it has one (see [Schema.Acknowledge]);
	// otherwise the text already ends with it when the service gets the message. Only the last part
	// of a divided message has it. Only a failure or a warning has a link to acknowledge.
	Link Link

	// Choices lead to the page of a question, each with another answer chosen. See
	// [Message.Buttons].
	Choices []Link

	// Thread identifies the chat message that changes with messages without an incident, such as
	// the messages about a question; "" for none.
	Thread string

	// Digest means that the message lists several that a rule has held.
	Digest bool

	// ID identifies the message in the program that sends it; "" if it does not matter.
	ID string

	// Expires is when the message is worthless; zero if the program does not know.
	Expires time.Time

	// Hops is the number of gateways that the message has passed through, for
	// destinations that are gateways themselves.
	Hops int
}

// dialect returns the chat in whose markup the body is written, or "".
func (m *Message) dialect() markup.Dialect {
	if m.Format != Markdown {
		return ""
	}
	return m.Dialect
}

// WithoutDialect returns m, or a copy whose body is Markdown if it is in the markup of a chat.
func (m *Message) WithoutDialect() *Message {
	d := m.dialect()
	if d == "" {
		return m
	}
	c := *m
	c.Body, c.Dialect = d.Convert(m.Body, Markdown, m.Time.Location()), ""
	return &c
}

// withDefaults returns m, or a copy with its defaults filled in if it has not set them all.
func (m *Message) withDefaults() *Message {
	if m.Type != "" && m.Format != "" && m.Source == m.Format && m.Incident == (Incident{}) && m.Link == (Link{}) &&
		m.Identity != nil && !m.Time.IsZero() {
		return m
	}
	c := *m
	c.Type = cmp.Or(c.Type, Info)
	c.Format = cmp.Or(c.Format, Text)
	c.Source = c.Format
	if c.Incident.ID == "" {
		c.Incident = Incident{}
	} else {
		c.Incident.State = cmp.Or(c.Incident.State, StateOf(c.Type))
	}
	if !c.Asks() && !c.canAcknowledge() {
		c.Link = Link{}
	}
	if c.Identity == nil {
		id := DefaultIdentity()
		c.Identity = &id
	}
	if c.Time.IsZero() {
		c.Time = time.Now()
	}
	return &c
}

// withoutFiles returns a copy of m without its attachments. Without a text, it has lines about
// them.
func (m *Message) withoutFiles() *Message {
	c := *m
	if !hasText(m.Body) {
		c = *m.withFileLines()
	}
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

// NotificationID returns the ID of the notification that shows the incident of
// the message, for services that replace the notification with the same ID, or ""
// if the message has no incident. It has up to 32 characters, a to z, 2 to 7 and,
// in further parts of a divided message, a hyphen and digits.
func (m *Message) NotificationID() string {
	id := m.Incident.ID
	if id == "" || m.Part == 0 {
		return id
	}
	number := fmt.Sprint("-", m.Part+1)
	return id[:len(id)-len(number)] + number
}

// Type is the kind of a message. Destinations show it as a colour, an icon or a priority.
type Type string

// The types of a message. The zero Type counts as [Info].
const (
	Info    Type = "info"
	Success Type = "success"
	Warning Type = "warning"
	Failure Type = "failure"
)

// ParseType parses a type, ignoring case and white space around it. An empty
// text is [Info]. The error lists the types.
func ParseType(s string) (Type, error) {
	switch t := Type(strings.ToLower(strings.TrimSpace(s))); t {
	case "":
		return Info, nil
	case Info, Success, Warning, Failure:
		return t, nil
	}
	return "", fmt.Errorf("unknown type; use info, success, warning or failure")
}

// Color returns the colour of the type, for example "#3AA337".
func (t Type) Color() string {
	switch t {
	case Success:
		return "#3AA337"
	case Warning:
		return "#CACF29"
	case Failure:
		return "#A32037"
	}
	return "#3AA3E3"
}

// ColorInt returns [Type.Color] as a number, with red in the highest of three bytes.
func (t Type) ColorInt() int {
	n, _ := strconv.ParseInt(t.Color()[1:], 16, 32)
	return int(n)
}

// Symbol returns three ASCII characters for destinations without colours and
// icons: [i], [+], [~] or [!].
func (t Type) Symbol() string {
	switch t {
	case Success:
		return "[+]"
	case Warning:
		return "[~]"
	case Failure:
		return "[!]"
	}
	return "[i]"
}

// Identity is the sender that a destination shows.
type Identity struct {
	Name        string // for example "Caddy"
	Description string // for example "Caddy Notifications"
	URL         string // a page about the sender
	Icon        string // URL of a picture, in which {type} and {size} are replaced; "" for none
	Logo        string // URL of a picture for messages of every type; "" for none
}

// DefaultIdentity returns the identity of messages without one. It has no pictures, because a
// reader's program would fetch them from a server that neither the reader nor the operator chose.
func DefaultIdentity() Identity {
	return Identity{Name: "Caddy", Description: "Caddy Notifications", URL: "https://caddyserver.com/"}
}

// icon returns the URL of the picture for a type, or "" if there is none.
func (id *Identity) icon(t Type, pixels int) string {
	if id == nil || id.Icon == "" {
		return ""
	}
	n := strconv.Itoa(pixels)
	return strings.NewReplacer("{type}", string(t), "{size}", n+"x"+n).Replace(id.Icon)
}
