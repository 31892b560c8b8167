package redact

import (
	"strings"
	"unicode/utf8"
)

// searcher finds any of many patterns in a text. The time depends on the
// length of the text, not on the number of patterns (Aho and Corasick,
// Efficient String Matching, 1975). That matters because a client may write a
// URL with hundreds of secrets and run the server whose answer is searched.
type searcher struct {
	first    [256]int32 // the state after each first byte; 0 for none
	states   []state    // states[0] is the start
	shortest int        // length of the shortest pattern; 0 if there is none
	longest  int        // length of the longest pattern
}

// state is the prefix of a pattern that the search has read.
type state struct {
	char    byte  // the last byte of the prefix
	word    uint8 // length of the longest whole word that ends here
	child   int32 // first state with one more byte
	sibling int32 // next state with the same parent
	fail    int32 // the longest other state that is a suffix of the prefix
	found   int32 // length of the longest other pattern that ends here
}

func newSearcher() *searcher { return &searcher{states: make([]state, 1)} }

// isWord reports whether a pattern is found as a whole word only: a short one of
// letters and digits. "pass" is a part of the word password, which is no secret.
func isWord(pattern string) bool {
	const short = 8
	return len(pattern) < short && strings.IndexFunc(pattern, func(r rune) bool { return r >= utf8.RuneSelf || !isAlnum(byte(r)) }) < 0
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// endsWord reports whether the whole word that state at has found ends before
// text[end], and begins where no other word goes on. No shorter one can if the
// longest does not.
func (s *searcher) endsWord(at int32, text string, end int) bool {
	n := int(s.states[at].word)
	return n > 0 && (end == n || !isAlnum(text[end-n-1])) && (end == len(text) || !isAlnum(text[end]))
}

// add adds a pattern. All patterns must be added before link is called.
func (s *searcher) add(pattern string) {
	at := int32(0)
	for i := range len(pattern) {
		next := s.child(at, pattern[i])
		if next == 0 {
			next = int32(len(s.states))
			s.states = append(s.states, state{char: pattern[i], sibling: s.states[at].child})
			s.states[at].child = next
			if at == 0 {
				s.first[pattern[i]] = next
			}
		}
		at = next
	}
	if isWord(pattern) {
		s.states[at].word = uint8(len(pattern))
	} else {
		s.states[at].found = int32(len(pattern))
	}
	if s.shortest == 0 || len(pattern) < s.shortest {
		s.shortest = len(pattern)
	}
	s.longest = max(s.longest, len(pattern))
}

// link sets the fail links. It visits states by length, because each links to
// a shorter one.
func (s *searcher) link() {
	queue := make([]int32, 1, len(s.states))
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		for c := s.states[at].child; c != 0; c = s.states[c].sibling {
			if at != 0 {
				s.states[c].fail = s.step(s.states[at].fail, s.states[c].char)
			}
			fail := s.states[s.states[c].fail]
			if s.states[c].found == 0 {
				s.states[c].found = fail.found
			}
			if s.states[c].word == 0 {
				s.states[c].word = fail.word
			}
			queue = append(queue, c)
		}
	}
}

// child returns the state that extends at by c, or 0.
func (s *searcher) child(at int32, c byte) int32 {
	if at == 0 {
		return s.first[c]
	}
	next := s.states[at].child
	for next != 0 && s.states[next].char != c {
		next = s.states[next].sibling
	}
	return next
}

// step returns the state after at and c.
func (s *searcher) step(at int32, c byte) int32 {
	for {
		next := s.child(at, c)
		if next != 0 || at == 0 {
			return next
		}
		at = s.states[at].fail
	}
}

// span is the part of a text from start to end.
type span struct{ start, end int }

// find returns the spans of text to mask, in no particular order: the patterns
// in text, and the words of base64 that contain one.
func (s *searcher) find(text string) []span {
	var found, encoded []span
	at := int32(0)
	word := 0 // start of the current word of base64 characters
	for i := range len(text) {
		if at = s.step(at, text[i]); s.states[at].found > 0 {
			found = appendMerged(found, span{i + 1 - int(s.states[at].found), i + 1})
		}
		if s.endsWord(at, text, i+1) {
			found = appendMerged(found, span{i + 1 - int(s.states[at].word), i + 1})
		}
		if sextet(text[i]) < 0 {
			encoded = s.appendEncoded(encoded, text, word, i)
			word = i + 1
		}
	}
	return append(found, s.appendEncoded(encoded, text, word, len(text))...)
}

// appendMerged appends a span that ends after all others and merges it with
// those that it overlaps.
func appendMerged(spans []span, p span) []span {
	for len(spans) > 0 {
		last := spans[len(spans)-1]
		if last.end <= p.start {
			break
		}
		p = span{min(p.start, last.start), max(p.end, last.end)}
		spans = spans[:len(spans)-1]
	}
	return append(spans, p)
}

// appendEncoded appends the parts of text[start:end], a word of base64
// characters, whose decoding contains a pattern. The encoding may begin
// anywhere in the word, for example after a slash in a path. A part extends
// from slash to slash.
func (s *searcher) appendEncoded(spans []span, text string, start, end int) []span {
	if (end-start)*6 < s.shortest*8 {
		return spans
	}
	for from := start; from < start+4; from++ {
		var matches []span
		at, bits, n := int32(0), 0, 0
		for i := from; i < end; i++ {
			bits, n = bits<<6|sextet(text[i]), n+6
			if n < 8 {
				continue
			}
			n -= 8
			at = s.step(at, byte(bits>>n))
			if length := max(int(s.states[at].found), int(s.states[at].word)); length > 0 {
				before := (i+1-from)*6 - n - 8*length // bits before the pattern
				matches = appendMerged(matches, span{from + before/6, i + 1})
			}
		}
		done := start // the text before it is masked or has been searched
		for _, m := range matches {
			if m.end <= done {
				continue
			}
			m.start = max(done, start+strings.LastIndexByte(text[start:m.start], '/')+1)
			if slash := strings.IndexByte(text[m.end:end], '/'); slash >= 0 {
				m.end += slash
			} else {
				m.end = end + len(text[end:]) - len(strings.TrimLeft(text[end:], "="))
			}
			spans, done = append(spans, m), m.end
		}
	}
	return spans
}

// sextet returns the value of a base64 character in either alphabet (RFC 4648,
// sections 4 and 5), or -1.
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
