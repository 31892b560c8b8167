package markup

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits of HTML that is converted to Markdown. The library copies the result
// of nested elements once for each level, and lists and quotations prefix every
// line.
const (
	maxOpen   = 50 // nested elements
	maxIndent = 8  // nested lists and quotations
)

// htmlTree parses the visible part of HTML. It returns nil if the elements are
// nested too deeply.
//
// html.Parse does what browsers do: it reopens unclosed formatting in every
// later block, so that a few kilobytes become millions of nodes. Here, a tag
// adds one element, and a row and a cell around it if they are missing.
// Optional end tags such as </p>, </li> and </td> may be left out. Wrongly
// nested elements end with their parent.
func htmlTree(text string) *html.Node {
	z := html.NewTokenizer(strings.NewReader(text))
	t := &tree{open: []*html.Node{{Type: html.DocumentNode}}}
	for !t.tooDeep {
		switch z.Next() {
		case html.ErrorToken: // end of text; reading a string does not fail
			t.flush()
			return t.open[0]
		case html.TextToken:
			if t.hidden == 0 {
				t.text.Write(z.Text())
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			t.start(z)
		case html.EndTagToken:
			name, _ := z.TagName()
			t.end(string(name))
		}
	}
	return nil
}

// tree is the state of htmlTree.
type tree struct {
	open    []*html.Node    // the document and the open elements, the innermost last
	text    strings.Builder // pending text of the innermost element
	hidden  atom.Atom       // open element whose content is skipped; 0 if none
	tooDeep bool
}

// top returns the innermost open element.
func (t *tree) top() *html.Node { return t.open[len(t.open)-1] }

func (t *tree) start(z *html.Tokenizer) {
	name, more := z.TagName()
	n := &html.Node{Type: html.ElementNode, Data: string(name), DataAtom: atom.Lookup(name)}
	tag := n.DataAtom
	switch {
	case t.hidden != 0, ignored(tag):
		return
	case hides(tag):
		t.hidden = tag
		return
	case tag == atom.Image: // browsers treat <image> as <img>
		n.Data, n.DataAtom, tag = "img", atom.Img, atom.Img
	}
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch k := string(key); k {
		case "href", "src", "alt", "title", "class", "role", "align", "start", "value", "colspan", "rowspan":
			if !slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == k }) {
				n.Attr = append(n.Attr, html.Attribute{Key: k, Val: string(value)})
			}
		}
	}
	if isTablePart(tag) && tag != atom.Table && t.tableIndex() == 0 || tag == atom.Form && isGrid(t.top()) {
		return
	}
	t.flush()
	if endsParagraph(tag) {
		t.closeTag(atom.P)
	}
	switch tag {
	case atom.Thead, atom.Tbody, atom.Tfoot, atom.Caption:
		t.closeTo()
		t.push(n)
		return
	case atom.Tr:
		t.closeTo(atom.Thead, atom.Tbody, atom.Tfoot)
		t.push(n)
		return
	case atom.Td, atom.Th:
		t.closeTo(atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr)
		t.ensureRow()
		t.push(n)
		return
	case atom.Table:
		if isGrid(t.top()) {
			t.open = t.open[:t.tableIndex()]
		}
	case atom.Li:
		t.closeTag(tag, atom.Ul, atom.Ol)
	case atom.Dt, atom.Dd:
		t.closeTag(atom.Dt, atom.Dl)
		t.closeTag(atom.Dd, atom.Dl)
	case atom.A, atom.Option:
		t.closeTag(tag)
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		if isHeading(t.top().DataAtom) {
			t.open = t.open[:len(t.open)-1]
		}
	}
	t.ensureCell()
	if tag == atom.Br || tag == atom.Hr || tag == atom.Img {
		t.top().AppendChild(n)
		return
	}
	t.push(n)
}

func (t *tree) end(name string) {
	tag := atom.Lookup([]byte(name))
	if t.hidden != 0 {
		if t.hidden == tag {
			t.hidden = 0
		}
		return
	}
	for i := len(t.open) - 1; i > 0; i-- {
		n := t.open[i]
		if n.Data == name || isHeading(tag) && isHeading(n.DataAtom) {
			t.flush()
			t.open = t.open[:i]
			return
		}
		if n.DataAtom == atom.Table || isCell(n) && !isTablePart(tag) {
			return // a cell does not close elements outside of it
		}
	}
}

// flush appends the pending text to the innermost element. Adjacent texts
// become one node.
func (t *tree) flush() {
	if t.text.Len() == 0 {
		return
	}
	text := strings.ReplaceAll(t.text.String(), "\x00", "")
	t.text.Reset()
	if strings.TrimSpace(text) != "" {
		t.ensureCell()
	}
	if n := t.top(); n.DataAtom == atom.Pre && n.FirstChild == nil {
		text = strings.TrimPrefix(text, "\n") // HTML ignores a line break after <pre>
	}
	if text != "" {
		t.top().AppendChild(&html.Node{Type: html.TextNode, Data: text})
	}
}

// push appends n to the innermost element and makes it the innermost.
func (t *tree) push(n *html.Node) {
	t.top().AppendChild(n)
	t.open = append(t.open, n)
	indent := 0
	for _, n := range t.open {
		switch n.DataAtom {
		case atom.Ul, atom.Ol, atom.Blockquote:
			indent++
		}
	}
	t.tooDeep = t.tooDeep || len(t.open) > maxOpen || indent > maxIndent
}

