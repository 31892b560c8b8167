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
	atoms string // first characters of atoms; "" if the text has no atoms
	unit  Unit
	end   int // the length that the last part leaves free
}

// newCutter returns the cutter for a text in format that was converted from
// source. Plain text that was written as Markdown has the atoms of Markdown.
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

// split returns up to max parts of s that fit into room. Blank parts are left
// out.
func (c cutter) split(s string, room, max int) []string {
	var parts []string
	for {
		s = trimPart(s)
		if s == "" {
			return parts
		}
		if len(parts) == max-1 && c.unit.index(s, room-c.end) < len(s) {
			return append(parts, c.head(s, room-c.end-c.unit.Length(ellipsis))+ellipsis)
		}
		end := c.cutPart(s, room)
		if part := trimPart(s[:end]); part != "" {
			parts = append(parts, part)
		}
		s = s[end:]
	}
}

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

// head returns as much of s as fits, without a partial atom at the end.
func (c cutter) head(s string, room int) string {
	end := c.unit.index(s, room)
	if end < len(s) {
		if at := c.before(s, end, room); at > 0 {
			end = at
		}
	}
	return s[:end]
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
		n := atomLength(s[i:end])
		if i+n > at {
			return i
		}
		i += max(n, 1)
	}
	return at
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
