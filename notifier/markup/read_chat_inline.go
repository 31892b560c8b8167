package markup

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Bounds of the marks within one paragraph that are open at a time, and of the text of a
// link in bytes. What exceeds them is text.
const (
	maxOpenMarks = 32
	maxLabel     = 2000
)

// inline appends the text of a paragraph or a line to parent.
func (r *chatReader) inline(parent *html.Node, text string) {
	in := inlineReader{chatReader: r, text: text, open: []mark{{node: parent}}}
	in.read()
}

// mark is an open mark of emphasis, with its content.
type mark struct {
	sign string
	node *html.Node
}

// inlineReader reads the text of one paragraph.
type inlineReader struct {
	*chatReader
	text   string
	pos    int
	open   []mark  // the paragraph, and the marks that are open, the innermost last
	absent [4]bool // no code ends with so many backticks
	linked bool    // the text belongs to a link
	plain  strings.Builder
}

func (in *inlineReader) top() *html.Node { return in.open[len(in.open)-1].node }

// flush appends the pending text.
func (in *inlineReader) flush() {
	if in.plain.Len() == 0 {
		return
	}
	s := in.plain.String()
	in.plain.Reset()
	if in.names {
		s = strings.ReplaceAll(ReplaceEmojis(s), separator, "")
	}
	for i, line := range strings.Split(s, "\n") {
		if i > 0 {
			element(in.top(), atom.Br)
		}
		line = strings.ReplaceAll(line, "\t", "    ")
		if i > 0 || in.top().LastChild == nil {
			line = keepGaps("\n" + line)[1:]
		} else {
			line = keepGaps("x" + line)[1:]
		}
		addText(in.top(), line)
	}
}

func (in *inlineReader) read() {
	for in.pos < len(in.text) {
		rest := in.text[in.pos:]
		c := rest[0]
		n := 0
		switch c {
		case '`':
			if !strings.HasPrefix(rest[1:], separator) {
				n = in.code(rest)
			}
		case '<':
			if !strings.HasPrefix(rest[1:], separator) {
				n = in.angle(rest)
			}
		case '[', '!':
			n = in.link(rest)
		case '&':
			n = in.entity(rest)
		case '\\':
			if in.escapes && len(rest) > 1 && isPunctuation(rest[1]) {
				in.plain.WriteByte(rest[1])
				n = 2
			}
		case '\n':
			if in.slack { // emphasis ends with the line
				in.endAll()
			}
		case '*', '_', '~', '|':
			n = in.marks(rest)
		default:
			if isLetter(c) && (in.pos == 0 || !isWordCharacter(rune(in.text[in.pos-1]))) {
				n = in.address(rest)
			}
		}
		if n == 0 {
			in.plain.WriteByte(c)
			n = 1
		}
		in.pos += n
	}
	in.endAll()
}

// endAll makes the marks that are still open text.
func (in *inlineReader) endAll() {
	in.flush()
	for len(in.open) > 1 {
		in.abandon()
	}
}

// abandon makes the innermost open mark text.
func (in *inlineReader) abandon() {
	last := in.open[len(in.open)-1]
	in.open = in.open[:len(in.open)-1]
	addText(in.top(), last.sign)
	for c := last.node.FirstChild; c != nil; c = last.node.FirstChild {
		last.node.RemoveChild(c)
		if c.Type == html.TextNode {
			addText(in.top(), c.Data)
		} else {
			in.top().AppendChild(c)
		}
	}
}

func isPunctuation(c byte) bool {
	return c > ' ' && c < utf8.RuneSelf && !isWordCharacter(rune(c))
}

