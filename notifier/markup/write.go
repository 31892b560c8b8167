package markup

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// writeHTML returns a tree as HTML.
func writeHTML(doc *html.Node) string {
	var b strings.Builder
	for n := range doc.ChildNodes() {
		if n.PrevSibling != nil && endsParagraph(n.DataAtom) {
			b.WriteByte('\n')
		}
		_ = html.Render(&b, n) // it fails only if the writer does, or for a void element with content
	}
	return b.String()
}

// syntax is how Markdown or a chat writes a text.
type syntax struct {
	bold, italic, strike string // around such text; "" if there is no sign
	code                 string // around code within a line
	headings, tables     bool   // a heading without a sign is bold, and a row without one a line
	fences               bool   // code may name its language, and have longer signs around it
	lineBreak            string // within a paragraph
	acrossLines          bool   // emphasis goes on after a line break
	brackets             bool   // brackets in the text of a link are escaped
	nesting              int    // how many times a nested list is indented

	// escape appends the rune that rest begins with as text. last is the rune before it.
	escape func(out []byte, last rune, rest string) []byte

	// start returns the text to put before a line so that the line is text.
	start func(line string) (before string, escaped int)

	// verbatim returns code as the chat reads it.
	verbatim func(string) string

	// escapesAddresses means that addresses in a text are escaped like all text.
	escapesAddresses bool

	// relative means that a link may lead to an address without a scheme. In a chat, a link to
	// !channel would be a mention.
	relative bool

	// edges means that signs of emphasis have an effect only at the edges of words. A character
	// that is not a letter and has no width makes an edge.
	edges bool

	// open and close are before and after the text of a link. They get the address.
	open, close func(address string) string
}

// writer writes a tree in a syntax.
type writer struct {
	*syntax
	out    []byte
	prefix string // of each line
	last   string // prefix of the last line
	line   int    // length of out when the text of the last line began
	gap    int    // line breaks that are due, of blocks
	breaks int    // line breaks that are due, within a paragraph
	space  bool   // a space is due
	fresh  bool   // the line has only the mark of a list item
	single int    // within elements that have no line breaks
	cell   bool   // within a cell of Markdown
	due    []*sign
	open   []*sign
	closed sign // the last sign that was closed, at the end of out
	ended  int  // length of out then
	lists  int
	links  int
}

// sign is a sign of emphasis, or the parts of a link.
type sign struct {
	open, close string
	silent      bool // it is not written, because it would have no effect
	link        bool
}

// write returns a tree in a syntax.
func (s *syntax) write(doc *html.Node) string {
	w := &writer{syntax: s}
	w.children(doc)
	return string(w.out)
}

func (w *writer) children(n *html.Node) {
	for c := range n.ChildNodes() {
		w.node(c)
	}
}

// block ends the current block. At least n line breaks come before the next text.
func (w *writer) block(n int) {
	switch {
	case w.single > 0:
		w.space = true
	case !w.fresh && len(w.out) > 0:
		w.gap = max(w.gap, n)
	}
	if w.single == 0 {
		w.space, w.breaks = false, 0
	}
}

// begin begins to write in the current line, or in the one that is due.
func (w *writer) begin() {
	if w.breaks > 1 && w.gap == 0 && !w.fresh && w.acrossLines { // two line breaks end a paragraph
		w.gap = 2
	}
	n := w.gap
	if n == 0 && !w.fresh && len(w.out) > 0 {
		n = w.breaks
	}
	if n > 0 {
		if w.gap > 0 || !w.acrossLines {
			w.suspend()
		}
		if w.gap == 0 {
			w.out = append(w.out, strings.TrimSuffix(w.lineBreak, "\n")...)
		}
		common := 0
		for common < min(len(w.last), len(w.prefix)) && w.last[common] == w.prefix[common] {
			common++
		}
		for i := range n {
			if i > 0 {
				w.out = append(w.out, strings.TrimRight(w.prefix[:common], " ")...)
			}
			w.out = append(w.out, '\n')
		}
		w.space = false
	}
	if n > 0 || len(w.out) == 0 {
		w.out = append(w.out, w.prefix...)
		w.last, w.line = w.prefix, len(w.out)
		w.space = false
	}
	w.gap, w.breaks = 0, 0
}

