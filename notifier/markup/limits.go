package markup

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Overflow selects what happens to a message that is longer than its
// destination accepts.
type Overflow string

// The values of Overflow. The zero Overflow counts as [OverflowUpstream].
const (
	// OverflowUpstream sends the message as it is. The destination may cut
	// it. If the destination refuses it, the sender splits it.
	OverflowUpstream Overflow = "upstream"

	OverflowTruncate Overflow = "truncate" // sends what fits
	OverflowSplit    Overflow = "split"    // sends several parts
)

// MaxParts is the maximum number of parts of a message. If a message needs
// more, the last part ends with an ellipsis and the rest is not sent.
const MaxParts = 500

const (
	// counterWidth is the space for a counter in the title. The longest one
	// is " [500/500]".
	counterWidth = 12

	// counterThreshold is the minimum length for parts to have a counter: of
	// the title, or of the body if it shares its length with the title.
	counterThreshold = 130
)

// Unit is the unit in which the length of a text is measured.
type Unit string

// The units of limits.
const (
	Characters Unit = "characters" // Unicode code points
	UTF8Bytes  Unit = "bytes"
	UTF16Units Unit = "UTF-16 units" // 2 for characters beyond U+FFFF, else 1
)

// runeLength returns the length of c.
func (u Unit) runeLength(c rune) int {
	switch u {
	case UTF8Bytes:
		return utf8.RuneLen(c)
	case UTF16Units:
		return utf16.RuneLen(c)
	}
	return 1
}

// Length returns the length of s.
func (u Unit) Length(s string) (n int) {
	switch u {
	case UTF8Bytes:
		return len(s)
	case UTF16Units:
		for _, c := range s {
			n += u.runeLength(c)
		}
		return n
	}
	return utf8.RuneCountInString(s)
}

// index returns how many bytes of s fit into the length n.
func (u Unit) index(s string, n int) int {
	for i, c := range s {
		if n -= u.runeLength(c); n < 0 {
			return i
		}
	}
	return len(s)
}

// Limits are the maximum lengths of a message for a destination.
type Limits struct {
	Unit  Unit // unit of the lengths; "" means [Characters]
	Title int  // length of the title; 0 if the destination has none and the title becomes the first line of the body
	Body  int  // length of the body; 0 means no limit
	Lines int  // lines of the body, for every [Overflow]; 0 means no limit

	// InBody is true if title and body are sent as one text, so that Body is
	// the limit for both together.
	InBody bool

	// Reads is [Markdown] if the destination reads a text as Markdown whatever its format
	// is. A cut closes the markup that is open, and the next part opens it again.
	Reads Format

	// TitleSign is around a title that becomes the first line of a plain text in Markdown.
	// By default it is a heading.
	TitleSign string

	// Reserve is the part of Body that stays free in every part of the message,
	// for text that the service adds.
	Reserve int
}

// Part is a message or a part of one, within the limits.
type Part struct{ Title, Body string }

// Fit returns the parts of a message that fit into the limits. The message is in
// format and was converted from source. Only [OverflowSplit] returns more than
// one part.
//
// White space around the title and at the end of the body is removed. If the
// title is long enough, each part has a counter after it: "Backup [2/3]". If a
// title would take most of the space of a part, only the first part has it.
//
// A text is cut after a line break if possible, else after a space or tab, else
// after a punctuation mark, else at the limit. A cut never divides a code
// point. It divides an HTML tag, a character reference or a Markdown link only
// if that is longer than a part.
func (l Limits) Fit(title, body string, format, source Format, mode Overflow) []Part {
	return l.AppendFit(nil, title, body, format, source, mode, "")
}

// AppendFit appends the parts that [Limits.Fit] returns to parts. end, which may be
// empty, is put at the end of the last part, within the limits, with the line breaks
// that it begins with. A body that is too long and sent as it is begins with it, so
// that it remains if the destination cuts the body. The limits must leave room for a
// text beside it.
func (l Limits) AppendFit(parts []Part, title, body string, format, source Format, mode Overflow, end string) []Part {
	return fitter{l, end}.appendTo(parts, title, body, format, source, mode)
}

// fitter divides a message with a text at its end.
type fitter struct {
	Limits
	end string
}

func (l fitter) appendTo(parts []Part, title, body string, format, source Format, mode Overflow) []Part {
	title = strings.TrimSpace(title)
	text := trimEnd(body)
	heading, body := l.heading(title, text, format, source)
	body = firstLines(body, l.bodyLines())
	titleRoom := l.titleRoom(heading)
	if l.Body <= 0 || mode != OverflowTruncate && mode != OverflowSplit {
		if l.end != "" && l.Body > 0 && !l.fits(body, l.bodyRoom(heading, titleRoom)) {
			heading, body = l.heading(title, l.atStart(text), format, source)
			return append(parts, Part{heading, firstLines(body, l.Lines)})
		}
		return append(parts, Part{heading, l.atEnd(body)})
	}

	title = trimEnd(heading[:l.Unit.index(heading, titleRoom)])
	room := l.bodyRoom(title, titleRoom)
	if body == "" || l.fits(body, room) {
		return append(parts, Part{title, l.atEnd(body)})
	}
	c := newCutter(body, format, source, l.Reads, l.Unit, max(room, 1))
	c.end = l.Unit.Length(l.end)
	if mode == OverflowTruncate {
		return append(parts, Part{title, l.atEnd(c.head(room-c.end, ""))})
	}
	first := len(parts)
	if l.titleOnce(room) {
		parts = append(parts, l.splitAfterTitle(c, title, room)...)
	} else {
		parts = append(parts, l.splitWithTitle(c, title, titleRoom, room)...)
	}
	if last := len(parts) - 1; last >= first {
		parts[last].Body = l.atEnd(parts[last].Body)
	}
	return parts
}