// code appends the code that s begins with, and returns its length.
func (in *inlineReader) code(s string) int {
	width := len(s) - len(strings.TrimLeft(s, "`"))
	if width < len(in.absent) && in.absent[width] {
		in.plain.WriteString(s[:width])
		return width
	}
	scope := s
	if in.slack {
		scope, _, _ = strings.Cut(s, "\n")
	}
	for i := width; i < len(scope); {
		at := strings.IndexByte(scope[i:], '`')
		if at < 0 {
			break
		}
		i += at
		run := len(scope[i:]) - len(strings.TrimLeft(scope[i:], "`"))
		if run == width {
			content := strings.ReplaceAll(scope[width:i], "\n", " ")
			if in.entities && !in.escapes {
				content = slackEntities.Replace(content)
			}
			if trimmed := strings.TrimSpace(content); trimmed == "" {
				break
			} else if strings.HasPrefix(trimmed, "`") || strings.HasSuffix(trimmed, "`") {
				content = trimmed
			}
			in.flush()
			addText(element(in.top(), atom.Code), content)
			return i + width
		}
		i += run
	}
	if width < len(in.absent) && !in.slack {
		in.absent[width] = true
	}
	in.plain.WriteString(s[:width])
	return width
}

var slackEntities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// entity appends the character reference that s begins with, and returns its length.
func (in *inlineReader) entity(s string) int {
	if !in.entities {
		return 0
	}
	for _, name := range [...]string{"&lt;", "&gt;", "&amp;"} {
		if strings.HasPrefix(s, name) {
			in.flush() // the result is neither markup nor the name of an emoji
			addText(in.top(), html.UnescapeString(name))
			return len(name)
		}
	}
	return 0
}

// address appends the address that s begins with, and returns its length.
func (in *inlineReader) address(s string) int {
	n := bareLength(s, emphasisSigns)
	if !in.entities || in.escapes {
		in.plain.WriteString(s[:n])
		return n
	}
	if strings.HasSuffix(s[:n], "&amp") && strings.HasPrefix(s[n:], ";") {
		n++
	}
	for _, name := range [...]string{"&lt;", "&gt;"} {
		if i := strings.Index(s[:min(len(s), n+len(name))], name); i >= 0 { // bareLength leaves out the semicolon at the end
			n = min(n, i)
		}
	}
	in.plain.WriteString(slackEntities.Replace(s[:n]))
	return n
}

// angle appends the reference, address or link between < and > that s begins with, and
// returns its length.
func (in *inlineReader) angle(s string) int {
	end := strings.IndexAny(s[1:min(len(s), maxLabel)], "<>\n")
	if end < 0 || s[1+end] != '>' {
		return 0
	}
	inner, length := s[1:1+end], end+2
	if m := in.refers.FindStringSubmatch(s[:length]); m != nil && m[0] == s[:length] {
		in.flush()
		words := in.words(m, in.zone)
		if in.entities {
			words = slackEntities.Replace(words)
		}
		addText(in.top(), words)
		return length
	}
	target, label, labelled := strings.Cut(inner, "|")
	if in.entities {
		target = slackEntities.Replace(target)
	}
	address := linkAddress(target)
	if !isWebAddress(address) || strings.ContainsAny(strings.TrimSpace(target), " \t") {
		return 0
	}
	in.flush()
	if shown := strings.TrimPrefix(target, "mailto:"); !labelled || strings.TrimSpace(label) == "" || label == shown {
		addText(in.top(), shown)
		return length
	}
	in.anchor(label, address)
	return length
}

// anchor appends a link.
func (in *inlineReader) anchor(label, address string) {
	a := element(in.top(), atom.A)
	a.Attr = []html.Attribute{{Key: "href", Val: address}}
	inner := inlineReader{chatReader: in.chatReader, text: label, open: []mark{{node: a}}, linked: true}
	inner.read()
}

// link appends the link [text](address) or the picture that s begins with, and returns its
// length.
func (in *inlineReader) link(s string) int {
	picture := s[0] == '!'
	if picture && in.underline {
		return 0 // Discord has none
	}
	label, address, n := parseLink(strings.TrimPrefix(s, "!"))
	if n == 0 || in.linked {
		return 0
	}
	if picture {
		n++
	}
	if address = linkAddress(address); !isWebAddress(address) {
		return 0
	}
	in.flush()
	if strings.TrimSpace(label) == "" {
		label = address
	}
	in.anchor(label, address)
	return n
}

