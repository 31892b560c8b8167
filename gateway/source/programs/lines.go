package programs

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/source"
)

// lines collects the lines of a body. Its methods ignore empty text.
type lines struct{ parts []string }

// maxBody is the maximum length of the body that an API makes from a payload, in
// bytes.
const maxBody = 64 << 10

func (l *lines) add(s string) {
	if s = strings.TrimSpace(s); s != "" {
		l.parts = append(l.parts, s)
	}
}

// link adds a Markdown link. If the text or a valid address is missing, it adds the
// other one.
func (l *lines) link(text, address string) {
	switch {
	case !source.IsAddress(address):
		l.add(text)
	case strings.TrimSpace(text) == "":
		l.add(address)
	default:
		l.add(markdownLink(text, address))
	}
}

// markdownLink returns a link in Markdown.
func markdownLink(text, address string) string {
	return "[" + strings.NewReplacer("[", "(", "]", ")").Replace(text) + "](" + address + ")"
}

func (l *lines) String() string {
	s := strings.Join(l.parts, "\n")
	if len(s) > maxBody {
		s = strings.ToValidUTF8(s[:maxBody], "") + "…"
	}
	return s
}

// maxFacts is the maximum number of fields, buttons or cells to read of one part of a
// message.
const maxFacts = 25

// fact returns a field of an attachment or embed as a line.
func fact(name, value string) string {
	if name == "" || value == "" {
		return name + value
	}
	return name + ": " + value
}