// closeTo closes the elements within the innermost of parts, or within the
// innermost table if none of parts is open.
func (t *tree) closeTo(parts ...atom.Atom) {
	i := len(t.open) - 1
	for t.open[i].DataAtom != atom.Table && !slices.Contains(parts, t.open[i].DataAtom) {
		i--
	}
	t.open = t.open[:i+1]
}

// closeTag closes the innermost element with the given tag, unless a table, a
// cell or one of the tags in within is nested in it.
func (t *tree) closeTag(tag atom.Atom, within ...atom.Atom) {
	for i := len(t.open) - 1; i > 0; i-- {
		n := t.open[i]
		if n.DataAtom == tag {
			t.open = t.open[:i]
			return
		}
		if isCell(n) || n.DataAtom == atom.Table || slices.Contains(within, n.DataAtom) {
			return
		}
	}
}

// tableIndex returns the index of the innermost table in t.open, or 0.
func (t *tree) tableIndex() int {
	i := len(t.open) - 1
	for i > 0 && t.open[i].DataAtom != atom.Table {
		i--
	}
	return i
}

// ensureRow opens a row for a cell if none is open.
func (t *tree) ensureRow() {
	if t.top().DataAtom != atom.Tr {
		t.push(&html.Node{Type: html.ElementNode, Data: "tr", DataAtom: atom.Tr})
	}
}

// ensureCell opens a cell for content between the cells of a table.
func (t *tree) ensureCell() {
	if isGrid(t.top()) {
		t.ensureRow()
		t.push(&html.Node{Type: html.ElementNode, Data: "td", DataAtom: atom.Td})
	}
}

// ignored reports whether an element has no effect in Markdown.
func ignored(tag atom.Atom) bool {
	switch tag {
	case atom.Html, atom.Head, atom.Body, atom.Meta, atom.Link, atom.Base, atom.Input, atom.Col, atom.Colgroup, atom.Wbr,
		atom.Area, atom.Embed, atom.Param, atom.Source, atom.Track, atom.Frame, atom.Frameset:
		return true
	}
	return false
}

func isHeading(tag atom.Atom) bool {
	switch tag {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return true
	}
	return false
}

// endsParagraph reports whether the start tag of an element closes an open
// paragraph.
func endsParagraph(tag atom.Atom) bool {
	switch tag {
	case atom.Blockquote, atom.Ul, atom.Li, atom.Hr:
		return true
	}
	return isBlock(tag)
}

func isCell(n *html.Node) bool {
	return n.DataAtom == atom.Td || n.DataAtom == atom.Th || n.DataAtom == atom.Caption
}

// isGrid reports whether n is a table or a part of one that contains only rows
// or cells.
func isGrid(n *html.Node) bool {
	return n.DataAtom == atom.Table || isTablePart(n.DataAtom) && !isCell(n)
}

func isTablePart(tag atom.Atom) bool {
	switch tag {
	case atom.Table, atom.Caption, atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr, atom.Td, atom.Th:
		return true
	}
	return false
}

// loosenSpaces replaces no-break spaces that keep no columns apart by spaces. Apprise
// writes each space of a text as one, so that a line of such HTML could not be
// broken.
func loosenSpaces(doc *html.Node) {
	for n := range doc.Descendants() {
		if n.Type != html.TextNode || !strings.Contains(n.Data, noBreakSpace) {
			continue
		}
		text := []rune(n.Data)
		isSpace := func(i int) bool { return 0 <= i && i < len(text) && unicode.IsSpace(text[i]) }
		for i, r := range text {
			if string(r) == noBreakSpace && i > 0 && !isSpace(i+1) {
				text[i] = ' '
			}
		}
		n.Data = string(text)
	}
}

// unwrapLayout replaces tables that only place their content, as tables in mails do, by blocks.
func unwrapLayout(doc *html.Node) {
	for n := range doc.Descendants() {
		if n.DataAtom != atom.Table {
			continue
		}
		if parts, layout := tableParts(n); layout {
			for _, part := range append(parts, n) {
				part.Data, part.DataAtom, part.Attr = "div", atom.Div, nil
			}
		}
	}
}

// tableParts returns the parts of a table without the parts of nested tables, and
// reports whether the table is for layout: it has no heading, and no row has more
// than one cell with content.
func tableParts(table *html.Node) (parts []*html.Node, layout bool) {
	layout = true
	var collect func(n *html.Node)
	collect = func(n *html.Node) {
		filled := 0
		for c := range n.ChildNodes() {
			if !isTablePart(c.DataAtom) || c.DataAtom == atom.Table {
				continue
			}
			parts = append(parts, c)
			switch {
			case c.DataAtom == atom.Th || c.DataAtom == atom.Caption:
				layout = false
			case !isCell(c):
				collect(c)
			case hasContent(c):
				filled++
			}
		}
		layout = layout && filled <= 1
	}
	collect(table)
	return parts, layout
}

// hasContent reports whether a text or a picture is in n.
func hasContent(n *html.Node) bool {
	for c := range n.Descendants() {
		if c.DataAtom == atom.Img || c.Type == html.TextNode && strings.TrimSpace(c.Data) != "" {
			return true
		}
	}
	return false
}
