package compose

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/source"
)

// Lines collects the lines of a body. Its methods ignore empty text.
type Lines struct{ Parts []string }

// MaxBody is the maximum length of the body that an API makes from a payload, in
// bytes.
const MaxBody = 64 << 10

func (l *Lines) Add(s string) {
	if s = strings.TrimSpace(s); s != "" {
		l.Parts = append(l.Parts, s)
	}
}

// Link adds a Markdown link. If the text or a valid address is missing, it adds the
// other one.
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

func (l *Lines) String() string {
	s := strings.Join(l.Parts, "\n")
	if len(s) > MaxBody {
		s = strings.ToValidUTF8(s[:MaxBody], "") + "…"
	}
	return s
}

// MaxFacts is the maximum number of fields, buttons or cells to read of one part of a
// message.
const MaxFacts = 25

// Field returns a field of an attachment or embed as a line.
func Field(name, value string) string {
	if name == "" || value == "" {
		return name + value
	}
	return name + ": " + value
}
