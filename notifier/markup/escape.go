package markup

import (
	"strings"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// EscapeMarkdown returns Markdown that shows a plain text unchanged: markup characters get a
// backslash, and indentation is kept with no-break spaces. Addresses stay readable, and programs
// that turn addresses into links still recognize them.
func EscapeMarkdown(text string) string {
	var b strings.Builder
	for line := range strings.Lines(lineEnds.Replace(text)) {
		escapeLine(&b, line)
	}
	return b.String()
}

// markdownStart matches, at the beginning of a line, the start of a heading, a quotation, a list
// item or a rule; for a number, up to the mark after it.
var markdownStart = lazyregexp.New(`^(?:[#>]|[-+](?:[-+\s]|$)|=+\s*$|[0-9]{1,9}[.)](?:\s|$))`)

// codeIndent is the width of an indentation that makes a line code.
const codeIndent = 4

func escapeLine(b *strings.Builder, line string) {
	rest := strings.TrimLeft(line, " \t")
	indent := strings.ReplaceAll(line[:len(line)-len(rest)], "\t", "    ")
	if len(indent) >= codeIndent {
		indent = strings.ReplaceAll(indent, " ", noBreakSpace)
	}
	b.WriteString(indent)
	if strings.ContainsAny(rest[:min(len(rest), 1)], "#>-+=0123456789") && markdownStart.MatchString(rest) { // few lines need the second
		mark := strings.TrimLeft(rest, "0123456789") // the mark comes after a number
		b.WriteString(rest[:len(rest)-len(mark)] + `\` + mark[:1])
		rest = mark[1:]
	}
	last := '\n'
	for i := 0; i < len(rest); {
		if n := addressLength(rest[i:]); n > 0 && !isWordCharacter(last) {
			b.WriteString(rest[i : i+n])
			last, i = 'a', i+n
			continue
		}
		r, n := utf8.DecodeRuneInString(rest[i:])
		next := '\n'
		if i+n < len(rest) {
			next, _ = utf8.DecodeRuneInString(rest[i+n:])
		}
		if isMarkdown(last, r, next, rest[i:]) {
			b.WriteByte('\\')
		}
		b.WriteString(rest[i : i+n])
		last, i = r, i+n
	}
}

// isMarkdown reports whether r, between two characters, could be markup. text begins
// with it.
func isMarkdown(last, r, next rune, text string) bool {
	switch r {
	case '`', '[', ']', '<', '|', '~':
		return true
	case '*':
		return last != ' ' || next != ' '
	case '_':
		return !isWordCharacter(last) || !isWordCharacter(next)
	case '\\':
		return !isWordCharacter(next) && next != ' ' && next != '\t'
	case '&':
		return referenceLength(text) > 0
	}
	return false
}

// isWordCharacter reports whether r is a letter or digit. Everything beyond ASCII
// counts as a letter.
func isWordCharacter(r rune) bool {
	return r >= utf8.RuneSelf || isLetter(byte(r)) || r >= '0' && r <= '9'
}

// addressCharacters are the characters of addresses that are not markup in any text.
const addressCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/?#@!$&'()+,;=%"

// addressLength returns the length of the HTTP or HTTPS address that s begins with,
// up to a character that could be markup, or 0.
func addressLength(s string) int {
	host, ok := strings.CutPrefix(s, "https://")
	if !ok {
		if host, ok = strings.CutPrefix(s, "http://"); !ok {
			return 0
		}
	}
	path := host[ipv6Length(host):]
	return len(s) - len(strings.TrimLeft(path, addressCharacters))
}

// ipv6Length returns the length of the [address] of an IPv6 host that s begins with,
// or 0. It is no part of a link, such as [text](address) and [text][name].
func ipv6Length(s string) int {
	if !strings.HasPrefix(s, "[") {
		return 0
	}
	n := len(s) - len(strings.TrimLeft(s[1:], "0123456789abcdefABCDEF:."))
	if rest := s[n:]; !strings.HasPrefix(rest, "]") || strings.HasPrefix(rest, "](") || strings.HasPrefix(rest, "][") {
		return 0
	}
	return n + 1
}
