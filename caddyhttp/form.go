package caddyhttp

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/internal/percent"
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
	return percent.Decode(strings.ReplaceAll(s, "+", " "))
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
