package markup

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

var lineBreaks = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ")

// OneLine returns s without line breaks at its ends and with a space for each
// other one. Titles become mail subjects and headers, which have one line.
func OneLine(s string) string {
	if !strings.ContainsAny(s, "\r\n") {
		return s
	}
	return lineBreaks.Replace(strings.Trim(s, "\r\n"))
}

// Printable returns s as one line for a terminal or a log. It leaves out control characters and
// characters that change the direction of text, with which a foreign text could look like another
// one.
func Printable(s string) string {
	plain := true
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\u2028', r == '\u2029':
			return ' '
		case unicode.IsControl(r), unicode.In(r, unicode.Bidi_Control):
			return -1
		}
		return r
	}, OneLine(s))
}

// FirstLine returns the first line of s that is not blank, trimmed.
func FirstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(s)
}

// JoinLines joins the lines that are not empty.
func JoinLines(lines ...string) string {
	return strings.Join(slices.DeleteFunc(lines, func(s string) bool { return s == "" }), "\n")
}

const ellipsis = "…"

// Truncate returns s, or its first max characters followed by an ellipsis if s
// is longer.
func Truncate(s string, max int) string {
	if len(s) <= max {
		return s
	}
	if n := Characters.index(s, max); n < len(s) {
		return s[:n] + ellipsis
	}
	return s
}

// TruncateBytes returns s, or as many of its characters as fit into max bytes followed by an
// ellipsis if s is longer. Invalid UTF-8 is replaced by U+FFFD. It is for limits of memory;
// [Truncate] is for limits of visible text.
func TruncateBytes(s string, max int) string {
	if len(s) > max {
		for max > 0 && !utf8.RuneStart(s[max]) {
			max--
		}
		s = s[:max] + ellipsis
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
