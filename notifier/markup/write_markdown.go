package markup

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// markdownSyntax is the syntax of CommonMark, with tables and struck out text.
var markdownSyntax = &syntax{
	bold: "**", italic: "*", strike: "~~", code: "`", headings: true, tables: true, fences: true, lineBreak: "  \n",
	acrossLines: true, brackets: true, relative: true,
	escape:   escapeMarkdownRune,
	start:    escapeMarkdownStart,
	verbatim: func(s string) string { return s },
	open:     func(string) string { return "[" },
	close:    func(address string) string { return "](" + markdownAddress(address) + ")" },
}

// writeMarkdown returns a tree as Markdown.
func writeMarkdown(doc *html.Node) string {
	for n := range doc.Descendants() {
		if markdownSyntax.signOf(n) != "" && isWord(runeAfter(n)) {
			moveEndOut(n)
		}
	}
	return markdownSyntax.write(doc)
}

// moveEndOut moves the punctuation at the end of an element behind it. In Markdown, a sign
// between punctuation and a word is not the end of emphasis.
func moveEndOut(n *html.Node) {
	last := n
	for last.LastChild != nil {
		last = last.LastChild
	}
	if r, _ := utf8.DecodeLastRuneInString(last.Data); last.Type != html.TextNode || !unicode.IsPunct(r) && !unicode.IsSymbol(r) {
		return
	}
	for p := last.Parent; p != n; p = p.Parent {
		if markdownSyntax.signOf(p) == "" { // the end of a link or of code
			return
		}
	}
	text := strings.TrimRightFunc(last.Data, func(r rune) bool { return !isWord(r) && !unicode.IsSpace(r) })
	n.Parent.InsertBefore(&html.Node{Type: html.TextNode, Data: last.Data[len(text):]}, n.NextSibling)
	last.Data = text
}

// runeAfter returns the first character of the text after an element, or 0 if something else
// comes before it.
func runeAfter(n *html.Node) rune {
	inLine := func(n *html.Node) bool {
		return n.DataAtom != 0 && n.DataAtom != atom.A && n.DataAtom != atom.Code && !endsParagraph(n.DataAtom)
	}
	for n.NextSibling == nil && n.Parent != nil && inLine(n.Parent) {
		n = n.Parent
	}
	n = n.NextSibling
	for n != nil && n.FirstChild != nil && inLine(n) {
		n = n.FirstChild
	}
	if n == nil || n.Type != html.TextNode {
		return 0
	}
	r, _ := utf8.DecodeRuneInString(n.Data)
	return r
}

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

// beginsLink reports whether the bracket that s begins with may begin a link, or the definition
// of one.
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