// parseLink returns the parts and the length of the link [label](address "title") that s
// begins with. The length is 0 if there is none.
func parseLink(s string) (label, address string, length int) {
	if s == "" || s[0] != '[' {
		return "", "", 0
	}
	end := closingBracket(s)
	if end == 0 || !strings.HasPrefix(s[end:], "](") {
		return "", "", 0
	}
	label = s[1:end]
	i := end + 2
	rest := s[i:min(len(s), i+maxLabel)]
	i += len(rest) - len(strings.TrimLeft(rest, blanks))
	rest = strings.TrimLeft(rest, blanks)
	if strings.HasPrefix(rest, "<") {
		n := strings.IndexAny(rest[1:], "<>\n") + 1
		if n == 0 || rest[n] != '>' {
			return "", "", 0
		}
		address, rest, i = rest[1:n], rest[n+1:], i+n+1
	} else {
		n, depth := 0, 0
		for n < len(rest) && strings.IndexByte(blanks, rest[n]) < 0 && (rest[n] != ')' || depth > 0) {
			switch rest[n] {
			case '\\':
				if n+1 < len(rest) {
					n++
				}
			case '(':
				depth++
			case ')':
				depth--
			}
			n++
		}
		address, rest, i = rest[:n], rest[n:], i+n
	}
	after := strings.TrimLeft(rest, blanks)
	if len(after) < len(rest) && after != "" && strings.IndexByte(`"'`, after[0]) >= 0 {
		n := strings.IndexByte(after[1:], after[0])
		if n < 0 {
			return "", "", 0
		}
		i += len(rest) - len(after) + n + 2
		rest = after[n+2:]
		after = strings.TrimLeft(rest, blanks)
	}
	if !strings.HasPrefix(after, ")") || strings.Contains(rest[:len(rest)-len(after)], "\n\n") {
		return "", "", 0
	}
	return label, unescapeAddress(address), i + len(rest) - len(after) + 1
}

// closingBracket returns the index of the bracket that closes the one which s begins with,
// or 0.
func closingBracket(s string) int {
	depth := 0
	for i := 0; i < min(len(s), maxLabel); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return i
			}
		case '\n':
			if strings.HasPrefix(s[i:], "\n\n") {
				return 0
			}
		}
	}
	return 0
}