// suspend closes the signs that are open, and opens them again before the next text.
func (w *writer) suspend() {
	for i, o := range slices.Backward(w.open) {
		if !o.silent {
			w.out = append(w.out, o.close...)
		}
		w.open[i].silent = false
	}
	w.due = append(w.open, w.due...)
	w.open = nil
}

// atStart reports whether nothing but prefixes is in the current line.
func (w *writer) atStart() bool { return len(w.out) <= w.line }

func (w *writer) lastRune() rune {
	if w.atStart() {
		return '\n'
	}
	r, _ := utf8.DecodeLastRune(w.out)
	return r
}

// prepare writes everything due before a text that begins with next.
func (w *writer) prepare(next rune) {
	w.begin()
	if w.space && !w.atStart() {
		w.out = append(w.out, ' ')
	}
	w.space = false
	for _, s := range w.due {
		last := w.lastRune()
		if w.edges && s.open != "" && !s.link && isWord(last) && !w.isOpen(s.open) {
			w.out, last = append(w.out, separator...), ' '
		}
		switch {
		case s.open != "" && len(w.out) == w.ended && w.closed == *s && !s.link: // two equal signs after each other are one
			w.out = w.out[:len(w.out)-len(s.close)]
		case !s.link && (isWordCharacter(last) && !isWordCharacter(next) || w.isOpen(s.open)):
			s.silent = true
		default:
			if s.link && w.brackets && last == '!' { // it would make the link a picture
				w.out = append(w.out[:len(w.out)-1], `\!`...)
			}
			w.out = append(w.out, s.open...)
		}
		w.open = append(w.open, s)
	}
	w.due = nil
	if w.edges && w.closed.open != "" && !w.closed.link && len(w.out) == w.ended && isWord(next) {
		w.out = append(w.out, separator...)
	}
}

// isOpen reports whether a sign is open.
func (w *writer) isOpen(text string) bool {
	for _, s := range w.open {
		if s.open == text && !s.silent && !s.link {
			return true
		}
	}
	return false
}

// with writes the content of an element, with signs around it.
func (w *writer) with(s sign, n *html.Node) {
	p := &s
	w.due = append(w.due, p)
	w.children(n)
	w.end(p)
}

// end closes a sign, or drops it if nothing has been written in it.
func (w *writer) end(s *sign) {
	if k := len(w.due); k > 0 && w.due[k-1] == s {
		w.due = w.due[:k-1]
		if s.link && s.close != "" {
			s.open = ""
		}
		return
	}
	w.open = w.open[:max(len(w.open)-1, 0)]
	if s.silent {
		return
	}
	w.out = append(w.out, s.close...)
	w.closed, w.ended = *s, len(w.out)
}

func (w *writer) node(n *html.Node) {
	if n.Type == html.TextNode {
		w.text(n.Data)
		return
	}
	switch tag := n.DataAtom; tag {
	case atom.B, atom.Strong, atom.I, atom.Em, atom.S, atom.Strike, atom.Del:
		w.with(sign{open: w.signOf(n), close: w.signOf(n)}, n)
	case atom.Code, atom.Kbd, atom.Samp, atom.Tt:
		w.inlineCode(nodeText(n))
	case atom.A:
		w.link(n, attrOf(n, "href"))
	case atom.Img:
		w.picture(n)
	case atom.Br:
		if w.single > 0 {
			w.space = true
		} else {
			w.breaks++
			w.space = false
		}
	case atom.Hr:
		w.block(2)
		w.raw("---")
		w.block(2)
	case atom.Pre:
		w.pre(n)
	case atom.Blockquote:
		w.block(2)
		w.indented("> ", n)
		w.block(2)
	case atom.Ul, atom.Ol:
		w.list(n)
	case atom.Table:
		w.table(n)
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.heading(n, int(n.Data[1]-'0'))
	default:
		if n.Data == referenceElement {
			w.raw(nodeText(n))
			return
		}
		if !endsParagraph(tag) {
			w.children(n)
			return
		}
		w.block(2)
		w.children(n)
		w.block(2)
	}
}

// signOf returns the sign around the text of an element, or "".
func (s *syntax) signOf(n *html.Node) string {
	switch n.DataAtom {
	case atom.B, atom.Strong:
		return s.bold
	case atom.I, atom.Em:
		return s.italic
	case atom.S, atom.Strike, atom.Del:
		return s.strike
	}
	return ""
}

