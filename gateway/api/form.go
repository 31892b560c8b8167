package api

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/internal/percent"
)

// pair is a name and a value of a form or a query string.
type pair struct{ name, value string }

// parsePairs parses application/x-www-form-urlencoded text as browsers do
// (WHATWG URL, section 5.1) and returns the pairs in order. Unlike net/url, it
// takes a semicolon, and a percent sign that begins no escape, as ordinary
// characters: curl -d "body=91% full; act now" sends that text.
func parsePairs(s string) (out []pair, err error) {
	for part := range strings.SplitSeq(s, "&") {
		if part == "" {
			continue
		}
		if len(out) == maxFields {
			return nil, fmt.Errorf("more than %d fields", maxFields)
		}
		name, value, _ := strings.Cut(part, "=")
		p := pair{percent.DecodeForm(name), percent.DecodeForm(value)}
		if !utf8.ValidString(p.name) || !utf8.ValidString(p.value) {
			return nil, errors.New("it is not UTF-8; encode it as UTF-8")
		}
		out = append(out, p)
	}
	return out, nil
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
