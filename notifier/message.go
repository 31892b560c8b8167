package notifier

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Type says what kind of news a message brings. Destinations show it by
// colour, icon or priority.
type Type string

// The types of a message. The zero Type counts as [Info].
const (
	Info    Type = "info"
	Success Type = "success"
	Warning Type = "warning"
	Failure Type = "failure"
)

// ParseType reads a type as a client writes it; the empty text is [Info].
// The error names what is accepted.
func ParseType(s string) (Type, error) {
	switch t := Type(strings.ToLower(strings.TrimSpace(s))); t {
	case "":
		return Info, nil
	case Info, Success, Warning, Failure:
		return t, nil
	}
	return "", fmt.Errorf("unknown type; use info, success, warning or failure")
}

// Color is the colour of the type as six hexadecimal digits behind a #.
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

// ColorInt is [Type.Color] as a number, red in the highest of three bytes.
func (t Type) ColorInt() int {
	n, _ := strconv.ParseInt(t.Color()[1:], 16, 32)
	return int(n)
}

// Symbol is the type in three ASCII characters, for destinations that can
// show neither colour nor picture: [i], [+], [~] and [!].
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

// Format is the markup language of a text.
type Format = markup.Format

// The formats of a text. The zero Format counts as [Text].
const (
	Text     = markup.Text
	Markdown = markup.Markdown
	HTML     = markup.HTML
)

// Message is what a client wants to be told to its destinations, and, once
// the core has merged, converted and cut it for one destination, what a
// service is to send.
type Message struct {
	// Title is one line; it may be empty. A service whose [Schema.MaxTitle]
	// is 0 always gets it empty, since the core has put it into the body.
	Title string

	// Body is the text, written in Format. It may be empty where there are
	// attachments.
	Body string

	// Type is never empty when a service gets the message.
	Type Type

	// Format is how Body (and Title) are written: the client's format on
	// the way in, the destination's format when a service gets the message.
	Format Format

	// Source is the format in which the client wrote the message. The core
	// sets it before it converts.
	Source Format

	// Attachments are files to go along, where the destination can take
	// them. Of a message that was split, the last part carries them.
	Attachments []*Attachment

	// Identity is who the message comes from.
	Identity *Identity

	// Time is when the client sent the message, in the destination's time
	// zone (the parameter tz) when a service gets it.
	Time time.Time

	// Hops counts the gateways that this message has passed through, for
	// destinations that are gateways themselves.
	Hops int
}

// Icon is the address of the picture for the message's type at so many
// pixels square, or "" where the operator has set no icon.
func (m *Message) Icon(pixels int) string { return m.Identity.icon(m.Type, pixels) }

// Text is the title and the body in one, for destinations that know no
// title in some of their modes: the title, sep, the body, and just one of
// them where the other is empty.
func (m *Message) Text(sep string) string {
	switch {
	case m.Title == "":
		return m.Body
	case m.Body == "":
		return m.Title
	}
	return m.Title + sep + m.Body
}

// Identity is who messages come from, where a destination shows it.
type Identity struct {
	Name        string // for example "Caddy"
	Description string // for example "Caddy Notifications"
	URL         string // where to read about the sender
	Icon        string // may hold {type} and {size}; "" for no pictures
	Logo        string // a picture of the sender, whatever the message's type
}

// DefaultIdentity is the identity that messages have whose sender set none:
// the name Caddy, and no pictures, since showing one means that the reader's
// program fetches it from somebody's server.
func DefaultIdentity() Identity {
	return Identity{Name: "Caddy", Description: "Caddy Notifications", URL: "https://caddyserver.com/"}
}

func (id *Identity) icon(t Type, pixels int) string {
	if id == nil || id.Icon == "" {
		return ""
	}
	n := strconv.Itoa(pixels)
	return strings.NewReplacer("{type}", string(t), "{size}", n+"x"+n).Replace(id.Icon)
}
