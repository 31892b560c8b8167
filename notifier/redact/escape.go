package redact

import (
	"html"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/internal/percent"
)

// unescape decodes the escapes of URLs, HTML, JSON and the string literals of
// programming languages in text. offsets[i] is where byte i of plain comes
// from in text, and offsets[len(plain)] is len(text); offsets is nil if text
// has no escapes.
func unescape(text string) (plain string, offsets []int) {
	if !strings.ContainsAny(text, `%&\`) {
		return text, nil
	}
	b := make([]byte, 0, len(text))
	offsets = make([]int, 0, len(text)+1)
	for i := 0; i < len(text); {
		n := len(b)
		var size int
		switch text[i] {
		case '%':
			b, size = percentEscape(b, text[i:])
		case '&':
			b, size = characterReference(b, text[i:])
		case '\\':
			b, size = backslashEscape(b, text[i:])
		}
		if size == 0 {
			b, size = append(b, text[i]), 1
		}
		for range len(b) - n {
			offsets = append(offsets, i)
		}
		i += size
	}
	return string(b), append(offsets, len(text))
}

// percentEscape decodes the percent escape that s begins with and appends the
// character to b. It returns the length of the escape, or 0 if there is none.
func percentEscape(b []byte, s string) ([]byte, int) {
	if n, ok := hexadecimal(s[1:], 2); ok {
		return append(b, byte(n)), 3
	}
	return b, 0
}

// characterReference is like percentEscape for a character reference of HTML.
func characterReference(b []byte, s string) ([]byte, int) {
	n := referenceLen(s)
	if plain := html.UnescapeString(s[:n]); plain != s[:n] {
		return append(b, plain...), n
	}
	return b, 0
}

// maxReference is the length of the longest name of a character reference.
const maxReference = 31

// referenceLen returns the length of the &name; or &#number; that s begins
// with, or 0.
func referenceLen(s string) int {
	start := 1
	if strings.HasPrefix(s, "&#") {
		start = 2
	}
	i := start
	for i < len(s) && (s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z' || s[i] >= '0' && s[i] <= '9') {
		i++
	}
	if i == start || i > start+maxReference || i == len(s) || s[i] != ';' {
		return 0
	}
	return i + 1
}

// backslashEscape is like percentEscape for an escape of JSON or of a string
// literal.
func backslashEscape(b []byte, s string) ([]byte, int) {
	if len(s) < 2 {
		return b, 0
	}
	switch s[1] {
	case '"', '\'', '\\', '/':
		return append(b, s[1]), 2
	case 'a', 'b', 'f', 'n', 'r', 't', 'v':
		return append(b, "\a\b\f\n\r\t\v"[strings.IndexByte("abfnrtv", s[1])]), 2
	case 'x':
		if n, ok := hexadecimal(s[2:], 2); ok {
			return append(b, byte(n)), 4
		}
	case 'U':
		if n, ok := hexadecimal(s[2:], 8); ok {
			return utf8.AppendRune(b, n), 10
		}
	case 'u':
		n, ok := hexadecimal(s[2:], 4)
		if !ok {
			return b, 0
		}
		if utf16.IsSurrogate(n) && strings.HasPrefix(s[6:], `\u`) {
			if low, ok := hexadecimal(s[8:], 4); ok {
				return utf8.AppendRune(b, utf16.DecodeRune(n, low)), 12
			}
		}
		return utf8.AppendRune(b, n), 6
	}
	return b, 0
}

// hexadecimal returns the number in the first digits of s.
func hexadecimal(s string, digits int) (n rune, ok bool) {
	if len(s) < digits {
		return 0, false
	}
	for i := range digits {
		d := percent.Digit(s[i])
		if d < 0 {
			return 0, false
		}
		n = n<<4 | rune(d)
	}
	return n, true
}
