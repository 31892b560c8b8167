package notifier

import (
	"net/url"
	"strings"
)

// print returns a URL with the values at their places. With colon, an empty
// password is printed, too.
func (t *template) print(scheme string, values func(name string) []string, colon bool) string {
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
	if t.address != "" {
		b.WriteString(t.address)
	} else {
		b.WriteString(scheme + "://")
	}
	user, password := one(t.user.name, escapeUser), one(t.password.name, escapeUser)
	b.WriteString(user)
	if password != "" || colon && t.password.name != "" && user != "" {
		b.WriteString(":" + password)
	}
	if user != "" || password != "" {
		b.WriteByte('@')
	}
	if t.port.name != "" {
		b.WriteString(one(t.host.name, func(s string) string { return s }))
	} else {
		b.WriteString(one(t.host.name, escapeHost))
	}
	if port := one(t.port.name, escapeUser); port != "" {
		b.WriteString(":" + port)
	}
	printPath(&b, t.path, func(name string) []string {
		v := values(name)
		if name == t.host.name && len(v) > 0 {
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

func escapeUser(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// escapeHost escapes what is in place of the host. It keeps colons, which some
// tokens have.
func escapeHost(s string) string { return strings.ReplaceAll(escapeUser(s), "%3A", ":") }
