package markup

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxAtom is the number of bytes before and after a cut that are searched for
// an atom. It keeps the time linear.
const maxAtom = 2 << 10

// cutter finds where a text can be cut. An atom is a piece of text that should
// not be divided, for example a tag or a link.
type cutter struct {
	atoms  string // first characters of atoms; "" if the text has no atoms
	markup Format // whose open elements a cut closes, and opens again; "" for none
	unit   Unit
	end    int // the length that the last part leaves free
}

// newCutter returns the cutter for a text in format that was converted from
// source. Plain text that was written as Markdown has the atoms of Markdown. reads is the
// format that the destination reads the text as.
func newCutter(format, source, reads Format, unit Unit) cutter {
	c := cutter{unit: unit}
	switch {
	case format == HTML:
		c.atoms, c.markup = "<&", HTML
	case format == Markdown, reads == Markdown:
		c.atoms, c.markup = "<&[!", Markdown
	case source == Markdown:
		c.atoms = "<&[!"
	}
	return c
}

// split returns up to max parts of s that fit into room. Blank parts are left
// out. The first begins with opening, which opens markup again.
func (c cutter) split(opening, s string, room, max int) []string {
	var parts []string
	for {
		s = trimPart(s)
		if s == "" {
			return parts
		}
		if len(parts) == max-1 && c.unit.index(opening+s, room-c.end) < len(opening)+len(s) {
			return append(parts, c.head(opening, s, room-c.end, ellipsis))
		}
		part, next, rest := c.part(opening, s, room)
		if part != "" && (opening == "" || !c.isBlank(part)) {
			parts = append(parts, part)
		}
		opening, s = next, rest
	}
}

// part returns the first part of s, in which the markup that opening opens and that is open
// at its end is closed, what opens it again, and the rest of s.
func (c cutter) part(opening, s string, room int) (part, next, rest string) {
	used := c.unit.Length(opening)
	if used > room/2 {
		opening, used = "", 0
	}
	free := 0 // for what closes the markup
	for c.markup != "" && free <= room/2-used {
		end := c.cutPart(s, room-used-free)
		part, rest = opening+trimPart(s[:end]), s[end:]
		if trimPart(rest) == "" {
			return part, "", rest
		}
		midLine := s[end-1] != '\n' && s[end-1] != '\r' && rest[0] != '\n' && rest[0] != '\r'
		closing, next := c.openAt(opening+s[:end], rest, midLine)
		if before, ok := strings.CutSuffix(part, trimEnd(next)); ok && closing != "" { // nothing is in it yet
			part, closing = trimPart(before), ""
		}
		n := c.unit.Length(closing)
		switch {
		case n+c.unit.Length(next) > room/2:
			free = room
		case c.unit.Length(part)+n <= room:
			return part + closing, next, rest
		default:
			free = max(free+1, n)
		}
	}
	end := c.cutPart(s, room-used)
	return opening + trimPart(s[:end]), "", s[end:]
}

// maxJoined is the maximum number of bytes before a cut that belong to the character after
// it.
const maxJoined = 64

// wholeCharacters returns the end of the last character before at that is not divided: of
// accents, and of emojis that are made of several. It returns at if there is none nearby.
func wholeCharacters(s string, at int) int {
	for i := at; i > 0 && i > at-maxJoined; {
		last, size := utf8.DecodeLastRuneInString(s[:i])
		next, _ := utf8.DecodeRuneInString(s[i:])
		flags := (i - len(strings.TrimRightFunc(s[:i], isFlagLetter))) / utf8.UTFMax
		if last != zeroWidthJoiner && !joins(next) && !(isFlagLetter(next) && flags%2 == 1) {
			return i
		}
		i -= size
	}
	return at
}

const zeroWidthJoiner = '\u200d'

// joins reports whether r belongs to the character before it: accents, and the colors of
// emojis.
func joins(r rune) bool {
	return r == zeroWidthJoiner || unicode.Is(unicode.M, r) || r >= 0x1f3fb && r <= 0x1f3ff
}

// isFlagLetter reports whether r is a letter, two of which are a flag.
func isFlagLetter(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

// cutPart is like cut, but leaves something for another part if s would be the last
// and has no room for the end.
func (c cutter) cutPart(s string, room int) int {
	end := c.cut(s, room)
	if end < len(s) || c.unit.index(s, room-c.end) == len(s) {
		return end
	}
	return c.cut(s, max(room-c.end, c.unit.Length(s)/2))
}

// cut returns the length of the first part of s in bytes. It is never 0.
func (c cutter) cut(s string, room int) int {
	end := c.unit.index(s, room)
	if end == 0 { // the first character is longer than room
		_, end = utf8.DecodeRuneInString(s)
	}
	if end == len(s) {
		return end
	}
	end = wholeCharacters(s, end)
	window := s[:end]
	first := 0
	for _, at := range [...]int{
		strings.LastIndexAny(window, "\r\n") + 1,
		strings.LastIndexAny(window, " \t") + 1,
		afterPunctuation(window),
		end,
	} {
		if first == 0 {
			first = at
		}
		if at = c.before(s, at, room); at > 0 {
			return at
		}
	}
	return first
}

// head returns opening and as much of s as fits, without a partial atom at the end, with
// mark after it and the markup closed.
func (c cutter) head(opening, s string, room int, mark string) string {
	room -= c.unit.Length(mark) + c.unit.Length(opening)
	closing := ""
	for range 3 {
		end := c.unit.index(s, room-c.unit.Length(closing))
		if end < len(s) {
			if at := c.before(s, end, room); at > 0 {
				end = at
			}
		}
		part := opening + s[:end]
		if mark == "" {
			part = trimPart(part)
		}
		needed, _ := c.openAt(part, s[end:], true)
		if c.unit.Length(needed) <= c.unit.Length(closing) {
			return part + mark + needed
		}
		if closing = needed; c.unit.Length(closing) > room/2 {
			break
		}
	}
	return opening + s[:c.unit.index(s, room)] + mark
}

// before returns at, or the start of the atom that a cut at would divide. It
// does not look for atoms longer than room, because they fit into no part.
func (c cutter) before(s string, at, room int) int {
	if c.atoms == "" {
		return at
	}
	reach := min(maxAtom, utf8.UTFMax*room)
	i, end := max(0, at-reach), min(len(s), at+reach)
	for i < at {
		next := strings.IndexAny(s[i:at], c.atoms)
		if next < 0 {
			break
		}
		i += next
		if c.isEscaped(s, i) {
			i++
			continue
		}
		n := atomLength(s[i:end])
		if i+n > at {
			return i
		}
		i += max(n, 1)
	}
	if c.isEscaped(s, at) {
		return at - 1
	}
	return at
}

// isEscaped reports whether the character at i is after a backslash that makes it text.
func (c cutter) isEscaped(s string, i int) bool {
	return c.markup == Markdown && i < len(s) && isPunctuation(s[i]) && (i-len(strings.TrimRight(s[:i], `\`)))%2 == 1
}

// afterPunctuation returns the index after the last punctuation mark in s, or 0
// if that is in the first half of s.
func afterPunctuation(s string) int {
	i := strings.LastIndexAny(s, ".!?:;。！？：；")
	if i < len(s)/2 {
		return 0
	}
	_, size := utf8.DecodeRuneInString(s[i:])
	return i + size
}

// trimPart removes line breaks at the start and white space at the end. It keeps
// the indentation of the first line.
func trimPart(s string) string {
	return trimEnd(strings.TrimLeft(s, "\r\n\v\f"))
}

func trimEnd(s string) string { return strings.TrimRightFunc(s, unicode.IsSpace) }
