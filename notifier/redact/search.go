package redact

import "strings"

// searcher finds any of many texts in one, in a time that depends on how
// long that is, and not on how many there are (Aho and Corasick, Efficient
// String Matching, 1975): a URL may hold hundreds of secrets, and whoever
// wrote it may run the server that answers, too.
type searcher struct {
	first    [256]int32 // the states that the first character of a text leads to
	states   []state    // the first is that of having read nothing of interest
	shortest int        // the length of the shortest text; 0 where there is none
}

// A state is having read the beginning of a text that is sought.
type state struct {
	char    byte  // its last character
	child   int32 // the first of the states with one more character
	sibling int32 // the next of those that differ in their last character
	fail    int32 // the state of having read only its end, the longest there is
	found   int32 // the length of the longest text that ends here
}

func newSearcher() *searcher { return &searcher{states: make([]state, 1)} }

// add has a text sought.
func (d *searcher) add(text string) {
	s := int32(0)
	for i := range len(text) {
		next := d.child(s, text[i])
		if next == 0 {
			next = int32(len(d.states))
			d.states = append(d.states, state{char: text[i], sibling: d.states[s].child})
			d.states[s].child = next
			if s == 0 {
				d.first[text[i]] = next
			}
		}
		s = next
	}
	d.states[s].found = int32(len(text))
	if d.shortest == 0 || len(text) < d.shortest {
		d.shortest = len(text)
	}
}

// link finishes what is sought. It goes through the states by their length,
// since each is linked to a shorter one.
func (d *searcher) link() {
	queue := make([]int32, 1, len(d.states))
	for i := 0; i < len(queue); i++ {
		s := queue[i]
		for c := d.states[s].child; c != 0; c = d.states[c].sibling {
			if s != 0 {
				d.states[c].fail = d.step(d.states[s].fail, d.states[c].char)
			}
			if d.states[c].found == 0 {
				d.states[c].found = d.states[d.states[c].fail].found
			}
			queue = append(queue, c)
		}
	}
}

func (d *searcher) child(s int32, c byte) int32 {
	if s == 0 {
		return d.first[c]
	}
	next := d.states[s].child
	for next != 0 && d.states[next].char != c {
		next = d.states[next].sibling
	}
	return next
}

// step is the state behind one more character.
func (d *searcher) step(s int32, c byte) int32 {
	for {
		next := d.child(s, c)
		if next != 0 || s == 0 {
			return next
		}
		s = d.states[s].fail
	}
}

// A passage is where something stands in a text.
type passage struct{ start, end int }

// find returns the passages of a text to hide, in no order: what is sought,
// and the words of base64 that it is a part of.
func (d *searcher) find(text string) []passage {
	var hidden, encoded []passage
	s := int32(0)
	word := 0 // where the word begins
	for i := range len(text) {
		if s = d.step(s, text[i]); d.states[s].found > 0 {
			hidden = hide(hidden, passage{i + 1 - int(d.states[s].found), i + 1})
		}
		if sextet(text[i]) < 0 {
			encoded = d.findEncoded(encoded, text, word, i)
			word = i + 1
		}
	}
	return append(hidden, d.findEncoded(encoded, text, word, len(text))...)
}

// hide appends a passage that begins behind all others, or makes it one with
// those that it overlaps.
func hide(hidden []passage, p passage) []passage {
	for len(hidden) > 0 {
		last := hidden[len(hidden)-1]
		if last.end <= p.start {
			break
		}
		p = passage{min(p.start, last.start), max(p.end, last.end)}
		hidden = hidden[:len(hidden)-1]
	}
	return append(hidden, p)
}

// findEncoded appends what to hide of the word from start to end, if that is
// base64 of what is sought, among other things. What has been encoded may
// begin anywhere in the word, as in a path, and all of it up to a slash is
// hidden.
func (d *searcher) findEncoded(hidden []passage, text string, start, end int) []passage {
	if (end-start)*6 < d.shortest*8 {
		return hidden
	}
	for from := start; from < start+4; from++ {
		var matches []passage
		s, bits, n := int32(0), 0, 0
		for i := from; i < end; i++ {
			bits, n = bits<<6|sextet(text[i]), n+6
			if n < 8 {
				continue
			}
			n -= 8
			if s = d.step(s, byte(bits>>n)); d.states[s].found > 0 {
				before := (i+1-from)*6 - n - 8*int(d.states[s].found) // bits
				matches = hide(matches, passage{from + before/6, i + 1})
			}
		}
		shown := start // what is before it is hidden, or has been looked at
		for _, p := range matches {
			if p.end <= shown {
				continue
			}
			p.start = max(shown, start+strings.LastIndexByte(text[start:p.start], '/')+1)
			if slash := strings.IndexByte(text[p.end:end], '/'); slash >= 0 {
				p.end += slash
			} else {
				p.end = end + len(text[end:]) - len(strings.TrimLeft(text[end:], "="))
			}
			hidden, shown = append(hidden, p), p.end
		}
	}
	return hidden
}

// sextet is what a character of base64 stands for, in both of its alphabets
// (RFC 4648, sections 4 and 5), or -1.
func sextet(c byte) int {
	switch {
	case c >= 'A' && c <= 'Z':
		return int(c - 'A')
	case c >= 'a' && c <= 'z':
		return int(c-'a') + 26
	case c >= '0' && c <= '9':
		return int(c-'0') + 52
	case c == '+', c == '-':
		return 62
	case c == '/', c == '_':
		return 63
	}
	return -1
}
