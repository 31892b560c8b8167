package notifier

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/percent"
)

// A binding is what a template found in a URL: the text at each place.
type binding struct {
	values map[string][]string
	excess []string // what of the URL had no place, in words
}

// match finds the parts of u at their places in t. given says that a
// parameter comes from the query, so that its place may be empty. A template
// that has no place for some part of u matches only where excess is allowed.
// missing names the parameter for which u has nothing, if that was the cause.
func (t *template) match(u *raw, given func(string) bool, excess bool) (b *binding, missing string) {
	b = &binding{values: map[string][]string{}}
	if missing = t.matchAuthority(u, given, b); missing != "" {
		return nil, missing
	}
	if len(b.excess) > 0 && !excess {
		return nil, ""
	}
	// Where the query brings a parameter, its place in the path is empty at
	// first, and taken only where segments would be left over otherwise.
	for _, inPath := range []func(string) bool{given, func(string) bool { return false }} {
		values, left := map[string][]string{}, -1
		left = matchPath(t.path, u.segments, inPath, values, excess)
		if left < 0 {
			continue
		}
		for name, v := range values {
			b.values[name] = append(b.values[name], v...)
		}
		if left > 0 {
			b.excess = append(b.excess, "the end of the path")
		}
		return b, ""
	}
	t.names(func(name string, optional bool) {
		if missing == "" && !optional && len(b.values[name]) == 0 && !given(name) {
			missing = name
		}
	})
	if missing != "" && len(u.segments) >= required(t.path) {
		missing = ""
	}
	return nil, missing
}

// required counts the segments that nodes cannot do without.
func required(nodes []pathNode) (n int) {
	for _, node := range nodes {
		if node.group == nil {
			n++
		}
	}
	return n
}

func (t *template) matchAuthority(u *raw, given func(string) bool, b *binding) (missing string) {
	take := func(p place, has bool, text, what string) {
		switch {
		case p.name == "" && has && text != "":
			b.excess = append(b.excess, what)
		case p.name == "":
		case text != "":
			b.values[p.name] = append(b.values[p.name], text)
		case !p.optional && !given(p.name) && missing == "":
			missing = p.name
		}
	}
	host, port := u.authority, ""
	if t.port.name != "" {
		if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
			host, port = host[:i], host[i+1:]
		}
	}
	take(t.user, u.hasUser, u.user, "the user")
	take(t.password, u.hasPass, u.password, "the password")
	switch {
	case t.instead != "" && host != "" && given(t.host.name):
		b.values[t.instead] = append(b.values[t.instead], percent.DecodeText(host))
	case t.spread && host == "" && len(u.segments) > 0:
	default:
		take(t.host, true, percent.DecodeText(host), "the host")
	}
	take(t.port, true, port, "the port")
	return missing
}

// matchPath fills values from segments and returns how many segments were
// left over, or -1 where the nodes do not fit.
func matchPath(nodes []pathNode, segments []string, given func(string) bool, values map[string][]string, excess bool) int {
	if len(nodes) == 0 {
		if len(segments) > 0 && !excess {
			return -1
		}
		return len(segments)
	}
	n, after := nodes[0], nodes[1:]
	try := func(nodes []pathNode, segments []string, name string, taken []string) int {
		tried := map[string][]string{}
		left := matchPath(nodes, segments, given, tried, excess)
		if left < 0 {
			return -1
		}
		if name != "" && len(taken) > 0 {
			values[name] = append(values[name], taken...)
		}
		for k, v := range tried {
			values[k] = append(values[k], v...)
		}
		return left
	}
	switch {
	case n.group != nil:
		if left := try(append(append([]pathNode{}, n.group...), after...), segments, "", nil); left >= 0 {
			return left
		}
		return try(after, segments, "", nil)
	case n.rest:
		least := 1
		if given(n.name) {
			least = 0
		}
		// Where more follows, what the next parameter must look like says
		// where the rest ends: a secret with slashes before a region.
		if len(after) > 1 && after[0].pattern != nil && !given(after[0].name) {
			for k := least; k < len(segments); k++ {
				if !after[0].pattern.MatchString(segments[k]) {
					continue
				}
				if left := try(after, segments[k:], n.name, segments[:k]); left >= 0 {
					return left
				}
			}
		}
		for k := len(segments); k >= least; k-- {
			if left := try(after, segments[k:], n.name, segments[:k]); left >= 0 {
				return left
			}
		}
		return -1
	case n.literal != "":
		if len(segments) == 0 || !strings.EqualFold(segments[0], n.literal) {
			return -1
		}
		return try(after, segments[1:], "", nil)
	}
	if given(n.name) {
		return try(after, segments, "", nil)
	}
	if len(segments) == 0 {
		return -1
	}
	return try(after, segments[1:], n.name, segments[:1])
}
