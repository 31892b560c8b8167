package caddyhttp

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// pair is a name and a value of a form or a query string.
type pair struct{ name, value string }

// parsePairs reads application/x-www-form-urlencoded text as browsers do
// (WHATWG URL, section 5.1), in its order. Unlike with net/url, a semicolon is
// a character like others and so is a percent sign that begins no escape: who
// writes "body=91% full; act now" on a command line means just that.
func parsePairs(s string) (out []pair, err error) {
	for part := range strings.SplitSeq(s, "&") {
		if part == "" {
			continue
		}
		if len(out) == maxFields {
			return nil, fmt.Errorf("more than %d fields", maxFields)
		}
		name, value, _ := strings.Cut(part, "=")
		p := pair{unescape(name), unescape(value)}
		if !utf8.ValidString(p.name) || !utf8.ValidString(p.value) {
			return nil, errors.New("not UTF-8")
		}
		out = append(out, p)
	}
	return out, nil
}

func unescape(s string) string {
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '+':
			b = append(b, ' ')
		case s[i] == '%' && i+2 < len(s) && unhex(s[i+1]) >= 0 && unhex(s[i+2]) >= 0:
			b = append(b, byte(unhex(s[i+1])<<4|unhex(s[i+2])))
			i += 2
		default:
			b = append(b, s[i])
		}
	}
	return string(b)
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// readForm reads an urlencoded form.
func readForm(text string) (map[string]field, error) {
	pairs, err := parsePairs(text)
	if err != nil {
		return nil, badRequest("the form: %w", err)
	}
	fields := make(map[string]field, len(pairs))
	for _, p := range pairs {
		fields[p.name] = field{texts: append(fields[p.name].texts, p.value)}
	}
	return fields, nil
}
