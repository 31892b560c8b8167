package markup

import "strings"

// tagLength returns the length of the tag <…> that s begins with, or 0. References of chats,
// such as <@1>, are like tags.
func tagLength(s string) int {
	if len(s) < 2 || !isLetter(s[1]) && strings.IndexByte("/!?@#", s[1]) < 0 {
		return 0
	}
	var quote, last byte // last is the character before, without white space
	for i := 1; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case last == '=' && (c == '"' || c == '\''):
			quote = c
		case c == '<':
			return 0
		case c == '>':
			return i + 1
		}
		if strings.IndexByte(blanks, c) < 0 {
			last = c
		}
	}
	return 0
}

// tagName returns the name in a tag.
func tagName(tag string) string {
	tag = strings.TrimPrefix(tag[1:], "/")
	return tag[:len(tag)-len(strings.TrimLeft(tag, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"))]
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

// targetLength returns the length of the (url "title") that s begins with, or 0. The url
// may contain pairs of parentheses.
func targetLength(s string) int {
	if !strings.HasPrefix(s, "(") {
		return 0
	}
	s = s[:min(len(s), maxAddress)]
	i := 1
	if strings.HasPrefix(s[i:], "<") {
		if i = closed(s, 2, "<>\n", '>'); i == 0 {
			return 0
		}
	}
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