// raw writes a text that is not escaped.
func (w *writer) raw(s string) {
	if s == "" {
		return
	}
	r, _ := utf8.DecodeRuneInString(s)
	w.prepare(r)
	w.fresh = false
	w.out = append(w.out, s...)
}

// text writes a text, in which white space is one space.
func (w *writer) text(s string) {
	for s != "" {
		rest := strings.TrimLeftFunc(s, isSoftSpace)
		if len(rest) < len(s) {
			w.space = w.breaks == 0
		}
		end := strings.IndexFunc(rest, isSoftSpace)
		if end < 0 {
			end = len(rest)
		}
		if end > 0 {
			w.word(rest[:end], rest)
		}
		s = rest[end:]
	}
}

// word writes a word. rest begins with it.
func (w *writer) word(word, rest string) {
	r, _ := utf8.DecodeRuneInString(word)
	w.prepare(r)
	i := 0
	if w.atStart() && w.start != nil && w.single == 0 {
		before, escaped := w.start(rest)
		escaped = min(escaped, len(word))
		if before != "" {
			w.out = append(append(w.out, word[:escaped]...), before...)
			i = escaped
			if i < len(word) && before == `\` { // the text after the escaped sign
				w.out = append(w.out, word[i])
				i++
			}
		}
	}
	w.fresh = false
	for i < len(word) {
		last := w.lastRune()
		if startsWithHTTP(word[i:]) && !w.escapesAddresses && !isWordCharacter(last) { // programs turn these into links
			if n := bareLength(word[i:], ""); n > 0 {
				address := word[i : i+n]
				if w.cell {
					address = strings.ReplaceAll(address, "|", "%7C")
				}
				for _, r := range address {
					w.out = appendAddress(w.out, w.syntax, r)
				}
				i += n
				continue
			}
		}
		_, n := utf8.DecodeRuneInString(word[i:])
		switch {
		case w.cell && word[i] == '|', w.links > 0 && w.brackets && (word[i] == '[' || word[i] == ']'):
			w.out = append(w.out, '\\', word[i])
		default:
			w.out = w.escape(w.out, last, rest[i:])
		}
		i += n
	}
}

// appendAddress appends a character of an address, which is escaped only with character
// references.
func appendAddress(out []byte, s *syntax, r rune) []byte {
	if r == '&' || r == '<' || r == '>' {
		return append(out, s.verbatim(string(r))...)
	}
	return utf8.AppendRune(out, r)
}

// nodeText returns the text in n, with line breaks for br elements.
func nodeText(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		switch {
		case c.Type == html.TextNode:
			b.WriteString(c.Data)
		case c.DataAtom == atom.Br:
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func attrOf(n *html.Node, key string) string {
	if i := attr(n, key); i >= 0 {
		return n.Attr[i].Val
	}
	return ""
}

// inlineCode writes code within a line.
func (w *writer) inlineCode(s string) {
	s = strings.TrimSpace(strings.ReplaceAll(s, "\n", " "))
	if s == "" {
		w.space = true
		return
	}
	quote := w.code
	if w.fences { // Markdown has longer quotes for code with the sign in it
		for hasRun(s, len(quote)) {
			quote += "`"
		}
		if s[0] == '`' || s[len(s)-1] == '`' {
			s = " " + s + " "
		}
	} else if w.verbatim("`") == "`" { // two or three of them would be another sign
		s = strings.ReplaceAll(s, "`", separator+"`"+separator)
	}
	if w.cell {
		s = strings.ReplaceAll(s, "|", `\|`)
	}
	w.prepare('`')
	if w.lastRune() == '`' { // the sign of this code would join the sign of the code before it
		w.out = append(w.out, separator...)
	}
	w.raw(quote + w.verbatim(s) + quote)
}

// hasRun reports whether s has a run of exactly n backticks.
func hasRun(s string, n int) bool {
	for i := strings.IndexByte(s, '`'); i >= 0; i = strings.IndexByte(s, '`') {
		rest := strings.TrimLeft(s[i:], "`")
		if len(s)-i-len(rest) == n {
			return true
		}
		s = rest
	}
	return false
}

