package mail

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/charset"
	"github.com/caddy-notify/caddy-notify/internal/percent"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// ParseParameters reads a field such as Content-Type: its value in lower case, and the texts of its
// parameters by their lower-case names. It also reads common mistakes: unquoted spaces, quotes that
// are not closed, a missing semicolon, and texts in several sections and in any charset (RFC 2231).
func ParseParameters(field string) (value string, params map[string]string) {
	field = strings.TrimSpace(field)
	rest := ""
	if i := strings.IndexAny(field, "; \t"); i >= 0 {
		field, rest = field[:i], field[i:]
	}
	params = map[string]string{}
	sections := map[string][]section{}
	for quotes := true; ; { // false if no quote is closed from here on
		rest = strings.TrimLeft(rest, "; \t")
		i := strings.IndexAny(rest, "=;")
		if i < 0 {
			break
		}
		if rest[i] == ';' { // a parameter without a text
			rest = rest[i:]
			continue
		}
		name := strings.ToLower(strings.TrimSpace(rest[:i]))
		var text string
		text, rest, quotes = cutText(rest[i+1:], quotes)
		if base, number, ok := strings.Cut(name, "*"); ok {
			if s, ok := newSection(number, text); ok {
				sections[base] = append(sections[base], s)
			}
		} else if params[name] == "" {
			params[name] = text
		}
	}
	for name, s := range sections {
		if text := joinSections(s); text != "" {
			params[name] = text
		}
	}
	return strings.ToLower(field), params
}

// cutText returns the text of a parameter at the beginning of s, and the rest. quotes reports
// whether to look for a closing quote.
func cutText(s string, quotes bool) (text, rest string, _ bool) {
	s = strings.TrimLeft(s, " \t")
	if quoted, ok := strings.CutPrefix(s, `"`); ok {
		if quotes {
			text, rest, quotes = cutQuoted(quoted)
		}
		if quotes {
			return text, rest, true
		}
		s = quoted
	}
	text, rest, _ = strings.Cut(s, ";")
	return strings.TrimSpace(text), rest, quotes
}

// cutQuoted returns the text before the closing quote, and the rest. A quote that does not end the
// text is part of it, and so is a backslash that escapes nothing, as in paths of Windows.
func cutQuoted(s string) (text, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\') {
				i++
			}
		case '"':
			rest := strings.TrimLeft(s[i+1:], " \t")
			if rest == "" || rest[0] == ';' || rest[0] == '(' { // a comment
				return b.String(), rest, true
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}

// section is a section of the text of a parameter (RFC 2231). A text in one piece
// is one section.
type section struct {
	number  int
	text    string
	encoded bool // the text has percent escapes; the first section begins with the charset
}

// newSection returns the section for the part of a parameter's name after the first asterisk: 0, 0*
// or nothing.
func newSection(number, text string) (s section, ok bool) {
	number, s.encoded = strings.CutSuffix(number, "*")
	s.text = text
	if number == "" {
		s.encoded = true
		return s, true
	}
	n, err := strconv.Atoi(number)
	s.number = n
	return s, err == nil
}

// joinSections returns the text of sections in any order.
func joinSections(sections []section) string {
	slices.SortStableFunc(sections, func(a, b section) int { return cmp.Compare(a.number, b.number) })
	declared := ""
	if first := &sections[0]; first.encoded {
		if parts := strings.SplitN(first.text, "'", 3); len(parts) == 3 { // charset, language, text
			declared, first.text = parts[0], parts[2]
		}
	}
	var b strings.Builder
	for _, s := range sections {
		if s.encoded {
			s.text = percent.Decode(s.text)
		}
		b.WriteString(s.text)
	}
	text, _ := charset.DecodeString(b.String(), declared)
	return text
}

// fileName returns the file name of a part, or "".
func fileName(disposition, contentType map[string]string) string {
	name := disposition["filename"]
	if name == "" {
		name = contentType["name"]
	}
	// Many programs encode the name like the text of a header (RFC 2047).
	name = path.Base(strings.ReplaceAll(oneLine(name), `\`, "/"))
	if strings.Trim(name, "./") == "" {
		return ""
	}
	return name
}

// oneLine returns a text of a header as one line of UTF-8 without NUL, decoded (RFC 2047).
func oneLine(s string) string {
	s, _ = charset.DecodeHeader(s)
	s = strings.ReplaceAll(s, "\x00", "")
	return strings.TrimSpace(markup.OneLine(s))
}
