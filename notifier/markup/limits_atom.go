package markup

import "strings"

// whole is the length of what s begins with and is better not cut in two: a
// tag, a character reference or a link. It is 0 where s begins with none. What
// counts is what writers use, not all that the grammars of HTML and Markdown
// allow. No character is looked at more than a few times, however many atoms
// are begun and not ended.
func whole(s string) int {
	switch s[0] {
	case '<':
		return wholeTag(s)
	case '&':
		return wholeReference(s)
	case '!':
		if n := wholeLink(s[1:]); n > 0 {
			return 1 + n
		}
		return 0
	}
	return wholeLink(s)
}

// wholeTag is the length of <…>.
func wholeTag(s string) int {
	if len(s) < 2 || !isLetter(s[1]) && strings.IndexByte("/!?", s[1]) < 0 {
		return 0
	}
	return closed(s, 2, "<>", '>')
}

// wholeReference is the length of &name; or &#number;.
func wholeReference(s string) int {
	const longest = 31
	i := 1
	if strings.HasPrefix(s, "&#") {
		i = 2
	}
	start := i
	for i < len(s) && (isLetter(s[i]) || s[i] >= '0' && s[i] <= '9') {
		i++
	}
	if i == start || i > start+longest || i == len(s) || s[i] != ';' {
		return 0
	}
	return i + 1
}

// wholeLink is the length of [label](url "title"). The label may hold pictures,
// and the url pairs of parentheses.
func wholeLink(s string) int {
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
		// In a picture, the first bracket or parenthesis ends each half.
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

// closed is the place behind the first of some characters from the ith on, if
// that is the wanted one, or else 0.
func closed(s string, i int, any string, wanted byte) int {
	n := strings.IndexAny(s[i:], any)
	if n < 0 || s[i+n] != wanted {
		return 0
	}
	return i + n + 1
}

func isLetter(c byte) bool { return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' }
