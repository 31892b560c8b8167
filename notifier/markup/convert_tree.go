package markup

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Bounds for HTML that becomes Markdown. Each element that holds others writes
// what they have become once more, and each list and quotation puts something
// before every line of it.
const (
	maxOpen   = 50 // elements within each other
	maxIndent = 8  // of them lists and quotations
)

// htmlTree makes a tree of what HTML shows, or returns nil where it is nested
// too deep.
//
// html.Parse would do what browsers do: formatting that is left open is opened
// anew in every block behind it, so that a few kilobytes become millions of
// nodes. Here no tag makes more than an element and the row and cell around
// it. Tags that many leave out, </p>, </li> or </td>, are understood; what is
// nested wrongly ends with the element around it.
func htmlTree(text string) *html.Node {
	z := html.NewTokenizer(strings.NewReader(text))
	t := &tree{open: []*html.Node{{Type: html.DocumentNode}}}
	for !t.tooDeep {
		switch z.Next() {
		case html.ErrorToken: // the end; a string cannot fail otherwise
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

// A tree is one that is being made.
type tree struct {
	open    []*html.Node    // the document and the elements that are open, the innermost last
	text    strings.Builder // what the innermost has got last
	hidden  atom.Atom       // the element that is open whose content is not shown; 0 if none is
	tooDeep bool
}

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
	case tag == atom.Image: // as browsers have it
		n.Data, n.DataAtom, tag = "img", atom.Img, atom.Img
	}
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch k := string(key); k {
		case "href", "src", "alt", "title", "class", "role", "align", "start", "colspan", "rowspan":
			if !slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == k }) {
				n.Attr = append(n.Attr, html.Attribute{Key: k, Val: string(value)})
			}
		}
	}
	if isTablePart(tag) && tag != atom.Table && t.table() == 0 || tag == atom.Form && isGrid(t.top()) {
		return
	}
	t.flush()
	if endsParagraph(tag) {
		t.leave(atom.P)
	}
	switch tag {
	case atom.Thead, atom.Tbody, atom.Tfoot, atom.Caption:
		t.back()
		t.push(n)
		return
	case atom.Tr:
		t.back(atom.Thead, atom.Tbody, atom.Tfoot)
		t.push(n)
		return
	case atom.Td, atom.Th:
		t.back(atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr)
		t.row()
		t.push(n)
		return
	case atom.Table:
		if isGrid(t.top()) {
			t.open = t.open[:t.table()]
		}
	case atom.Li:
		t.leave(tag, atom.Ul, atom.Ol)
	case atom.Dt, atom.Dd:
		t.leave(atom.Dt, atom.Dl)
		t.leave(atom.Dd, atom.Dl)
	case atom.A, atom.Option:
		t.leave(tag)
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		if isHeading(t.top().DataAtom) {
			t.open = t.open[:len(t.open)-1]
		}
	}
	t.cell()
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
			return // what is outside of a cell is not for it to end
		}
	}
}

// flush gives the innermost element the text that has come for it. It waits
// until then, since texts that nothing separates are to be one.
func (t *tree) flush() {
	if t.text.Len() == 0 {
		return
	}
	text := strings.ReplaceAll(t.text.String(), "\x00", "")
	t.text.Reset()
	if strings.TrimSpace(text) != "" {
		t.cell()
	}
	if n := t.top(); n.DataAtom == atom.Pre && n.FirstChild == nil {
		text = strings.TrimPrefix(text, "\n") // written for looks
	}
	if text != "" {
		t.top().AppendChild(&html.Node{Type: html.TextNode, Data: text})
	}
}

// push opens an element.
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

// back closes what is within the innermost part of a table that is one of
// these, or within the table itself.
func (t *tree) back(parts ...atom.Atom) {
	i := len(t.open) - 1
	for t.open[i].DataAtom != atom.Table && !slices.Contains(parts, t.open[i].DataAtom) {
		i--
	}
	t.open = t.open[:i+1]
}

// leave closes the innermost element of that name, unless it is around one of
// the others, a cell or a table.
func (t *tree) leave(tag atom.Atom, within ...atom.Atom) {
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

// table is where the innermost table is among the open elements, or 0.
func (t *tree) table() int {
	i := len(t.open) - 1
	for i > 0 && t.open[i].DataAtom != atom.Table {
		i--
	}
	return i
}

// row makes sure that a cell has a row to be in.
func (t *tree) row() {
	if t.top().DataAtom != atom.Tr {
		t.push(&html.Node{Type: html.ElementNode, Data: "tr", DataAtom: atom.Tr})
	}
}

// cell makes sure that what stands between the cells of a table is shown, too.
func (t *tree) cell() {
	if isGrid(t.top()) {
		t.row()
		t.push(&html.Node{Type: html.ElementNode, Data: "td", DataAtom: atom.Td})
	}
}

// ignored says of an element whether it makes no difference to Markdown.
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

// endsParagraph says of an element whether a paragraph that is open ends where
// it begins.
func endsParagraph(tag atom.Atom) bool {
	switch tag {
	case atom.Blockquote, atom.Ul, atom.Li, atom.Hr, atom.Center, atom.Details, atom.Summary, atom.Fieldset, atom.Hgroup, atom.Menu, atom.Dialog:
		return true
	case atom.Code, atom.Label:
		return false
	}
	return isBlock(tag)
}

func isCell(n *html.Node) bool {
	return n.DataAtom == atom.Td || n.DataAtom == atom.Th || n.DataAtom == atom.Caption
}

// isGrid says of an element whether it is a part of a table that holds cells
// or rows only.
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
