package markup

import (
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// TextBesideHTML converts HTML to the plain text that stands beside it in a mail.
// Unlike in [Convert], the links have no addresses: the HTML has them.
func TextBesideHTML(html string) string { return textOf(html, textStyle{}) }

func htmlToText(html string) string { return textOf(html, textStyle{addresses: true}) }

// textStyle says how HTML becomes plain text.
type textStyle struct {
	addresses  bool // the address of a link follows its text
	paragraphs bool // an empty line is between paragraphs
}

// textOf converts HTML to plain text. It reads tokens without building a tree, so that its
// time is linear for any nesting.
func textOf(text string, style textStyle) string {
	z := html.NewTokenizer(strings.NewReader(text))
	w := textWriter{textStyle: style}
	for {
		switch z.Next() {
		case html.ErrorToken: // end of text; reading a string does not fail
			w.endLink()
			return strings.TrimSpace(w.b.String())
		case html.TextToken:
			w.text(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			switch tag := tagAtom(z); {
			case tag == atom.A && w.hidden == 0:
				w.endLink()
				if w.addresses {
					w.link, w.linkStart = linkAddress(tokenAttr(z, "href")), w.b.Len()
				}
			case tag == atom.Img && w.link != "":
				w.text(tokenAttr(z, "alt"))
			case tag == atom.Ol && w.hidden == 0:
				w.start(tag)
				w.openList(firstNumber(tokenAttr(z, "start")))
			case tag == atom.Li && len(w.lists) > 0 && w.hidden == 0:
				if value := tokenAttr(z, "value"); value != "" && w.lists[len(w.lists)-1] != bullets {
					w.lists[len(w.lists)-1] = firstNumber(value)
				}
				w.start(tag)
			default:
				w.start(tag)
			}
		case html.EndTagToken:
			if tag := tagAtom(z); tag == atom.A && w.hidden == 0 {
				w.endLink()
			} else {
				w.end(tag)
			}
		}
	}
}

// bullets is a list without numbers.
const bullets = -1

// maxLists is the maximum number of lists within each other whose numbers are counted.
const maxLists = 50

// openList begins a list whose first item has a number.
func (w *textWriter) openList(number int) {
	if len(w.lists) < maxLists {
		w.lists = append(w.lists, number)
	}
}

// firstNumber returns the number in an attribute of a list or an item, or 1.
func firstNumber(s string) int {
	if n, err := strconv.Atoi(s); err == nil && n >= 0 && n < 1e9 {
		return n
	}
	return 1
}

// itemMark returns what is before the text of a list item.
func (w *textWriter) itemMark() string {
	if len(w.lists) == 0 || w.lists[len(w.lists)-1] == bullets {
		return "- "
	}
	n := &w.lists[len(w.lists)-1]
	*n++
	return strconv.Itoa(*n-1) + ". "
}

// tokenAttr returns the value of an attribute of the current tag of z, or "".
func tokenAttr(z *html.Tokenizer, name string) string {
	for {
		key, value, more := z.TagAttr()
		if string(key) == name {
			return string(value)
		}
		if !more {
			return ""
		}
	}
}

func tagAtom(z *html.Tokenizer) atom.Atom {
	name, _ := z.TagName()
	return atom.Lookup(name)
}

// maxQuote is the maximum number of levels of nested quotations that are
// marked.
const maxQuote = 4

// textWriter writes each block on its own lines and collapses white space.
type textWriter struct {
	textStyle
	b      strings.Builder
	inLine bool      // the current line is not empty
	over   bool      // the current line has its end, which is not written yet
	fresh  bool      // the current line has only the marker of a list item
	space  bool      // write a space before the next text
	quotes int       // open quotations
	pre    int       // open elements that keep white space
	hidden atom.Atom // open element whose content is skipped; 0 if none
	lists  []int     // the next number of each open list, or bullets
	cell   bool      // the current line has the text of a cell, and the next cell is due
	row    bool      // the row has one line so far
	gap    bool      // the next block is a paragraph after another

	link      string // address of the open link; "" if there is none or it is not shown
	linkStart int    // length of b where the text of the link begins
}

func (w *textWriter) start(tag atom.Atom) {
	if w.hidden == atom.Head && (tag == atom.Body || isBlock(tag)) {
		w.hidden = 0 // </head> is optional
	}
	if w.hidden != 0 {
		return
	}
	if tag == atom.Head || hides(tag) {
		w.hidden = tag
		return
	}
	w.gap = w.gap && (tag == atom.P || !endsParagraph(tag))
	switch tag {
	case atom.Br:
		w.newline()
	case atom.Hr:
		w.block()
		w.write("---")
		w.over = true
	case atom.Li:
		w.over = w.inLine
		w.write(w.itemMark())
		w.fresh = true
	case atom.Blockquote:
		w.block()
		w.quotes++
	case atom.Tr:
		if w.block(); w.over {
			w.endLine()
		}
		w.row = true
	case atom.Td, atom.Th:
		if w.row && w.inLine && !w.fresh { // a row is a line
			w.over, w.space, w.cell = false, false, true
			return
		}
		w.block()
	default:
		if w.isBlock(tag) {
			w.block()
		}
		switch tag {
		case atom.Pre:
			w.pre++
		case atom.Ul:
			w.openList(bullets)
		}
	}
}

func (w *textWriter) end(tag atom.Atom) {
	if w.hidden != 0 {
		if w.hidden == tag {
			w.hidden = 0
		}
		return
	}
	if w.inLine && !w.cell && (w.isBlock(tag) || tag == atom.Li || tag == atom.Blockquote) {
		w.over, w.fresh = true, false
	}
	switch {
	case tag == atom.P:
		w.gap = true
	case tag == atom.Tr || tag == atom.Table:
		w.row, w.cell = false, false
	case (tag == atom.Ul || tag == atom.Ol) && len(w.lists) > 0:
		w.lists = w.lists[:len(w.lists)-1]
	case tag == atom.Blockquote && w.quotes > 0:
		w.quotes--
	case tag == atom.Pre && w.pre > 0:
		w.pre--
	}
}

// endLink writes the address of the open link after its text, unless the text
// shows the address.
func (w *textWriter) endLink() {
	address := w.link
	if w.link = ""; address == "" {
		return
	}
	switch text := strings.TrimSpace(w.b.String()[w.linkStart:]); {
	case text == "":
		w.write(address)
	case showsAddress(text, address):
	case w.inLine && !w.over:
		w.space = true
		w.write("(" + address + ")")
	default: // the text is a block
		w.write(address)
		w.over = true
	}
}

// hides reports whether the content of an element is not shown.
func hides(tag atom.Atom) bool {
	switch tag {
	case atom.Script, atom.Style, atom.Title, atom.Textarea, atom.Template,
		atom.Iframe, atom.Noembed, atom.Noframes, atom.Noscript:
		return true
	}
	return false
}

// isBlock reports whether an element begins a line. Code and labels do in the text beside a
// mail's HTML, as people know it from Apprise.
func (w *textWriter) isBlock(tag atom.Atom) bool {
	return isBlock(tag) || !w.paragraphs && (tag == atom.Code || tag == atom.Label)
}

func isBlock(tag atom.Atom) bool {
	switch tag {
	case atom.P, atom.Div, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6,
		atom.Ul, atom.Ol, atom.Dl, atom.Dt, atom.Dd, atom.Pre, atom.Form,
		atom.Table, atom.Caption, atom.Tr, atom.Td, atom.Th, atom.Section, atom.Article, atom.Aside,
		atom.Header, atom.Footer, atom.Main, atom.Nav, atom.Figure, atom.Figcaption, atom.Address,
		atom.Center, atom.Details, atom.Summary, atom.Fieldset, atom.Legend, atom.Hgroup, atom.Menu, atom.Dialog, atom.Option:
		return true
	}
	return false
}

func (w *textWriter) text(s string) {
	if w.hidden != 0 {
		return
	}
	if w.pre > 0 {
		for i, line := range strings.Split(s, "\n") {
			if i > 0 {
				w.newline()
			}
			if line = strings.TrimRight(line, "\r"); line != "" {
				w.write(line)
			}
		}
		return
	}
	for s != "" {
		word := strings.TrimLeftFunc(s, isSoftSpace)
		if len(word) < len(s) {
			w.space = true
		}
		end := strings.IndexFunc(word, isSoftSpace)
		if end < 0 {
			end = len(word)
		}
		if end > 0 {
			w.write(strings.ReplaceAll(word[:end], noBreakSpace, " "))
		}
		s = word[end:]
	}
}

// isSoftSpace reports whether HTML collapses c with white space next to it.
func isSoftSpace(c rune) bool { return unicode.IsSpace(c) && c != '\u00a0' }

// write appends s to the line, after a space if one is due.
func (w *textWriter) write(s string) {
	if w.over {
		w.endLine()
	}
	switch {
	case !w.inLine:
		if w.gap && w.paragraphs && w.b.Len() > 0 && !strings.HasSuffix(w.b.String(), "\n\n") {
			w.b.WriteByte('\n')
		}
		for range min(w.quotes, maxQuote) {
			w.b.WriteString("> ")
		}
	case w.cell:
		w.b.WriteString(" | ")
	case w.space && !w.fresh:
		w.b.WriteByte(' ')
	}
	w.b.WriteString(s)
	w.inLine, w.fresh, w.space, w.cell, w.gap = true, false, false, false, false
}

// block begins a new line, unless the current line is empty or has only the
// marker of a list item.
func (w *textWriter) block() {
	switch {
	case w.cell: // the cell begins with it
	case w.inLine && !w.fresh:
		w.over = true
	}
	w.space = false
}

// endLine ends the current line.
func (w *textWriter) endLine() {
	w.b.WriteByte('\n')
	w.inLine, w.over, w.fresh, w.space, w.row, w.cell = false, false, false, false, false, false
}

// newline writes a line break.
func (w *textWriter) newline() {
	if w.over {
		w.endLine()
	}
	w.endLine()
}
