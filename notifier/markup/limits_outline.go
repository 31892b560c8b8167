package markup

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// outline reads a text once, from its beginning, and knows at each place which markup is open.
type outline struct {
	format Format // HTML, Markdown, or "" for a text without markup
	keep   bool   // links are not divided, but nothing is opened: the text is shown as it is
	unit   Unit
	room   int // of a part

	text    string
	pos     int    // the text before it has been read
	open    []node // the innermost last
	closing int    // length of the text that closes them
	deeper  int    // elements that are open beyond maxOpenElements
	absent  [2]bool

	paragraph paragraph
	toEnd     bool // a quotation ends with the text
}

// maxOpenElements is the maximum number of nodes that are closed at a cut and opened again after
// it.
const maxOpenElements = 64

// node is markup that is open.
type node struct {
	name        string // of an element
	open, close string // the texts that reopen and close it
	end         int    // the index after it, if known
	code        bool   // its content is not markup, and its line breaks are kept
	number      int    // of the next item of a list
}

// piece is an indivisible part of a text: a character, a tag, a sign.
type piece struct {
	kind          pieceKind
	end           int // in the text
	before, after int // the quality of a cut there
	node          node
}

type pieceKind int

const (
	letter  pieceKind = iota // shows something
	space                    // is left out at a cut
	nothing                  // shows nothing
	opening                  // opens node
	closing                  // closes open nodes up to the one that ends here, or has the name of node
)

// The quality of a cut. Text after a heading belongs to it.
const (
	beforeMore = iota - 1
	anywhere
	afterMark
	afterSpace
	afterLine
	afterBlock
)

// next returns the piece of text at o.pos.
func (o *outline) next() piece {
	switch o.format {
	case HTML:
		return o.nextHTML()
	case Markdown:
		return o.nextMarkdown()
	}
	return o.character()
}

// advance reads the piece.
func (o *outline) advance(p piece) {
	o.pos = p.end
	switch p.kind {
	case opening:
		if o.format == HTML {
			o.shutBefore(p.node.name)
			o.count(p.node)
		}
		if len(o.open) == maxOpenElements {
			o.deeper++
			return
		}
		o.open = append(o.open, p.node)
		o.closing += o.unit.Length(p.node.close)
	case closing:
		if o.deeper > 0 {
			o.deeper--
			return
		}
		for i, n := range slices.Backward(o.open) {
			if n.end == p.end && n.end > 0 || p.node.name != "" && strings.EqualFold(n.name, p.node.name) {
				o.shut(i)
				return
			}
		}
	}
}

// shut closes the nodes from the one with the index i.
func (o *outline) shut(i int) {
	for _, n := range o.open[i:] {
		o.closing -= o.unit.Length(n.close)
	}
	o.open = o.open[:i]
}

// top returns the innermost open node.
func (o *outline) top() node {
	if len(o.open) == 0 {
		return node{}
	}
	return o.open[len(o.open)-1]
}

// character returns the character at o.pos.
func (o *outline) character() piece {
	s := o.text[o.pos:]
	p := piece{end: o.pos + 1}
	code := o.top().code
	switch s[0] {
	case '\r', '\n':
		if strings.HasPrefix(s, "\r\n") {
			p.end++
		}
		p.kind, p.after = space, afterLine
		if o.format == HTML && !o.keepsSpace() {
			p.after = afterSpace
		}
		if o.format == Markdown && !code {
			switch {
			case o.paragraph.heading && strings.HasPrefix(s[p.end-o.pos:], "\n"):
				p.after = beforeMore
			case o.isBlankLine():
				p.after = afterBlock
			}
		}
		return p
	case ' ', '\t':
		p.kind, p.after = space, afterSpace
		return p
	case '\v', '\f':
		p.kind = space
		return p
	}
	last, size := utf8.DecodeRuneInString(s)
	end := size
	for flag := isFlagLetter(last); end < len(s) && end < maxJoined; {
		if s[end] < utf8.RuneSelf {
			break
		}
		r, n := utf8.DecodeRuneInString(s[end:])
		if !joins(r) && last != zeroWidthJoiner && !(flag && isFlagLetter(r)) {
			break
		}
		flag, last = false, r
		end += n
	}
	if o.unit.Length(s[:end]) > o.room {
		end = size
	}
	p.end = o.pos + end
	if strings.Contains(".!?:;。！？：；", s[:end]) {
		p.after = afterMark
	}
	return p
}

// isBlankLine reports whether nothing is before o.pos in its line.
func (o *outline) isBlankLine() bool {
	line := strings.TrimRight(o.text[max(0, o.pos-maxPrefix):o.pos], " \t>")
	return line == "" || line[len(line)-1] == '\n'
}

// keepsSpace reports whether white space is shown as it is.
func (o *outline) keepsSpace() bool {
	for _, n := range o.open {
		if n.code {
			return true
		}
	}
	return o.format != HTML
}

// maxPrefix is the maximum length of the beginning of a line, such as signs of quotations, in
// bytes.
const maxPrefix = 200

// maxJoined is the maximum number of bytes of a character that is made of several.
const maxJoined = 64

const zeroWidthJoiner = '\u200d'

// joins reports whether r belongs to the character before it: accents, and the colors of
// emojis.
func joins(r rune) bool {
	return r == zeroWidthJoiner || unicode.Is(unicode.M, r) || r >= 0x1f3fb && r <= 0x1f3ff
}

// isFlagLetter reports whether r is a letter, two of which are a flag.
func isFlagLetter(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

// reopen returns the text that opens the nodes again in the next part. With bare, it leaves out
// everything unnecessary.
func (o *outline) reopen(bare bool) string {
	if o.format == HTML {
		return o.reopenHTML(bare)
	}
	return o.reopenMarkdown()
}

// close returns the text that closes the nodes.
func (o *outline) close() string {
	var b strings.Builder
	for _, n := range slices.Backward(o.open) {
		b.WriteString(n.close)
	}
	return b.String()
}
