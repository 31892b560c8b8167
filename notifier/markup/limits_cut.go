package markup

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// cutter divides a text into parts. Each part closes the markup that is open at its end, and
// the next one opens it again.
type cutter struct {
	outline
	end   int     // the length that the last part leaves free
	saved outline // where a part begins
}

// newCutter returns the cutter for a text in format that was converted from
// source. Links are not divided in plain text that was written as Markdown. reads is the
// format that the destination reads the text as. No part is longer than room.
func newCutter(text string, format, source, reads Format, unit Unit, room int) *cutter {
	c := &cutter{outline: outline{text: text, unit: unit, room: room}}
	switch {
	case format == HTML:
		c.format, c.text = HTML, withoutLong(text, room, unit)
	case format == Markdown, reads == Markdown:
		c.format = Markdown
	case source == Markdown:
		c.format, c.keep = Markdown, true
	}
	return c
}

// split returns the rest of the text in up to max parts that fit into room. Parts that show
// nothing are left out.
func (c *cutter) split(room, max int) []string {
	var parts []string
	first := "" // if no part shows anything
	for {
		c.skip()
		if c.pos == len(c.text) {
			if len(parts) == 0 && first != "" {
				parts = append(parts, first)
			}
			return parts
		}
		if len(parts) == max-1 && !c.restFits(room-c.end) {
			return append(parts, c.head(room-c.end, ellipsis))
		}
		if part, shown := c.part(room); shown {
			parts = append(parts, part)
		} else if first == "" {
			first = part
		}
	}
}

// restFits reports whether the rest of the text fits into room.
func (c *cutter) restFits(room int) bool {
	rest := c.text[c.pos:]
	return c.unit.index(rest, room-c.unit.Length(c.reopen(false))) == len(rest)
}

// skip reads the text that is left out at the beginning of a part: line breaks, spaces without
// meaning, and the ends of markup that the part before has closed.
func (c *cutter) skip() {
	for c.pos < len(c.text) {
		if c.format == Markdown && c.pos > 0 && c.text[c.pos-1] == '\n' && len(c.open) > 0 && !c.top().code {
			c.pos += len(quotePrefix(c.text[c.pos:])) // reopen writes it
			if c.pos == len(c.text) {
				return
			}
		}
		p := c.next()
		switch {
		case p.kind == closing:
		case p.kind == space && p.after != afterSpace:
		case p.kind == space && c.format == HTML && !c.keepsSpace():
		case p.kind == space && c.format == Markdown && !c.top().code && (c.isMidLine() || len(c.open) > 0):
		default:
			if p.kind == opening && c.format == HTML {
				c.shutBefore(p.node.name)
			}
			return
		}
		c.advance(p)
	}
}

// part returns the next part, and reports whether it shows something.
func (c *cutter) part(room int) (part string, shown bool) {
	c.save()
	opening := c.begin(room)
	start, used, code := c.pos, c.unit.Length(opening), c.top().code
	length, shown := c.take(used, room, false)
	if c.pos == len(c.text) && length > room-c.end {
		c.restore() // the last part has no room for the end
		_, shown = c.take(used, max(room-c.end, length/2), false)
	}
	if c.pos == start { // no markup fits
		c.takeAny(room)
		return trimEnd(c.text[start:c.pos]), true
	}
	part = c.trim(c.text[start:c.pos])
	if c.format == Markdown && !code {
		part = outdentList(part)
	}
	return opening + part + c.close(), shown
}

// head returns as much of the rest as fits, with mark after it.
func (c *cutter) head(room int, mark string) string {
	room -= c.unit.Length(mark)
	c.save()
	opening := c.begin(room)
	start := c.pos
	c.take(c.unit.Length(opening), room, true)
	if c.pos == start {
		rest := c.text[start:]
		return rest[:c.unit.index(rest, room)] + mark
	}
	part := c.text[start:c.pos]
	if mark == "" {
		part = c.trim(part)
	}
	return opening + part + mark + c.close()
}

// begin returns the text that reopens the open markup, or "" if that needs too much room.
func (c *cutter) begin(room int) string {
	opening := c.reopen(false)
	if c.unit.Length(opening)+c.closing > room/2 {
		opening = c.reopen(true)
	}
	if c.unit.Length(opening)+c.closing > room/2 {
		opening = ""
		c.shut(0)
		c.saved.open, c.saved.closing = c.saved.open[:0], 0
	}
	c.room = max(room-c.unit.Length(opening)-c.closing, 1)
	c.saved.room = c.room
	return opening
}

