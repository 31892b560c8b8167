package markup

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Overflow says what becomes of a message that is longer than its
// destination takes.
type Overflow string

// The ways to treat a message that is too long. The zero Overflow counts as
// [OverflowUpstream].
const (
	OverflowUpstream Overflow = "upstream" // send it as it is; the destination may cut it, and where it refuses it, parts are sent
	OverflowTruncate Overflow = "truncate" // send what fits
	OverflowSplit    Overflow = "split"    // send it in several parts
)

// MaxParts is how many parts a message is split into at most. Where it would
// need more, the last part ends in an ellipsis and the rest is not sent.
const MaxParts = 500

const (
	// counterWidth is the room that the widest counter takes, " [500/500]"
	// and a little more.
	counterWidth = 12

	// counterThreshold is the length that a title, or a body which shares
	// its room with the title, may have at least where the parts of a
	// message are counted: shorter ones have no room to spare.
	counterThreshold = 130
)

// TitlePlace says which parts of a split message have the title.
type TitlePlace int

const (
	TitleAuto  TitlePlace = iota // [TitleFirst] where the title takes much of the body's room, else [TitleEvery]
	TitleFirst                   // the first part
	TitleEvery                   // all parts
)

// Unit is what the length of a text is counted in.
type Unit string

// The units of limits.
const (
	Characters Unit = "characters" // Unicode code points
	UTF8Bytes  Unit = "bytes"
	UTF16Units Unit = "UTF-16 units" // of which a character beyond U+FFFF has two
)

// of is the length of a character.
func (u Unit) of(c rune) int {
	switch u {
	case UTF8Bytes:
		return utf8.RuneLen(c)
	case UTF16Units:
		return utf16.RuneLen(c)
	}
	return 1
}

// length is that of a text.
func (u Unit) length(s string) (n int) {
	switch u {
	case UTF8Bytes:
		return len(s)
	case UTF16Units:
		for _, c := range s {
			n += u.of(c)
		}
		return n
	}
	return utf8.RuneCountInString(s)
}

// index is how many bytes of s have a length of at most n.
func (u Unit) index(s string, n int) int {
	for i, c := range s {
		if n -= u.of(c); n < 0 {
			return i
		}
	}
	return len(s)
}

// Limits are what a message to a destination may measure.
type Limits struct {
	Unit  Unit // what lengths are counted in; "" means [Characters]
	Title int  // length of the title; 0 for a destination without titles, where it becomes the body's first line
	Body  int  // length of the body; 0 for any
	Lines int  // lines of the body, cut whatever the overflow says; 0 for any

	// InBody says that title and body are sent as one text, so that both
	// together may be as long as Body.
	InBody bool

	// Reserve is how much of Body is kept free in every part, for what the
	// destination adds.
	Reserve int

	// TitlePlace says which parts of a split message have the title.
	TitlePlace TitlePlace

	// TitleTag is the HTML element of a title that becomes the first line
	// of an HTML body; "" means b.
	TitleTag string
}

// Part is a message, or a piece of one, that is within the limits.
type Part struct{ Title, Body string }

// Fit makes one or more parts of a message that is written in format, into
// which it was converted from source. There is always one part at least, and
// more than one in mode [OverflowSplit] only.
//
// White space around the title and at the end of the body is dropped. Where
// the title is repeated in every part and there is room for it, parts are
// counted behind it: "Backup [2/3]". A cut is made behind a line break if
// there is one, else behind a space or tab, else behind a punctuation mark,
// else where the room ends; never within a code point, and within an HTML
// tag, an HTML character reference or a Markdown link only if that is longer
// than a part.
func (l Limits) Fit(title, body string, format, source Format, mode Overflow) []Part {
	title = strings.TrimSpace(title)
	body = trimEnd(body)
	if l.Title <= 0 && title != "" {
		title, body = "", l.merge(title, body, format, source)
	}
	body = firstLines(body, l.Lines)
	if l.Body <= 0 || mode != OverflowTruncate && mode != OverflowSplit {
		return []Part{{title, body}}
	}

	titleRoom := l.titleRoom(title)
	title = trimEnd(title[:l.Unit.index(title, titleRoom)])
	room := l.bodyRoom(title, titleRoom)
	if body == "" || l.Unit.index(body, room) == len(body) {
		return []Part{{title, body}}
	}
	c := newCutter(format, source, l.Unit)
	if mode == OverflowTruncate {
		return []Part{{title, trimPart(c.head(body, room))}}
	}
	if l.titleFirst(room) {
		return l.splitBehindTitle(c, title, body, room)
	}
	return l.splitWithTitle(c, title, body, titleRoom, room)
}

// merge makes the title the beginning of the body.
func (l Limits) merge(title, body string, format, source Format) string {
	sep := "\r\n"
	switch {
	case format == HTML:
		tag := l.TitleTag
		if tag == "" {
			tag = "b"
		}
		title = "<" + tag + ">" + title + "</" + tag + ">"
		sep = "<br />\r\n"
	case format == Markdown && source != Markdown:
		title = strings.TrimLeft(title, "\r\n \t\v\f#-")
		if title == "" {
			return body
		}
		title = "# " + title
		sep = "\n"
	}
	if body == "" {
		return title
	}
	return title + sep + body
}

// titleRoom is how long the title may be, the counter included.
func (l Limits) titleRoom(title string) int {
	if !l.InBody {
		return l.Title
	}
	return min(l.Unit.length(title)+counterWidth, l.Title, l.Body)
}

// bodyRoom is what the title leaves to the body; it may be nothing.
func (l Limits) bodyRoom(title string, titleRoom int) int {
	room := l.Body - l.Reserve
	if l.InBody && title != "" && room >= titleRoom {
		room -= titleRoom
	}
	return max(room, 0)
}

func (l Limits) titleFirst(room int) bool {
	if room == 0 || l.TitlePlace == TitleFirst {
		return true
	}
	return l.TitlePlace == TitleAuto && l.InBody && room < counterThreshold
}

// counted reports whether the parts have a counter behind the title.
func (l Limits) counted(title string, titleRoom, room int) bool {
	if title == "" || l.Title < counterThreshold || titleRoom <= counterWidth {
		return false
	}
	if l.InBody {
		return room >= counterThreshold
	}
	return l.Title > counterThreshold
}

// splitWithTitle repeats the title in every part.
func (l Limits) splitWithTitle(c cutter, title, body string, titleRoom, room int) []Part {
	counted := l.counted(title, titleRoom, room)
	bodies := c.split(body, room, MaxParts)
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

// splitBehindTitle sends the title once, with as much of the body as fits,
// which may be nothing, and the parts behind it have the whole room.
func (l Limits) splitBehindTitle(c cutter, title, body string, room int) []Part {
	first := Part{Title: title}
	if room > 0 {
		end := c.cut(body, room)
		first.Body, body = trimPart(body[:end]), body[end:]
	}
	parts := []Part{first}
	for _, b := range c.split(body, max(l.Body-l.Reserve, 1), MaxParts-1) {
		parts = append(parts, Part{Body: b})
	}
	return parts
}

// firstLines is s without what is behind its nth line; 0 keeps all.
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
