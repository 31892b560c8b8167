package markup

import "strings"

// atomLength returns the length of the tag, character reference or link that s
// begins with, or 0 if there is none. It knows the forms that people write, not
// the whole grammars of HTML and Markdown. It reads each character only a few
// times, also if many atoms are opened and not closed.
func atomLength(s string) int {
	switch s[0] {
	case '<':
		return tagLength(s)
	case '&':
		return referenceLength(s)
	case '!':
		if n := linkLength(s[1:]); n > 0 {
			return 1 + n
		}
		return 0
	}
	return linkLength(s)
}

// tagLength returns the length of the tag <…> that s begins with, or 0.
func tagLength(s string) int {
	if len(s) < 2 || !isLetter(s[1]) && strings.IndexByte("/!?", s[1]) < 0 {
		return 0
	}
	return closed(s, 2, "<>", '>')
}

// referenceLength returns the length of the &name; or &#number; that s begins
// with, or 0.
func referenceLength(s string) int {
	const maxName = 31
	i := 1
	if strings.HasPrefix(s, "&#") {
		i = 2
	}
	start := i
	for i < len(s) && (isLetter(s[i]) || s[i] >= '0' && s[i] <= '9') {
		i++
	}
	if i == start || i > start+maxName || i == len(s) || s[i] != ';' {
		return 0
	}
	return i + 1
}

// linkLength returns the length of the [label](url "title") that s begins with,
// or 0. The label may contain images, and the url pairs of parentheses.
func linkLength(s string) int {
	if s == "" || s[0] != '[' {
		return 0
	}
	i := 1
	for {
		n := strings.IndexAny(s[i:], "[]")
		if n < 0 {
			return 0
		}
		i += n
		if s[i] == ']' {
			break
		}
		// In an image, the first closing bracket or parenthesis ends the label
		// or the address.
		label := closed(s, i+1, "[]", ']')
		if s[i-1] != '!' || label == 0 || !strings.HasPrefix(s[label:], "(") {
			return 0
		}
		if i = closed(s, label+1, noAddress, ')'); i == 0 {
			return 0
		}
	}
	if !strings.HasPrefix(s[i:], "](") {
		return 0
	}
	i += 2
	for {
		n := strings.IndexAny(s[i:], noAddress)
		if n < 0 {
			return 0
		}
		i += n
		if s[i] != '(' {
			break
		}
		if i = closed(s, i+1, noAddress, ')'); i == 0 {
			return 0
		}
	}
	if rest := strings.TrimLeft(s[i:], blanks); len(rest) < len(s[i:]) && strings.HasPrefix(rest, `"`) {
		if i = closed(s, len(s)-len(rest)+1, "\"\n", '"'); i == 0 {
			return 0
		}
	}
	if !strings.HasPrefix(s[i:], ")") {
		return 0
	}
	return i + 1
}

const (
	blanks    = " \t\n\f\r"
	noAddress = "()" + blanks
)

// closed returns the index after the first character of s[i:] that is in any, if
// it is end. Otherwise it returns 0.
func closed(s string, i int, any string, end byte) int {
	n := strings.IndexAny(s[i:], any)
	if n < 0 || s[i+n] != end {
		return 0
	}
	return i + n + 1
}

func isLetter(c byte) bool { return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' }