// pre writes lines of code.
func (w *writer) pre(n *html.Node) {
	text := strings.TrimRight(nodeText(n), " \t\n")
	if w.single > 0 {
		w.inlineCode(text)
		return
	}
	if strings.TrimSpace(text) == "" {
		return
	}
	language := ""
	for c := range n.Descendants() {
		if class := attrOf(c, "class"); c.DataAtom == atom.Code && strings.HasPrefix(class, "language-") && w.fences {
			language, _, _ = strings.Cut(strings.TrimPrefix(class, "language-"), " ")
		}
	}
	if class, ok := strings.CutPrefix(attrOf(n, "class"), "language-"); ok && w.fences {
		language = class
	}
	quote := fence
	for strings.Contains(text, quote) && w.fences {
		quote += "`"
	}
	if !w.fences {
		text = strings.ReplaceAll(text, fence, "`"+separator+"`"+separator+"`")
	}
	w.block(2)
	w.begin() // signs that are due stay due, because code has no emphasis
	w.fresh = false
	w.out = append(append(w.out, quote...), strings.Trim(language, "`\n")...)
	for line := range strings.SplitSeq(w.verbatim(text), "\n") {
		w.out = append(append(append(w.out, '\n'), strings.TrimRight(w.prefix, " ")...), w.prefix[len(strings.TrimRight(w.prefix, " ")):]...)
		w.out = append(w.out, line...)
	}
	w.out = append(append(append(w.out, '\n'), w.prefix...), quote...)
	w.last = w.prefix
	w.block(2)
}

// link writes a link. One without a text is its address.
func (w *writer) link(n *html.Node, address string) {
	address = addressOf(address)
	if address == "" || isUnsafeURL(address) || n.FirstChild == nil && !isWebAddress(address) || !w.relative && linkAddress(address) == "" {
		w.children(n)
		return
	}
	before := len(w.out)
	s := &sign{open: w.syntax.open(address), close: w.syntax.close(address), link: true}
	w.due = append(w.due, s)
	w.single++
	w.links++
	w.children(n)
	w.links--
	w.single--
	if s.open == "" && showsAddress(strings.TrimSpace(string(w.out[min(before, len(w.out)):])), address) {
		s.close = ""
	}
	unused := len(w.due) > 0 && w.due[len(w.due)-1] == s
	w.end(s)
	if unused && isWebAddress(address) && len(w.out) == before {
		w.text(address)
	}
}

// addressOf returns the address of a link in one piece.
func addressOf(href string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf) {
			return -1
		}
		return r
	}, strings.TrimSpace(href))
}

// picture writes a picture: in Markdown as one, else as a link to it.
func (w *writer) picture(n *html.Node) {
	address, alt := addressOf(attrOf(n, "src")), strings.Join(strings.Fields(attrOf(n, "alt")), " ")
	if isUnsafeURL(address) || address == "" {
		w.text(alt)
		return
	}
	if w.tables {
		w.raw("![" + strings.NewReplacer("[", `\[`, "]", `\]`).Replace(alt) + w.syntax.close(address))
		return
	}
	if !isWebAddress(address) || w.links > 0 {
		w.text(alt)
		return
	}
	label := &html.Node{}
	addText(label, alt)
	w.link(label, address)
}

// indented writes what is within an element, with a prefix before each line.
func (w *writer) indented(prefix string, n *html.Node) {
	before := w.prefix
	w.prefix += prefix
	if w.fresh { // the first line begins a list item
		w.out = append(w.out, prefix...)
		w.last, w.line = w.prefix, len(w.out)
	}
	w.children(n)
	w.prefix = before
}

func (w *writer) list(n *html.Node) {
	gap := 2
	if w.lists > 0 {
		gap = 1
	}
	w.block(gap)
	w.lists++
	number, digits := listStart(n)
	for c := range n.ChildNodes() {
		if c.DataAtom != atom.Li {
			w.node(c)
			continue
		}
		mark := "- "
		if n.DataAtom == atom.Ol {
			if value, err := strconv.Atoi(attrOf(c, "value")); err == nil && value >= 0 && value <= maxNumber {
				number = value
			}
			text := strconv.Itoa(number)
			mark = strings.Repeat("0", max(digits-len(text), 0)) + text + ". "
			number++
		}
		if w.single > 0 {
			w.space = true
			w.children(c)
			w.space = true
			continue
		}
		w.block(1)
		w.begin()
		w.out = append(w.out, mark...)
		w.fresh, w.line = true, len(w.out)
		before := w.prefix
		w.prefix += strings.Repeat(strings.Repeat(" ", len(mark)), max(w.nesting, 1))
		w.children(c)
		w.prefix = before
		if w.fresh { // an empty item
			w.out = bytes.TrimRight(w.out, " ")
			w.fresh = false
		}
		w.gap = 0
		w.block(1)
	}
	w.lists--
	w.gap = 0
	w.block(gap)
}

