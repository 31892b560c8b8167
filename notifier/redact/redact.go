// Package redact masks secrets in texts such as error messages and answers of
// servers, whether they appear as they are, escaped or encoded.
package redact

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

// Mask is what a secret is replaced by.
const Mask = "xxxxx"

// minSecret is the length in bytes of the shortest secret that is masked. A
// shorter one would be found in much of any text.
const minSecret = 4

// Masker masks secrets in texts. It may be used concurrently.
type Masker struct{ search *searcher }

// NewMasker returns a Masker for secrets. Secrets shorter than 4 bytes are
// ignored.
func NewMasker(secrets []string) *Masker {
	d := newSearcher()
	for _, s := range secrets {
		if len(s) < minSecret {
			continue
		}
		d.add(s)
		// Mask also searches the text with its escapes decoded. That changes
		// a secret that contains escapes itself; how depends on the way in
		// which the text escapes it.
		for _, spelling := range []string{
			s, strings.ReplaceAll(s, `\`, `\\`), jsonEscape(s), html.EscapeString(s), url.QueryEscape(s),
		} {
			if plain, _ := withoutEscapes(spelling); len(plain) >= minSecret {
				d.add(plain)
			}
		}
	}
	d.link()
	return &Masker{d}
}

// jsonEscape is how JSON has a text.
func jsonEscape(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return string(b[1 : len(b)-1])
}

// Mask returns text with every secret replaced by [Mask]. It finds a secret as
// it is, with any of its characters escaped as in URLs, HTML, JSON or string
// literals, and within base64.
func (m *Masker) Mask(text string) string {
	if m.search.shortest == 0 {
		return text
	}
	hidden := m.search.find(text)
	if plain, origin := withoutEscapes(text); origin != nil {
		for _, p := range m.search.find(plain) {
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
			b.WriteString(text[end:p.start] + Mask)
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
