package urlsyntax

import (
	"net/url"
	"strings"
)

// Print returns a URL with the values at their places. With colon, an empty
// password is printed, too.
func (t *Template) Print(scheme string, values func(name string) []string, colon bool) string {
	one := func(name string, escape func(string) string) string {
		if name == "" {
			return ""
		}
		if v := values(name); len(v) > 0 {
			return escape(v[0])
		}
		return ""
	}
	var b strings.Builder
	if t.Address != "" {
		b.WriteString(t.Address)
	} else {
		b.WriteString(scheme + "://")
	}
	user, password := one(t.User.Name, Escape), one(t.Password.Name, Escape)
	b.WriteString(user)
	if password != "" || colon && t.Password.Name != "" && user != "" {
		b.WriteString(":" + password)
	}
	if user != "" || password != "" {
		b.WriteByte('@')
	}
	if t.port.Name != "" {
		b.WriteString(one(t.Host.Name, func(s string) string { return s }))
	} else {
		b.WriteString(one(t.Host.Name, escapeHost))
	}
	if port := one(t.port.Name, Escape); port != "" {
		b.WriteString(":" + port)
	}
	printPath(&b, t.path, func(name string) []string {
		v := values(name)
		if name == t.Host.Name && len(v) > 0 {
			v = v[1:] // the first item is in place of the host
		}
		return v
	})
	return b.String()
}

func printPath(b *strings.Builder, nodes []pathNode, values func(string) []string) {
	for _, n := range nodes {
		switch {
		case n.group != nil:
			if complete(n.group, values) {
				printPath(b, n.group, values)
			}
		case n.literal != "":
			b.WriteString("/" + n.literal)
		default:
			for _, v := range values(n.name) {
				b.WriteString("/" + escapeSegment(v))
			}
		}
	}
}

// complete reports whether every place in nodes has a value.
func complete(nodes []pathNode, values func(string) []string) bool {
	for _, n := range nodes {
		if n.name != "" && len(values(n.name)) == 0 {
			return false
		}
	}
	return true
}

func escapeSegment(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(url.PathEscape(s), "+", "%2B"), ":", "%3A")
}

// Escape escapes a value for every part of a URL.
func Escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// escapeHost escapes what is in place of the host. It keeps colons, which some
// tokens have.
func escapeHost(s string) string { return strings.ReplaceAll(Escape(s), "%3A", ":") }