// unescapeAddress returns an address without the backslashes before its punctuation.
func unescapeAddress(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && isPunctuation(s[i+1]) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// marks reads the run of equal signs that s begins with, and returns its length. It closes
// marks that are open, and opens others.
func (in *inlineReader) marks(s string) int {
	length := len(s) - len(strings.TrimLeft(s, s[:1]))
	before, _ := utf8.DecodeLastRuneInString(in.text[:in.pos])
	after, _ := utf8.DecodeRuneInString(s[length:])
	if in.pos == 0 {
		before = '\n'
	}
	if length == len(s) {
		after = '\n'
	}
	opens, closes := in.flanks(s[0], before, after)
	left := length
	for left > 0 && closes {
		i := len(in.open) - 1
		for i > 0 && (in.open[i].sign[0] != s[0] || len(in.open[i].sign) > left) {
			i--
		}
		if i == 0 {
			break
		}
		in.flush()
		for len(in.open)-1 > i {
			in.abandon()
		}
		outer, inner := &in.open[i-1], &in.open[i]
		if left == 2 && len(outer.sign) == 2 && outer.sign[0] == s[0] && outer.node.FirstChild == nil { // ***a** b*
			outer.sign, inner.sign = inner.sign, outer.sign
			outer.node.Data, inner.node.Data = inner.node.Data, outer.node.Data
			outer.node.DataAtom, inner.node.DataAtom = inner.node.DataAtom, outer.node.DataAtom
		}
		if in.open[i].node.FirstChild == nil {
			break
		}
		closed := in.open[i]
		in.open = in.open[:i]
		in.top().AppendChild(closed.node)
		left -= len(closed.sign)
	}
	for left > 0 && opens && len(in.open) < maxOpenMarks {
		size := min(left, 2)
		tag := in.tag(s[0], size)
		if tag == 0 || left > 3 {
			break
		}
		in.flush()
		in.open = append(in.open, mark{s[:size], &html.Node{Type: html.ElementNode, Data: tag.String(), DataAtom: tag}})
		left -= size
	}
	in.plain.WriteString(s[:left])
	return length
}

// flanks reports whether a run of signs between two characters can open or close marks.
func (in *inlineReader) flanks(sign byte, before, after rune) (opens, closes bool) {
	isSpace := func(r rune) bool { return unicode.IsSpace(r) || string(r) == separator }
	opens, closes = !isSpace(after), !isSpace(before)
	isWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	isPunct := func(r rune) bool { return !unicode.IsSpace(r) && !isWord(r) }
	switch {
	case in.slack, sign == '_':
		opens, closes = opens && !isWord(before), closes && !isWord(after)
	case sign != '*':
	case opens && isPunct(after) && isWord(before): // as in CommonMark
		opens = false
	case closes && isPunct(before) && isWord(after):
		closes = false
	}
	return opens, closes
}

// tag returns the element for a number of equal signs, or 0.
func (in *inlineReader) tag(sign byte, size int) atom.Atom {
	switch {
	case sign == '*' && (size == 2 || in.slack), sign == '_' && size == 2 && !in.slack && !in.underline:
		return atom.Strong
	case sign == '_' && size == 2 && in.underline:
		return atom.U
	case sign == '*', sign == '_' && size == 1:
		return atom.Em
	case sign == '~' && (size == 2 || in.slack):
		return atom.Del
	case sign == '|' && size == 2 && in.spoilers:
		return atom.Span
	}
	return 0
}

// emphasisSigns may follow an address in a text that is markup.
const emphasisSigns = "*_~"

// bareLength returns the length of the address that s begins with, or 0: an address with a scheme
// and a host, or one that begins with www. It ends as people expect: before white space, a sign
// that encloses it, or the punctuation after it. signs may follow it, too.
func bareLength(s, signs string) int {
	n := schemeLength(s)
	if n == 0 || n == len(s) {
		return 0
	}
	start := n
	var open [2]int // parentheses and brackets
	for n < len(s) {
		c := s[n]
		if c <= ' ' || strings.IndexByte("<>`\"\\|", c) >= 0 {
			break
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[n:])
			if unicode.IsSpace(r) || unicode.Is(unicode.Cc, r) {
				break
			}
			n += size
			continue
		}
		if c == '(' {
			open[0]++
		} else if c == '[' {
			open[1]++
		} else if c == ')' {
			if open[0]--; open[0] < 0 {
				break
			}
		} else if c == ']' {
			if open[1]--; open[1] < 0 || strings.HasPrefix(s[n:], "](") || strings.HasPrefix(s[n:], "][") {
				break
			}
		}
		n++
	}
	n = start + len(strings.TrimRight(s[start:n], "?!.,:;'([&"+signs))
	if n == start {
		return 0
	}
	return n
}

// maxScheme is the maximum length of the scheme of an address in a text.
const maxScheme = 20

// schemeLength returns the length of https://, of such a word before another address, or of
// www. that s begins with, or 0.
func schemeLength(s string) int {
	if len(s) >= len("www.") && strings.EqualFold(s[:len("www.")], "www.") {
		return len("www.")
	}
	n := 0
	for n < min(len(s), maxScheme) && (isLetter(s[n]) || n > 0 && !isNotInScheme(rune(s[n]))) {
		n++
	}
	if n < 2 || !strings.HasPrefix(s[n:], "://") {
		return 0
	}
	return n + len("://")
}

func startsWithHTTP(s string) bool {
	return len(s) >= len("http") && strings.EqualFold(s[:len("http")], "http")
}
