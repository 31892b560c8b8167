package mail

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// text is a text of a mail.
type text struct {
	text    string
	format  markup.Format
	unknown string // the charset that is declared but unknown; "" if there is none
}

// texts are the texts of a mail or of a part, in order.
type texts []text

// plain reports whether there are texts and all of them are plain.
func (t texts) plain() bool {
	for _, s := range t {
		if s.format != markup.Text {
			return false
		}
	}
	return len(t) > 0
}

// better returns the alternative to show: t, or o after it. Plain text is better than HTML.
func (t texts) better(o texts) texts {
	if t.plain() || len(o) == 0 {
		return t
	}
	if o.plain() || len(t) == 0 {
		return o
	}
	return t
}

// join returns all texts as one. If some of them are plain text and others
// HTML, the result is plain text.
func (t texts) join() (string, markup.Format) {
	format := markup.Text
	if len(t) > 0 && t[0].format == markup.HTML {
		format = markup.HTML
		for _, s := range t {
			if s.format != markup.HTML {
				format = markup.Text
			}
		}
	}
	separator := "\n\n"
	if format == markup.HTML {
		separator = "<br>\n"
	}
	all := make([]string, len(t))
	for i, s := range t {
		all[i] = s.text
		if s.format != format {
			all[i] = markup.Convert(s.text, s.format, format)
		}
	}
	return strings.Join(all, separator), format
}

// unknownCharset returns the charset of the first text whose charset is unknown, or "".
func (t texts) unknownCharset() string {
	for _, s := range t {
		if s.unknown != "" {
			return s.unknown
		}
	}
	return ""
}

// unflow joins the lines of a text with format=flowed (RFC 3676): a line that ends with a space
// continues in the next line, if that is quoted as deeply and does not begin a signature. delsp
// removes the space.
func unflow(s string, delsp bool) string {
	var b strings.Builder
	flows, depth := false, 0
	for line := range strings.Lines(s) {
		line, ended := strings.CutSuffix(line, "\n")
		text := strings.TrimLeft(line, ">")
		quotes := len(line) - len(text)
		text = strings.TrimPrefix(text, " ") // space-stuffed
		isSeparator := text == "-- "
		if flows && (quotes != depth || isSeparator) {
			b.WriteByte('\n')
			flows = false
		}
		if !flows && quotes > 0 {
			b.WriteString(line[:quotes] + " ")
		}
		flows, depth = ended && !isSeparator && strings.HasSuffix(text, " "), quotes
		if flows && delsp {
			text = text[:len(text)-1]
		}
		b.WriteString(text)
		if ended && !flows {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