// maxNumber is the greatest number of an item of a list in Markdown.
const maxNumber = 999999999

// listStart returns the number of a list's first item, and how many digits the number of its last
// item has.
func listStart(n *html.Node) (start, digits int) {
	start = 1
	if s, err := strconv.Atoi(attrOf(n, "start")); err == nil && s >= 0 && s <= maxNumber {
		start = s
	}
	items := 0
	for c := range n.ChildNodes() {
		if c.DataAtom == atom.Li {
			items++
		}
	}
	return start, len(strconv.Itoa(start + max(items-1, 0)))
}

func (w *writer) heading(n *html.Node, level int) {
	w.block(2)
	if w.headings && w.single == 0 && nodeText(n) != "" {
		if strings.TrimSpace(nodeText(n)) != "" || hasContent(n) {
			w.begin()
			w.out = append(append(w.out, strings.Repeat("#", level)...), ' ')
			w.fresh, w.line = true, len(w.out)
		}
		w.single++
		w.children(n)
		w.single--
		w.fresh = false
	} else {
		w.with(sign{open: w.bold, close: w.bold}, n)
	}
	w.block(2)
}

// table writes the rows of a table.
func (w *writer) table(n *html.Node) {
	var rows [][]string
	var aligns []string
	header, columns := false, 0
	var captions []*html.Node
	var collect func(n *html.Node)
	collect = func(n *html.Node) {
		for c := range n.ChildNodes() {
			switch {
			case c.DataAtom == atom.Caption:
				captions = append(captions, c)
			case c.DataAtom == atom.Tr:
				var cells []string
				for d := range c.ChildNodes() {
					if !isCell(d) {
						continue
					}
					header = header || len(rows) == 0 && d.DataAtom == atom.Th
					sub := &writer{syntax: w.syntax, single: 1, cell: w.tables || w.cell}
					sub.children(d)
					cells = append(cells, string(sub.out))
					if len(rows) == 0 {
						aligns = append(aligns, attrOf(d, "align"))
					}
					for range span(d, "colspan") - 1 {
						cells = append(cells, "")
					}
				}
				rows, columns = append(rows, cells), max(columns, len(cells))
			case isGrid(c):
				collect(c)
			}
		}
	}
	collect(n)
	w.block(2)
	for _, c := range captions {
		w.children(c)
		w.block(2)
	}
	if w.tables && w.single == 0 && len(rows) > 0 {
		if !header {
			rows = append([][]string{nil}, rows...)
		}
		for i, cells := range rows {
			w.plain("|" + row(cells, columns) + "|")
			if i == 0 {
				w.plain("|" + delimiters(aligns, columns) + "|")
			}
		}
	} else {
		for _, cells := range rows {
			for i, c := range cells {
				if i > 0 && c != "" && w.gap == 0 && w.single == 0 {
					w.raw(" | ")
				} else if i > 0 {
					w.space = true
				}
				w.raw(c)
			}
			w.block(1)
		}
	}
	w.block(2)
}

// plain writes a line without emphasis.
func (w *writer) plain(s string) {
	w.begin()
	w.fresh = false
	w.out = append(w.out, s...)
	w.block(1)
}

func row(cells []string, columns int) string {
	var b strings.Builder
	for i := range columns {
		if i > 0 {
			b.WriteByte('|')
		}
		b.WriteByte(' ')
		if i < len(cells) {
			b.WriteString(cells[i])
		}
		b.WriteByte(' ')
	}
	return b.String()
}

func delimiters(aligns []string, columns int) string {
	var cells []string
	for i := range columns {
		align := ""
		if i < len(aligns) {
			align = aligns[i]
		}
		switch align {
		case "left":
			cells = append(cells, ":--")
		case "center":
			cells = append(cells, ":-:")
		case "right":
			cells = append(cells, "--:")
		default:
			cells = append(cells, "---")
		}
	}
	return strings.Join(cells, "|")
}
