package markup

import (
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// htmlToText writes HTML as plain text. It reads tokens and builds no tree, so
// that no nesting is too deep and the time is in proportion to the length.
func htmlToText(text string) string {
	z := html.NewTokenizer(strings.NewReader(text))
	var w textWriter
	for {
		switch z.Next() {
		case html.ErrorToken: // the end; a string cannot fail otherwise
			return strings.TrimSpace(w.b.String())
		case html.TextToken:
			w.text(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			w.start(tagAtom(z))
		case html.EndTagToken:
			w.end(tagAtom(z))
		}
	}
}

func tagAtom(z *html.Tokenizer) atom.Atom {
	name, _ := z.TagName()
	return atom.Lookup(name)
}

// maxQuote is how many quotations within each other are marked as such.
const maxQuote = 4

// A textWriter lays out text: one line for each block, white space collapsed.
type textWriter struct {
	b      strings.Builder
	inLine bool      // the current line has something in it
	fresh  bool      // what it has is a list item's marker only
	space  bool      // white space is due before the next text
	quotes int       // quotations that are open
	pre    int       // elements that are open whose white space counts
	hidden atom.Atom // the element that is open whose content is not text; 0 if none is
}

func (w *textWriter) start(tag atom.Atom) {
	if w.hidden == atom.Head && (tag == atom.Body || isBlock(tag)) {
		w.hidden = 0 // its end tag may be left out
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

// hides says of an element whether its content is not for reading.
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
			w.write(strings.ReplaceAll(word[:end], hardSpace, " "))
		}
		s = word[end:]
	}
}

// isSoftSpace says whether HTML runs a character together with white space
// next to it.
func isSoftSpace(c rune) bool { return unicode.IsSpace(c) && c != '\u00a0' }

// write adds text to the line, behind white space if any is due.
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

// block makes sure that what follows begins a line, behind the marker of a
// list item at most.
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
