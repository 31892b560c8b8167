package urlsyntax

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// A Template is one way to write the URL of a service, in the notation of Schema.URL of
// package notifier.
type Template struct {
	Text       string
	Address    string // the beginning of the address, without a place in it; "" for a URL with a scheme of ours
	Schemes    []Scheme
	User       Place
	Password   Place
	Host       Place
	port       Place
	hostIsList bool   // the host is the first item of a list that continues in the path
	hostList   string // the list that has the host as an item if the query sets the host's parameter
	path       []pathNode
	Needed     []string // the parameters with a place outside brackets
	Way        string   // what a service calls the template; may be ""
}

// addressScheme begins a template that is an address of the service.
const addressScheme = "https://"

// A Scheme is a name before "://". Of a pair such as gotify[s], gotifys is the
// secure one.
type Scheme struct {
	Name   string
	Secure bool
}

// A Place is where the authority of a URL has the value of a parameter.
type Place struct {
	Name     string // the parameter; "" if the template has no such place
	optional bool
}

// A pathNode is a segment of the path, several for a list, or an optional group
// of nodes.
type pathNode struct {
	literal string
	name    string // the parameter
	rest    bool   // the parameter is a list of segments
	group   []pathNode

	// pattern is the pattern of the parameter, if the node follows a list: it marks the end of
	// the list.
	pattern *lazyregexp.Regexp
}

var (
	schemesPattern   = lazyregexp.New(`^[a-z0-9]+(\[s\])?(\|[a-z0-9]+(\[s\])?)*$`)
	optionalHost     = lazyregexp.New(`^\[(\{\w+\})\]$`)
	authorityPattern = lazyregexp.New(`^(\[)?(?:\{(\w+)\}(\[)?(?::\{(\w+)\})?\]?@)?\]?\{(\w+)(\.\.\.|\|\w+)?\}(?:(\[)?:\{(\w+)\}\]?)?$`)
)

// Compile reads a template. An error is a mistake in a service's
// description.
func Compile(text string) (*Template, error) {
	t := &Template{Text: text}
	path, err := t.compileAuthority()
	if err != nil {
		return nil, err
	}
	if t.path, path, err = compilePath(path); err != nil || path != "" {
		return nil, fmt.Errorf("template %q: cannot read the path at %q", text, path)
	}
	t.Places(func(name string, optional bool) {
		if !optional && !slices.Contains(t.Needed, name) {
			t.Needed = append(t.Needed, name)
		}
	})
	return t, nil
}

// compileAuthority reads the text of t up to the path, and returns the path.
func (t *Template) compileAuthority() (path string, err error) {
	text := t.Text
	if rest, ok := strings.CutPrefix(text, addressScheme); ok {
		host, path, _ := strings.Cut(rest, "/")
		t.Address, t.Schemes = addressScheme+host, []Scheme{{Name: host, Secure: true}}
		return "/" + path, nil
	}
	schemes, rest, ok := strings.Cut(text, "://")
	if !ok || !schemesPattern.MatchString(schemes) {
		return "", fmt.Errorf("template %q does not begin with schemes and ://", text)
	}
	for name := range strings.SplitSeq(schemes, "|") {
		base, both := strings.CutSuffix(name, "[s]")
		t.Schemes = append(t.Schemes, Scheme{Name: base})
		if both {
			t.Schemes = append(t.Schemes, Scheme{Name: base + "s", Secure: true})
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
		return "", fmt.Errorf("template %q: cannot read %q", text, authority)
	}
	if m[2] != "" {
		t.User = Place{m[2], m[1] != ""}
	}
	if m[4] != "" {
		t.Password = Place{m[4], m[1] != "" || m[3] != ""}
	}
	t.Host = Place{m[5], hostOptional}
	if list, ok := strings.CutPrefix(m[6], "|"); ok {
		t.hostList = list
	}
	if t.hostIsList = m[6] == "..."; t.hostIsList {
		path += "[/{" + m[5] + "...}]"
	}
	if m[8] != "" {
		t.port = Place{m[8], m[7] != ""}
	}
	return path, nil
}

// compilePath reads the nodes of a path up to a closing bracket or to the end, and
// returns them with the text that is left.
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
			// A slash at the end has no meaning.
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

// Places calls f for each place of a parameter in t.
func (t *Template) Places(f func(name string, optional bool)) {
	for _, p := range []Place{t.User, t.Password, t.Host, t.port} {
		if p.Name != "" {
			f(p.Name, p.optional)
		}
	}
	var walk func([]pathNode, bool)
	walk = func(nodes []pathNode, optional bool) {
		for _, n := range nodes {
			if n.group != nil {
				walk(n.group, true)
			} else if n.name != "" && !(t.hostIsList && n.name == t.Host.Name) {
				f(n.name, optional)
			}
		}
	}
	walk(t.path, false)
}

// SetPatterns sets the patterns of the nodes that follow a list. pattern returns the pattern of a
// parameter, or nil.
func (t *Template) SetPatterns(pattern func(name string) *lazyregexp.Regexp) {
	for i := range t.path {
		if i > 0 && t.path[i-1].rest && t.path[i].name != "" {
			t.path[i].pattern = pattern(t.path[i].name)
		}
	}
}

// Has reports whether a parameter has a place in t.
func (t *Template) Has(name string) (found bool) {
	t.Places(func(n string, _ bool) { found = found || n == name })
	return found
}

// Scheme returns the scheme of t that has the name.
func (t *Template) Scheme(name string) (*Scheme, bool) {
	i := slices.IndexFunc(t.Schemes, func(s Scheme) bool { return s.Name == name })
	if i < 0 {
		return nil, false
	}
	return &t.Schemes[i], true
}

// SchemeFor returns the scheme for an address that the service gives out: the last
// scheme whose secure equals the argument, or else the first scheme.
func (t *Template) SchemeFor(secure bool) *Scheme {
	for i, s := range slices.Backward(t.Schemes) {
		if s.Secure == secure {
			return &t.Schemes[i]
		}
	}
	return &t.Schemes[0]
}

// ExampleScheme returns the scheme for an example URL: the first one, with TLS
// if it can have it and the host is not one of a home network.
func (t *Template) ExampleScheme(host []string) string {
	if len(t.Schemes) > 1 && t.Schemes[1].Secure && !(len(host) > 0 && strings.HasSuffix(host[0], ".local")) {
		return t.Schemes[1].Name
	}
	return t.Schemes[0].Name
}

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
