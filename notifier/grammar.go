package notifier

import (
	"fmt"
	"net/url"
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

// raw is a URL taken apart before it is known what its parts mean. Path
// segments and query values are percent-decoded.
type raw struct {
	scheme    string
	hasUser   bool
	user      string
	hasPass   bool
	password  string
	authority string // host and port, still encoded
	segments  []string
	slash     bool // the path ends in one
	query     []pair
}

type pair struct{ key, value string }

var schemePattern = regexp.MustCompile(`^\s*([A-Za-z][A-Za-z0-9+.-]{0,31}|[0-9][A-Za-z0-9]{1,31})://`)

// splitURL takes a URL apart the way users of notification URLs write them:
// "#" and "+" stand for themselves, a query parameter may be separated by
// "&" or ";", empty path segments do not count, and a percent sign that
// begins no escape is kept.
func splitURL(s string) (*raw, error) {
	s = strings.ToValidUTF8(s, "\uFFFD")
	m := schemePattern.FindStringSubmatch(s)
	if m == nil {
		return nil, &URLError{Problem: "is no notification URL; it begins with a service and ://, as in json://example.com"}
	}
	u := &raw{scheme: strings.ToLower(m[1])}
	rest := strings.TrimSpace(s[len(m[0]):])
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	u.authority = authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		u.hasUser, u.user, u.authority = true, authority[:i], authority[i+1:]
		u.user, u.password, u.hasPass = strings.Cut(u.user, ":")
		u.user, u.password = unescape(u.user), unescape(u.password)
	}
	u.slash = strings.HasSuffix(rest, "/")
	for seg := range strings.SplitSeq(path, "/") {
		if seg != "" {
			u.segments = append(u.segments, unescape(seg))
		}
	}
	for part := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		key, value, _ := strings.Cut(part, "=")
		u.query = append(u.query, pair{unescape(key), strings.TrimSpace(unescape(value))})
	}
	return u, nil
}

// unescape resolves percent escapes and leaves alone what is none.
func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if hi, lo := unhex(s[i+1]), unhex(s[i+2]); hi >= 0 && lo >= 0 {
				b.WriteByte(byte(hi<<4 | lo))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

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
		b.values[t.instead] = append(b.values[t.instead], unescape(host))
	case t.spread && host == "" && len(u.segments) > 0:
	default:
		take(t.host, true, unescape(host), "the host")
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

// print writes the URL that has the values at their places. With colon, a
// password that is empty is written as one nevertheless.
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
	b.WriteString(scheme + "://")
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
		if t.spread && name == t.host.name && len(v) > 0 {
			v = v[1:]
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

// complete says whether every place of a group has a value.
func complete(nodes []pathNode, values func(string) []string) bool {
	for _, n := range nodes {
		if n.name != "" && len(values(n.name)) == 0 {
			return false
		}
	}
	return true
}

func escapeSegment(s string) string {
	return strings.NewReplacer("+", "%2B", ":", "%3A").Replace(url.PathEscape(s))
}

func escapeUser(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// escapeHost keeps the colon, which tokens in the host's place may hold.
func escapeHost(s string) string { return strings.ReplaceAll(escapeUser(s), "%3A", ":") }

// A native is an address that the service itself gives out, such as that of
// a webhook, taken as a URL of ours.
type native struct {
	text    string
	pattern *regexp.Regexp
	names   []string
	implied []pair // parameters that the address stands for
	bare    string // parameter whose value is the query's first key
}

var nativeToken = regexp.MustCompile(`\\\{(\w+)(\\\.\\\.\\\.)?\\\}`)

// compileNative makes a pattern of an address: {name} is anything up to a
// slash or, in the host, a dot; {name...} anything, and {host...} a host with
// all that belongs to it, and with what is written before it; brackets enclose what may
// be left out. Behind a question mark stand parameters that the address
// stands for, or a {name} that the key of a query without values is.
func compileNative(text string) (*native, error) {
	n := &native{text: text}
	text, query, _ := strings.Cut(text, "?")
	for part := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' }) {
		key, value, _ := strings.Cut(part, "=")
		if name, ok := strings.CutPrefix(key, "{"); ok {
			n.bare = strings.TrimSuffix(name, "}")
			continue
		}
		n.implied = append(n.implied, pair{key, value})
	}
	p := regexp.QuoteMeta(text)
	p = strings.NewReplacer(`\[`, `(?:`, `\]`, `)?`).Replace(p)
	hostEnd := len(p)
	if i := strings.Index(p[8:], "/"); i >= 0 {
		hostEnd = i + 8
	}
	var b strings.Builder
	last := 0
	for _, m := range nativeToken.FindAllStringSubmatchIndex(p, -1) {
		before := p[last:m[0]]
		n.names = append(n.names, p[m[2]:m[3]])
		if p[m[2]:m[3]] == "host" {
			// What stands before the place is a part of the host, too.
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
	var err error
	n.pattern, err = regexp.Compile(`(?i)^` + b.String() + `/*$`)
	return n, err
}

// match finds the parameters of the address s, which has no query.
func (n *native) match(s string) map[string][]string {
	m := n.pattern.FindStringSubmatch(s)
	if m == nil {
		return nil
	}
	values := map[string][]string{}
	for i, name := range n.names {
		if name == "host" {
			authority(m[i+1], values)
			continue
		}
		for _, v := range strings.Split(m[i+1], "/") {
			if v != "" {
				values[name] = append(values[name], unescape(v))
			}
		}
	}
	return values
}

// authority takes apart what stands in the place of a native address's host.
func authority(s string, values map[string][]string) {
	set := func(name, v string) {
		if v != "" {
			values[name] = []string{unescape(v)}
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
