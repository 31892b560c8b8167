package appriseconfig

import (
	"net/url"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/internal/percent"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// option is an option of an entry in a YAML file.
type option struct {
	name   string
	values []string
	line   int
}

// isTags reports whether the option lists tags. All others go into the URL.
func (o option) isTags() bool { return o.name == "tag" || o.name == "tags" }

// The names of the option for a password. If a map has both, the first counts unless
// it is empty.
const (
	passwordName  = "password"
	passwordAlias = "pass"
)

// sameName reports whether two options, or parameters of a URL, have the same name.
// Names are case-insensitive, except the names of headers and fields, which begin with
// +, - or :.
func sameName(a, b string) bool {
	if strings.ContainsAny(a[:min(1, len(a))], "+-:") {
		return a == b
	}
	return strings.EqualFold(a, b) || isPassword(a) && isPassword(b)
}

func isPassword(name string) bool {
	return strings.EqualFold(name, passwordName) || strings.EqualFold(name, passwordAlias)
}

// onePassword returns the options of a map without the ineffective one of two passwords.
func onePassword(options []option) []option {
	find := func(name string) int {
		return slices.IndexFunc(options, func(o option) bool { return strings.EqualFold(o.name, name) })
	}
	password, alias := find(passwordName), find(passwordAlias)
	switch {
	case password < 0 || alias < 0:
		return options
	case len(options[password].values) == 0:
		return slices.Delete(options, password, password+1)
	}
	return slices.Delete(options, alias, alias+1)
}

// override returns base with the options of over, which replace options of the same name.
func override(base, over []option) []option {
	base = slices.DeleteFunc(slices.Clone(base), func(o option) bool {
		return slices.ContainsFunc(over, func(by option) bool {
			return sameName(o.name, by.name) || o.isTags() && by.isTags()
		})
	})
	return append(base, over...)
}

// withOptions adds options to the query of a notification URL. They replace
// parameters of the same name.
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
		if !slices.ContainsFunc(options, func(o option) bool { return !o.isTags() && sameName(key, o.name) }) {
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

// escape encodes s for a query, but not the variables in it. A space is %20, since a
// plus sign is not a space in notification URLs.
func escape(s string) string {
	var b strings.Builder
	end := 0
	for _, at := range variable.FindAllStringSubmatchIndex(s, -1) {
		b.WriteString(queryEscape(s[end:at[0]]))
		b.WriteString(s[at[0]:at[1]])
		end = at[1]
	}
	b.WriteString(queryEscape(s[end:]))
	return b.String()
}

func queryEscape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// variable matches a variable that the caller of Load replaces in the URLs.
var variable = lazyregexp.New(`\$\{[A-Za-z0-9_]+\}`)

// cutTags returns a URL without the parameters tag and tags of its query, and the tags in
// them. A service that has such a parameter itself keeps it.
func cutTags(text string) (rest string, tags []string) {
	base, query, ok := strings.Cut(text, "?")
	if !ok || !strings.Contains(strings.ToLower(query), "tag") {
		return text, nil
	}
	scheme, _, _ := strings.Cut(strings.TrimSpace(base), "://")
	var parts []string
	for part := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		key, value, _ := strings.Cut(part, "=")
		name := strings.ToLower(percent.DecodeText(key))
		if name != "tag" && name != "tags" || notifier.HasParam(scheme, name) {
			parts = append(parts, part)
			continue
		}
		tags = append(tags, splitTags(percent.DecodeForm(value))...)
	}
	switch {
	case tags == nil:
		return text, nil
	case parts == nil:
		return base, tags
	}
	return base + "?" + strings.Join(parts, "&"), tags
}
