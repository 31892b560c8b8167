package caddyhttp

import "strings"

// maxURLs is how many destinations one request may name.
const maxURLs = 1000

// urls are the notification URLs that the request brings.
func (q *request) urls() ([]string, error) {
	items, _, err := q.fields[fieldURLs].items(fieldURLs, false)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, item := range items {
		s := strings.TrimSpace(item.(string))
		if s != "" {
			out = append(out, splitURLs(s)...)
		}
		if len(out) > maxURLs {
			return nil, badRequest("the field urls has more than %d URLs", maxURLs)
		}
	}
	return out, nil
}

// splitURLs splits a list of URLs at commas and white space, but only where a
// new URL begins: a comma within a URL does not split it.
func splitURLs(s string) (out []string) {
	start := 0
	add := func(end int) {
		if u := strings.TrimFunc(s[start:end], isSeparator); u != "" {
			out = append(out, u)
		}
		start = end
	}
	for i := 0; ; {
		at := strings.Index(s[i:], "://")
		if at < 0 {
			break
		}
		at += i
		begin := at
		for begin > i && isSchemeByte(s[begin-1]) {
			begin--
		}
		if begin < at && begin > 0 && isSeparator(rune(s[begin-1])) {
			add(begin)
		}
		i = at + len("://")
	}
	add(len(s))
	return out
}

// isSeparator says whether a character stands between URLs of a list.
func isSeparator(c rune) bool { return strings.ContainsRune(", \t\r\n\v\f", c) }

// isSchemeByte says whether a character can be part of a URL's scheme (RFC
// 3986, section 3.1).
func isSchemeByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'
}
