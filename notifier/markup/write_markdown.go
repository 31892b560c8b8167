package markup

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// markdownSyntax is that of CommonMark, with tables and struck out text.
var markdownSyntax = &syntax{
	bold: "**", italic: "*", strike: "~~", code: "`", headings: true, tables: true, fences: true, lineBreak: "  \n", acrossLines: true, brackets: true, relative: true,
	escape:   escapeMarkdownRune,
	start:    escapeMarkdownStart,
	verbatim: func(s string) string { return s },
	open:     func(string) string { return "[" },
	close:    func(address string) string { return "](" + markdownAddress(address) + ")" },
}

// writeMarkdown returns a tree as Markdown.
func writeMarkdown(doc *html.Node) string { return markdownSyntax.write(doc) }

// escapeMarkdownStart escapes what would be markup at the beginning of a line.
func escapeMarkdownStart(line string) (before string, escaped int) {
	if strings.Contains(line, "|") && chatRow.MatchString(line) {
		return `\`, 0
	}
	if !strings.ContainsAny(line[:1], "#>-+=0123456789") || !markdownStart.MatchString(line) {
		return "", 0
	}
	return `\`, len(line) - len(strings.TrimLeft(line, "0123456789"))
}

// escapeMarkdownRune appends a character with a backslash before it if it would be markup.
func escapeMarkdownRune(out []byte, last rune, rest string) []byte {
	r, n := utf8.DecodeRuneInString(rest)
	next := '\n'
	if n < len(rest) {
		next, _ = utf8.DecodeRuneInString(rest[n:])
	}
	escaped := false
	switch r {
	case '[':
		escaped = beginsLink(rest)
	case ']':
	case '<':
		escaped = next != ' ' && next != '=' && next != '\n'
	case '~':
		escaped = next == r || last == r || isSign(last, rest) && endsEmphasis(rest)
	case '|':
		escaped = next == r || last == r
	default:
		escaped = isMarkdown(last, r, next, rest)
	}
	if escaped {
		out = append(out, '\\')
	}
	return append(out, rest[:n]...)
}

// beginsLink reports whether the bracket that s begins with may be that of a link, or of
// the definition of one.
func beginsLink(s string) bool {
	s = s[:min(len(s), maxLabel)]
	end := strings.IndexByte(s, ']')
	return end < 0 || strings.Contains(s, "](") || strings.Contains(s, "][") || strings.Contains(s, "]:")
}

// markdownAddress returns the address of a link, without a character that would end it.
func markdownAddress(address string) string {
	if open := strings.Count(address, "("); open != strings.Count(address, ")") || strings.Contains(address, ")(") {
		address = strings.NewReplacer("(", "%28", ")", "%29").Replace(address)
	}
	return addressCharacterEscaper.Replace(address)
}

var addressCharacterEscaper = strings.NewReplacer(" ", "%20", "<", "%3C", ">", "%3E", `\`, "%5C", "`", "%60", "|", "%7C")

// referenceElement is the element of a tree with a reference of a chat, which is written as
// it is.
const referenceElement = "chat-reference"
