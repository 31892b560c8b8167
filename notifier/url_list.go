package notifier

import "strings"

// SplitURLs splits a list of URLs at commas and white space. It splits only
// where a new URL begins: a comma within a URL does not split it.
func SplitURLs(s string) (out []string) {
	start := 0
	add := func(end int) {
		if u := strings.TrimFunc(s[start:end], isSeparator); u != "" {
			out = append(out, u)
		}
		start = end
	}
	for i := 0; ; {
		colon := strings.Index(s[i:], "://")
		if colon < 0 {
			break
		}
		colon += i
		scheme := colon
		for scheme > i && isSchemeByte(s[scheme-1]) {
			scheme--
		}
		if scheme < colon && scheme > 0 && isSeparator(rune(s[scheme-1])) {
			add(scheme)
		}
		i = colon + len("://")
	}
	add(len(s))
	return out
}

// isSeparator reports whether c separates the URLs of a list.
func isSeparator(c rune) bool { return strings.ContainsRune(", \t\r\n\v\f", c) }

// isSchemeByte reports whether c can be part of a URL's scheme (RFC 3986,
// section 3.1).
func isSchemeByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'
}
