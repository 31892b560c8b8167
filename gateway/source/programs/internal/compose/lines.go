package compose

import (
	"fmt"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/source"
)

// Lines collects the lines of a body. Its methods ignore empty text.
type Lines struct{ Parts []string }

func (l *Lines) Add(s string) {
	if s = strings.TrimSpace(s); s != "" {
		l.Parts = append(l.Parts, s)
	}
}

// Link adds a Markdown link. If the text or a valid address is missing, it adds only the other.
func (l *Lines) Link(text, address string) {
	switch {
	case !source.IsAddress(address):
		l.Add(text)
	case strings.TrimSpace(text) == "":
		l.Add(address)
	default:
		l.Add(MarkdownLink(text, address))
	}
}

// MarkdownLink returns a link in Markdown.
func MarkdownLink(text, address string) string {
	return "[" + strings.NewReplacer("[", "(", "]", ")").Replace(text) + "](" + address + ")"
}

// More notes in the text, and in a warning of m, that n more of what are left out. It does nothing
// if n is not positive.
func (l *Lines) More(m *source.Message, n int, what string) {
	if n > 0 {
		l.Add(fmt.Sprintf("and %d more", n))
		m.Warnings = append(m.Warnings, fmt.Sprintf("The message has %d %s more than are sent", n, what))
	}
}

func (l *Lines) String() string { return strings.Join(l.Parts, "\n") }

// MaxFacts is the maximum number of fields, buttons or cells read from one part of a message.
const MaxFacts = 25

// the limits of Base may exceed the site's
func Field(name, value string) string {
	if name == "" || value == "" {
		return name + value
	}
	return name + ": " + value
}
