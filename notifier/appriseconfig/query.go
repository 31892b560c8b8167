package appriseconfig

import (
	"net/url"
	"slices"
	"strings"
)

// option is one thing that a YAML file says about an entry.
type option struct {
	name   string
	values []string
	line   int
}

// isTags says whether the option is not for the URL.
func (o option) isTags() bool { return o.name == "tag" || o.name == "tags" }

// same says whether two options, or parameters of a URL, set the same thing.
// Those with a sign before their name are headers and the like, in which upper
// and lower case differ.
func same(a, b string) bool {
	if strings.ContainsAny(a[:min(1, len(a))], "+-:") {
		return a == b
	}
	return strings.EqualFold(a, b)
}

// override adds options to others, whose place they take.
func override(base, over []option) []option {
	base = slices.DeleteFunc(slices.Clone(base), func(o option) bool {
		return slices.ContainsFunc(over, func(by option) bool {
			return same(o.name, by.name) || o.isTags() && by.isTags()
		})
	})
	return append(base, over...)
}

// withOptions puts options into the query of a notification URL, in place of
// the parameters of the same names.
func withOptions(text string, options []option) string {
	if !slices.ContainsFunc(options, func(o option) bool { return !o.isTags() }) {
		return text
	}
	base, query, _ := strings.Cut(text, "?")
	var parts []string
	for part := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		key, _, _ := strings.Cut(part, "=")
		if k, err := url.PathUnescape(key); err == nil {
			key = k
		}
		if !slices.ContainsFunc(options, func(o option) bool { return !o.isTags() && same(key, o.name) }) {
			parts = append(parts, part)
		}
	}
	for _, o := range options {
		if o.isTags() {
			continue
		}
		for _, v := range o.values {
			parts = append(parts, escape(o.name)+"="+escape(v))
		}
	}
	if len(parts) == 0 {
		return base
	}
	return base + "?" + strings.Join(parts, "&")
}

// escape encodes all that could mean something in a query; a plus sign stands
// for itself in notification URLs, so that a space is %20.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
