package urlsyntax

import (
	"regexp"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/internal/percent"
)

// A Native is an address that a service gives out, such as the address of a webhook, in the
// notation of Schema.Native of package notifier.
type Native struct {
	Text    string
	prefix  string // the text before the first place or bracket
	pattern *lazyregexp.Regexp
	Names   []string     // the parameters of the pattern's groups
	Query   []QueryParam // parameters that the address sets
	Bare    string       // the parameter that is the first key of a query; may be ""
}

var nativePlace = lazyregexp.New(`\\\{(\w+)(\\\.\\\.\\\.)?\\\}`)

// CompileNative makes a pattern of an address. A {name} is anything up to a
// slash or, in the host, up to a dot; a {name...} is anything; {host...} is an
// authority; brackets enclose optional parts.
func CompileNative(text string) *Native {
	n := &Native{Text: text}
	text, query, _ := strings.Cut(text, "?")
	for part := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' }) {
		key, value, _ := strings.Cut(part, "=")
		if name, ok := strings.CutPrefix(key, "{"); ok {
			n.Bare = strings.TrimSuffix(name, "}")
			continue
		}
		if !strings.HasPrefix(value, "{") {
			n.Query = append(n.Query, QueryParam{key, value})
		}
	}
	n.prefix = text
	if i := strings.IndexAny(text, "{["); i >= 0 {
		n.prefix = text[:i]
	}
	p := regexp.QuoteMeta(text)
	p = strings.NewReplacer(`\[`, `(?:`, `\]`, `)?`).Replace(p)
	hostEnd := len(p)
	if i := strings.Index(p[8:], "/"); i >= 0 {
		hostEnd = i + 8
	}
	var b strings.Builder
	last := 0
	for _, m := range nativePlace.FindAllStringSubmatchIndex(p, -1) {
		before := p[last:m[0]]
		n.Names = append(n.Names, p[m[2]:m[3]])
		if p[m[2]:m[3]] == "host" {
			// The text before the place is a part of the host, too.
			scheme, start, _ := strings.Cut(before, "://")
			b.WriteString(scheme + "://(" + start + `[^/]+)`)
			last = m[1]
			continue
		}
		b.WriteString(before)
		switch {
		case m[4] >= 0:
			b.WriteString(`(.+?)`)
		case m[0] < hostEnd:
			b.WriteString(`([^/.]+)`)
		default:
			b.WriteString(`([^/]+)`)
		}
		last = m[1]
	}
	b.WriteString(p[last:])
	n.pattern = lazyregexp.New(`(?i)^` + b.String() + `/*$`)
	return n
}

var (
	nativeOptional = lazyregexp.New(`\[[^\]]*\]`)
	nativeName     = lazyregexp.New(`\{(\w+)[^}]*\}`)
)

// Needs returns the names of the parameters that each of these addresses has, and the
// address with … for each. It returns nil for an address that is not given out as a whole.
func (n *Native) Needs() (names []string, shown string) {
	_, rest, _ := strings.Cut(n.Text, "://")
	authority, _, _ := strings.Cut(rest, "/")
	if len(n.Query) > 0 || strings.Contains(authority, "@") {
		return nil, ""
	}
	text := nativeOptional.ReplaceAllString(n.Text, "")
	for _, m := range nativeName.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names, nativeName.ReplaceAllString(text, "…")
}

// Match returns the values in an address without its query, or nil if it does
// not match.
func (n *Native) Match(s string) map[string][]string {
	if len(s) < len(n.prefix) || !strings.EqualFold(s[:len(n.prefix)], n.prefix) {
		return nil // without compiling the pattern
	}
	m := n.pattern.FindStringSubmatch(s)
	if m == nil {
		return nil
	}
	values := map[string][]string{}
	for i, name := range n.Names {
		if name == "host" {
			if AddAuthority(m[i+1], values); values[name] == nil {
				return nil // only a port or a user
			}
			continue
		}
		for v := range strings.SplitSeq(m[i+1], "/") {
			if v != "" {
				values[name] = append(values[name], percent.DecodeText(v))
			}
		}
	}
	return values
}

// AddAuthority adds the parts of an authority to values.
func AddAuthority(s string, values map[string][]string) {
	set := func(name, v string) {
		if v != "" {
			values[name] = []string{percent.DecodeText(v)}
		}
	}
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		user, password, _ := strings.Cut(s[:i], ":")
		set("user", user)
		set("password", password)
		s = s[i+1:]
	}
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.HasSuffix(s, "]") {
		set("port", s[i+1:])
		s = s[:i]
	}
	set("host", s)
}