// heading returns the title and the body as a destination with these limits gets them:
// the title becomes a part of the body if the destination has none.
func (l fitter) heading(title, body string, format, source Format) (string, string) {
	if l.Title <= 0 && title != "" {
		return "", l.merge(title, body, format, source)
	}
	return title, body
}

// fits reports whether the body and the end fit into room.
func (l fitter) fits(body string, room int) bool {
	return l.Unit.index(body, room-l.Unit.Length(l.end)) == len(body)
}

// bodyLines returns the maximum number of lines beside the end, or 0 for any number.
func (l fitter) bodyLines() int {
	if l.Lines > 1 && l.end != "" {
		return l.Lines - 1
	}
	return l.Lines
}

// atEnd returns the body with the end after it.
func (l fitter) atEnd(body string) string {
	if body == "" {
		return strings.TrimLeft(l.end, "\n")
	}
	return body + l.end
}

// atStart returns the body with the end before it.
func (l fitter) atStart(body string) string {
	end := strings.TrimLeft(l.end, "\n")
	return end + l.end[:len(l.end)-len(end)] + body
}

// merge returns the body with the title as its first line.
func (l fitter) merge(title, body string, format, source Format) string {
	sep := "\r\n"
	switch {
	case format == HTML:
		title = "<b>" + title + "</b>"
		sep = "<br />\r\n"
	case format == Markdown && source != Markdown:
		title = strings.TrimLeft(title, "\r\n \t\v\f#-")
		if title == "" {
			return body
		}
		sep = "\n"
		if source == Text && l.TitleSign != "" {
			title = l.TitleSign + strings.Trim(title, l.TitleSign) + l.TitleSign
		} else {
			title = "# " + title
		}
	}
	if body == "" {
		return title
	}
	return title + sep + body
}

// titleRoom returns the maximum length of the title with its counter.
func (l fitter) titleRoom(title string) int {
	if !l.InBody {
		return l.Title
	}
	room := l.Body
	if l.end != "" {
		room -= l.Reserve + l.Unit.Length(l.end)
	}
	return min(l.Unit.Length(title)+counterWidth, l.Title, room)
}

// bodyRoom returns the maximum length of the body in addition to the title. It
// may be 0.
func (l fitter) bodyRoom(title string, titleRoom int) int {
	room := l.Body - l.Reserve
	if l.InBody && title != "" && room >= titleRoom {
		room -= titleRoom
	}
	return max(room, 0)
}

// titleOnce reports whether only the first part has the title, because it leaves
// little space for the body.
func (l fitter) titleOnce(room int) bool {
	return room == 0 || l.InBody && room-l.Unit.Length(l.end) < counterThreshold
}

// counted reports whether the parts have a counter after the title.
func (l fitter) counted(title string, titleRoom, room int) bool {
	if title == "" || l.Title < counterThreshold || titleRoom <= counterWidth {
		return false
	}
	if l.InBody {
		return room >= counterThreshold
	}
	return l.Title > counterThreshold
}

// splitWithTitle returns parts that all have the title.
func (l fitter) splitWithTitle(c *cutter, title string, titleRoom, room int) []Part {
	counted := l.counted(title, titleRoom, room)
	bodies := c.split(room, MaxParts)
	parts := make([]Part, len(bodies))
	if counted && len(bodies) > 1 {
		digits := len(fmt.Sprint(len(bodies)))
		title = title[:l.Unit.index(title, titleRoom-2*digits-len(" [/]"))]
		for i, b := range bodies {
			parts[i] = Part{fmt.Sprintf("%s [%0*d/%d]", title, digits, i+1, len(bodies)), b}
		}
		return parts
	}
	for i, b := range bodies {
		parts[i] = Part{title, b}
	}
	return parts
}

// splitAfterTitle returns parts of which only the first has the title. It has
// as much of the body as fits together with the title, possibly nothing.
func (l fitter) splitAfterTitle(c *cutter, title string, room int) []Part {
	first := Part{Title: title}
	if room > c.end {
		first.Body, _ = c.part(room)
	}
	parts := []Part{first}
	for _, b := range c.split(max(l.Body-l.Reserve, 1), MaxParts-1) {
		parts = append(parts, Part{Body: b})
	}
	return parts
}

// firstLines returns the first n lines of s, or all if n is 0.
func firstLines(s string, n int) string {
	if n <= 0 {
		return s
	}
	end := 0
	for range n {
		i := strings.IndexByte(s[end:], '\n')
		if i < 0 {
			return s
		}
		end += i + 1
	}
	return strings.TrimRight(s[:end], "\r\n")
}

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
