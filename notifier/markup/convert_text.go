package markup

import (
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// TextBesideHTML converts HTML to the plain text that stands beside it in a mail.
// Unlike in [Convert], the links have no addresses: the HTML has them.
func TextBesideHTML(html string) string { return writeText(html, false) }

func htmlToText(html string) string { return writeText(html, true) }

// writeText converts HTML to plain text, in which the addresses of links follow
// their texts if addresses is true. It reads tokens without building a tree, so
// that its time is linear for any nesting.
func writeText(text string, addresses bool) string {
	z := html.NewTokenizer(strings.NewReader(text))
	var w textWriter
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
				if addresses {
					w.link, w.linkStart = linkAddress(tokenAttr(z, "href")), w.b.Len()
				}
			case tag == atom.Img && w.link != "":
				w.text(tokenAttr(z, "alt"))
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
	b      strings.Builder
	inLine bool      // the current line is not empty
	fresh  bool      // the current line has only the marker of a list item
	space  bool      // write a space before the next text
	quotes int       // open quotations
	pre    int       // open elements that keep white space
	hidden atom.Atom // open element whose content is skipped; 0 if none

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
	switch tag {
	case atom.Br:
		w.newline()
	case atom.Hr:
		w.block()
		w.write("---")
		w.newline()
	case atom.Li:
		if w.inLine {
			w.newline()
		}
		w.write("- ")
		w.fresh = true
	case atom.Blockquote:
		w.block()
		w.quotes++
	default:
		if isBlock(tag) {
			w.block()
		}
		if tag == atom.Pre {
			w.pre++
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
	if w.inLine && (isBlock(tag) || tag == atom.Li || tag == atom.Blockquote) {
		w.newline()
	}
	switch {
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
	case w.inLine:
		w.space = true
		w.write("(" + address + ")")
	default: // the text is a block
		w.write(address)
		w.newline()
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

func isBlock(tag atom.Atom) bool {
	switch tag {
	case atom.P, atom.Div, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6,
		atom.Ul, atom.Ol, atom.Dl, atom.Dt, atom.Dd, atom.Pre, atom.Code, atom.Label, atom.Form,
		atom.Table, atom.Caption, atom.Tr, atom.Td, atom.Th, atom.Section, atom.Article, atom.Aside,
		atom.Header, atom.Footer, atom.Main, atom.Nav, atom.Figure, atom.Figcaption, atom.Address:
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
	switch {
	case !w.inLine:
		for range min(w.quotes, maxQuote) {
			w.b.WriteString("> ")
		}
	case w.space && !w.fresh:
		w.b.WriteByte(' ')
	}
	w.b.WriteString(s)
	w.inLine, w.fresh, w.space = true, false, false
}

// block begins a new line, unless the current line is empty or has only the
// marker of a list item.
func (w *textWriter) block() {
	if w.inLine && !w.fresh {
		w.newline()
	}
	w.space = false
}

func (w *textWriter) newline() {
	w.b.WriteByte('\n')
	w.inLine, w.fresh, w.space = false, false, false
}
