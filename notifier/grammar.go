package notifier

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A template is one way of writing the URL of a service, compiled from
//
//	scheme[s]|alias://[{user}[:{password}]@]{host}[:{port}][/{segment}…][/{rest...}]
//
// where brackets enclose what may be left out, {name} is the place of a
// parameter and {name...} that of all path segments that remain; in place of
// the host, {name...} is the host and all path segments. {name|list} in place
// of the host is name, and one more item of the list where the query brings
// name. An authority that is nothing but [{name}] may be empty. Everything
// else stands for itself.
type template struct {
	text     string
	schemes  []scheme
	user     place
	password place
	host     place
	instead  string // the list that the host belongs to where the query brings host
	spread   bool   // host is a list that goes on in the path
	port     place
	path     []pathNode
}

// A scheme is one name before "://". The secure one of a pair, as gotifys of
// gotify[s], makes [Server.Secure] true.
type scheme struct {
	name   string
	secure bool
}

// A place is where a value stands in the authority of a URL.
type place struct {
	name     string // the parameter; "" where the template has no such place
	optional bool
}

// A pathNode is a segment of the path, or a group of them that may be absent.
type pathNode struct {
	name    string // the parameter, or "" for a literal
	literal string
	rest    bool           // the parameter takes all segments that remain
	pattern *regexp.Regexp // where the parameter ends a rest before it and has a pattern
	group   []pathNode     // set for a group, and nothing else is
}

var (
	schemesPattern   = regexp.MustCompile(`^[a-z0-9]+(\[s\])?(\|[a-z0-9]+(\[s\])?)*$`)
	optionalHost     = regexp.MustCompile(`^\[(\{\w+\})\]$`)
	authorityPattern = regexp.MustCompile(`^(\[)?(?:\{(\w+)\}(\[)?(?::\{(\w+)\})?\]?@)?\]?\{(\w+)(\.\.\.|\|\w+)?\}(?:(\[)?:\{(\w+)\}\]?)?$`)
)

// compileTemplate reads a template. An error is a mistake in a service, never
// in a URL.
func compileTemplate(text string) (*template, error) {
	t := &template{text: text}
	schemes, rest, ok := strings.Cut(text, "://")
	if !ok || !schemesPattern.MatchString(schemes) {
		return nil, fmt.Errorf("template %q does not begin with schemes and ://", text)
	}
	for _, name := range strings.Split(schemes, "|") {
		base, both := strings.CutSuffix(name, "[s]")
		t.schemes = append(t.schemes, scheme{name: base})
		if both {
			t.schemes = append(t.schemes, scheme{name: base + "s", secure: true})
		}
	}
	authority, path := rest, ""
	if i := strings.Index(rest, "/"); i >= 0 {
		if i > 0 && rest[i-1] == '[' {
			i--
		}
		authority, path = rest[:i], rest[i:]
	}
	hostOptional := false
	if m := optionalHost.FindStringSubmatch(authority); m != nil {
		hostOptional, authority = true, m[1]
	}
	m := authorityPattern.FindStringSubmatch(authority)
	if m == nil {
		return nil, fmt.Errorf("template %q: cannot read %q", text, authority)
	}
	if m[2] != "" {
		t.user = place{m[2], m[1] != ""}
	}
	if m[4] != "" {
		t.password = place{m[4], m[1] != "" || m[3] != ""}
	}
	t.host = place{m[5], hostOptional}
	t.instead = strings.TrimPrefix(m[6], "|")
	if t.spread = m[6] == "..."; t.spread {
		t.instead, path = "", path+"[/{"+m[5]+"...}]"
	}
	if m[8] != "" {
		t.port = place{m[8], m[7] != ""}
	}
	var err error
	if t.path, path, err = compilePath(path); err != nil || path != "" {
		return nil, fmt.Errorf("template %q: cannot read the path at %q", text, path)
	}
	return t, nil
}

// compilePath reads path nodes up to the bracket that closes the group it was
// called for, or to the end.
func compilePath(s string) (nodes []pathNode, rest string, err error) {
	for s != "" && s[0] != ']' {
		if s[0] == '[' {
			group, after, err := compilePath(s[1:])
			if err != nil || !strings.HasPrefix(after, "]") {
				return nil, s, fmt.Errorf("unbalanced brackets")
			}
			nodes, s = append(nodes, pathNode{group: group}), after[1:]
			continue
		}
		if s[0] != '/' {
			return nil, s, fmt.Errorf("expected a slash")
		}
		end := strings.IndexAny(s[1:], "/[]")
		if end < 0 {
			end = len(s) - 1
		}
		word := s[1 : end+1]
		s = s[end+1:]
		switch {
		case word == "" && s == "":
			// A slash at the end stands for nothing.
		case strings.HasPrefix(word, "{") && strings.HasSuffix(word, "...}"):
			nodes = append(nodes, pathNode{name: word[1 : len(word)-4], rest: true})
		case strings.HasPrefix(word, "{") && strings.HasSuffix(word, "}"):
			nodes = append(nodes, pathNode{name: word[1 : len(word)-1]})
		default:
			nodes = append(nodes, pathNode{literal: word})
		}
	}
	return nodes, s, nil
}

// names calls f for each parameter that has a place in t, and says whether
// the template can do without it.
func (t *template) names(f func(name string, optional bool)) {
	for _, p := range []place{t.user, t.password, t.host, t.port} {
		if p.name != "" {
			f(p.name, p.optional)
		}
	}
	var walk func([]pathNode, bool)
	walk = func(nodes []pathNode, optional bool) {
		for _, n := range nodes {
			if n.group != nil {
				walk(n.group, true)
			} else if n.name != "" && !(t.spread && n.name == t.host.name) {
				f(n.name, optional)
			}
		}
	}
	walk(t.path, false)
}

// delimit tells the nodes behind a rest what their parameters must look like.
func (t *template) delimit(byName map[string]*Param) {
	for i := range t.path {
		if p := byName[t.path[i].name]; p != nil && i > 0 && t.path[i-1].rest {
			t.path[i].pattern = p.pattern
		}
	}
}

// has says whether the parameter has a place in t.
func (t *template) has(name string) (found bool) {
	t.names(func(n string, _ bool) { found = found || n == name })
	return found
}

// hasScheme says whether URLs of the template may begin with the scheme.
func (t *template) hasScheme(name string) bool {
	return slices.ContainsFunc(t.schemes, func(s scheme) bool { return s.name == name })
}