// take reads up to the best place for a cut, or up to the last one. used is the length of the text
// already in the part. It returns the length of the part, and reports whether it shows something.
// If there is no place, it reads nothing.
func (c *cutter) take(used, room int, last bool) (length int, shown bool) {
	var best [afterBlock + 1]int
	length = used
	fresh, heading := true, false // whether nothing is in the innermost node, and nothing is after a heading
	after := anywhere
	for c.pos < len(c.text) {
		p := c.next()
		if p.kind != closing && !fresh && length+c.closing <= room && !c.isMisread() {
			rank := max(after, p.before)
			switch {
			case last:
				rank = anywhere
			case heading:
				rank = min(rank, afterSpace)
			case rank == afterBlock && length < room/4:
				rank = afterLine
			case rank == afterMark && length < room/2:
				rank = anywhere
			}
			best[rank] = c.pos
		}
		length += c.unit.Length(c.text[c.pos:p.end])
		c.advance(p)
		switch p.kind {
		case letter:
			fresh, heading, after, shown = false, false, p.after, true
		case opening:
			fresh, after = true, anywhere
		case space:
			if p.after == afterSpace && c.keepsSpace() {
				after = anywhere
			}
			after = max(after, p.after)
		default:
			after = max(after, p.after)
		}
		heading = heading || p.after == beforeMore
		if length+c.closing > room {
			c.restore()
			for rank := afterBlock; rank >= anywhere; rank-- {
				if best[rank] > 0 {
					c.advanceTo(best[rank])
					break
				}
			}
			return length, true
		}
	}
	return length, shown
}

// takeAny reads what fits into room without regard to markup, at least a character.
func (c *cutter) takeAny(room int) {
	start := c.pos
	for c.pos < len(c.text) {
		p := c.next()
		n := c.unit.Length(c.text[c.pos:p.end])
		if n > room && c.pos == start { // it is divided in any case
			_, size := utf8.DecodeRuneInString(c.text[c.pos:])
			p.end = c.pos + max(c.unit.index(c.text[c.pos:], room), size)
			room = n
		}
		if room -= n; room < 0 {
			return
		}
		c.advance(p)
	}
}

func (c *cutter) advanceTo(pos int) {
	for c.pos < pos {
		c.advance(c.next())
	}
}

// save remembers the current place.
func (c *cutter) save() {
	open := append(c.saved.open[:0], c.open...)
	c.saved = c.outline
	c.saved.open = open
}

// restore returns to the saved place.
func (c *cutter) restore() {
	open, p := append(c.open[:0], c.saved.open...), c.paragraph
	c.outline = c.saved
	c.open = open
	if p.start == c.paragraph.start && p.end == c.paragraph.end {
		c.paragraph.marks = p.marks
		return
	}
	read := c.paragraph
	c.paragraph = p
	c.paragraph.end = 0
	if c.pos < read.end {
		c.readParagraph(read.start)
	}
}

// isMidLine reports whether the place is within a line.
func (o *outline) isMidLine() bool {
	return o.pos > 0 && o.text[o.pos-1] != '\n' && o.text[o.pos-1] != '\r'
}

// isMisread reports whether the following text would be other markup at the beginning of a part.
func (o *outline) isMisread() bool {
	if o.format != Markdown || o.pos == 0 || strings.IndexByte("#>-+=*_~`|0123456789", o.text[o.pos]) < 0 || !o.isMidLine() {
		return false
	}
	rest := o.text[o.pos:]
	if rest[0] == '`' {
		return o.top().code || strings.HasPrefix(rest, fence)
	}
	if o.top().code {
		return false
	}
	line, _, _ := strings.Cut(rest[:min(len(rest), maxPrefix)], "\n")
	return chatItem.MatchString(line) || markdownStart.MatchString(line) || strings.HasPrefix(rest, "~~~")
}

// trim removes white space at the end of a part.
func (o *outline) trim(s string) string {
	s = trimEnd(s)
	if o.format == Markdown && !o.top().code && (len(s)-len(strings.TrimRight(s, `\`)))%2 == 1 {
		s = trimEnd(s[:len(s)-1]) // it would escape what closes the part
	}
	return s
}

// outdentList returns a part without the indentation of the list that it begins with, because that
// would make it code outside of its list.
func outdentList(s string) string {
	indent := width(s[:len(s)-len(strings.TrimLeft(s, " \t"))])
	first, _, _ := strings.Cut(s, "\n")
	if indent < codeIndent || !chatItem.MatchString(first) {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		rest := strings.TrimLeft(line, " \t")
		if rest != "" && width(line[:len(line)-len(rest)]) < indent {
			break
		}
		lines[i] = outdent(line, indent)
	}
	return strings.Join(lines, "\n")
}

func trimEnd(s string) string { return strings.TrimRightFunc(s, unicode.IsSpace) }
