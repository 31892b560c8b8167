package notifier

import (
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/internal/percent"
)

// leastSecret is the length from which on a secret is masked within texts: a
// shorter one gives nothing away and would mask half of every sentence.
const leastSecret = 4

// disguisesOf makes what finds secrets in an error or an answer, however they
// are spelled there: with the escapes of URLs, HTML and JSON, all or some, or
// within base64.
func disguisesOf(secrets []string) *disguises {
	d := newDisguises()
	for _, s := range secrets {
		if len(s) < leastSecret {
			continue
		}
		d.add(s)
		// Texts are searched once more without their escapes, all kinds at
		// once. That turns what has escapes itself into something else, and
		// what depends on how it was spelled.
		for _, spelling := range []string{
			s, strings.ReplaceAll(s, `\`, `\\`), jsonEscape(s), html.EscapeString(s), url.QueryEscape(s), url.PathEscape(s), escapeUser(s), escapeSegment(s),
		} {
			if plain, _ := withoutEscapes(spelling); len(plain) >= leastSecret {
				d.add(plain)
			}
		}
	}
	d.link()
	return d
}

// jsonEscape is how JSON has a text.
func jsonEscape(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return string(b[1 : len(b)-1])
}

// redact masks the destination's secrets in a text.
func (d *Destination) redact(text string) string {
	d.masking.Do(func() { d.disguises = disguisesOf(d.schema.secrets()) })
	if d.disguises.shortest == 0 {
		return text
	}
	hidden := d.disguises.find(text)
	if plain, origin := withoutEscapes(text); origin != nil {
		for _, p := range d.disguises.find(plain) {
			hidden = append(hidden, passage{origin[p.start], origin[p.end]})
		}
	}
	return masked(text, hidden)
}

// masked writes a text with one mask in place of passages that overlap.
func masked(text string, hidden []passage) string {
	if len(hidden) == 0 {
		return text
	}
	slices.SortFunc(hidden, func(a, b passage) int { return a.start - b.start })
	var b strings.Builder
	end := 0
	for _, p := range hidden {
		if p.start >= end {
			b.WriteString(text[end:p.start] + mask)
		}
		end = max(end, p.end)
	}
	b.WriteString(text[end:])
	return b.String()
}

// withoutEscapes resolves what URLs, HTML, JSON and the string literals of
// programming languages write in place of a character. origin is where each
// byte comes from, and where the text ends; it is nil where there are no
// escapes.
func withoutEscapes(text string) (plain string, origin []int) {
	if !strings.ContainsAny(text, `%&\`) {
		return text, nil
	}
	b := make([]byte, 0, len(text))
	origin = make([]int, 0, len(text)+1)
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
			origin = append(origin, i)
		}
		i += size
	}
	return string(b), append(origin, len(text))
}

// percentEscape appends what the escape stands for with which s begins, and
// returns the length of the escape, or 0 for none.
func percentEscape(b []byte, s string) ([]byte, int) {
	if n, ok := hexadecimal(s[1:], 2); ok {
		return append(b, byte(n)), 3
	}
	return b, 0
}

// characterReference is like percentEscape.
func characterReference(b []byte, s string) ([]byte, int) {
	n := referenceLen(s)
	if plain := html.UnescapeString(s[:n]); plain != s[:n] {
		return append(b, plain...), n
	}
	return b, 0
}

// maxReference is longer than any name of a character reference.
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

// backslashEscape is like percentEscape.
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

// hexadecimal reads the number that the first digits of s are.
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
