package markup

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxAtom is how far around a cut an atom is looked for, in bytes. It keeps
// the work linear.
const maxAtom = 2 << 10

// A cutter finds where a text can be cut.
type cutter struct {
	atoms string // the characters that atoms begin with; "" where everything can be cut
	unit  Unit
}

func newCutter(format, source Format, unit Unit) cutter {
	c := cutter{unit: unit}
	switch {
	case format == HTML:
		c.atoms = "<&"
	case format == Markdown, source == Markdown:
		c.atoms = "<&[!"
	}
	return c
}

const ellipsis = "…"

// split cuts s into parts of at most that length, and at most max of
// them. A part that would be blank is left out.
func (c cutter) split(s string, room, max int) []string {
	var parts []string
	for {
		s = trimPart(s)
		if s == "" {
			return parts
		}
		if len(parts) == max-1 && c.unit.index(s, room) < len(s) {
			return append(parts, c.head(s, room-c.unit.length(ellipsis))+ellipsis)
		}
		end := c.cut(s, room)
		if part := trimPart(s[:end]); part != "" {
			parts = append(parts, part)
		}
		s = s[end:]
	}
}

// cut is where the first part of s ends, in bytes; it is never 0.
func (c cutter) cut(s string, room int) int {
	end := c.unit.index(s, room)
	if end == 0 { // a character that is longer than the room
		_, end = utf8.DecodeRuneInString(s)
	}
	if end == len(s) {
		return end
	}
	window := s[:end]
	first := 0
	for _, at := range [...]int{
		strings.LastIndexAny(window, "\r\n") + 1,
		strings.LastIndexAny(window, " \t") + 1,
		behindPunctuation(window),
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

// head is as much of s as fits, without what would be half an atom.
func (c cutter) head(s string, room int) string {
	end := c.unit.index(s, room)
	if end < len(s) {
		if at := c.before(s, end, room); at > 0 {
			end = at
		}
	}
	return s[:end]
}

// before moves a cut that would go through an atom to the atom's beginning.
// An atom that is longer than room fits nowhere, so it is not sought.
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
		n := whole(s[i:end])
		if i+n > at {
			return i
		}
		i += max(n, 1)
	}
	return at
}

// behindPunctuation is the end of the last punctuation mark, or 0 if that
// would leave the part less than half full.
func behindPunctuation(s string) int {
	i := strings.LastIndexAny(s, ".!?:;。！？：；")
	if i < len(s)/2 {
		return 0
	}
	_, size := utf8.DecodeRuneInString(s[i:])
	return i + size
}

// trimPart drops line breaks before and white space behind, but keeps the
// first line's indentation.
func trimPart(s string) string {
	return trimEnd(strings.TrimLeft(s, "\r\n\v\f"))
}

func trimEnd(s string) string { return strings.TrimRightFunc(s, unicode.IsSpace) }
