package urlsyntax

import (
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/percent"
)

// A Match holds the values that a template found in a URL.
type Match struct {
	Values Values
	Extra  []string // the names of parts without a place

	// Memory for the values of most URLs.
	memory struct {
		Values [5]Value
		texts  [4]string
		taken  [3]takenSegments
	}
}

// Values are the values at the places of a URL, each parameter once.
type Values []Value

// A Value has the texts at the places of one parameter.
type Value struct {
	Name  string // of the parameter
	Texts []string
}

// Of returns the values of a parameter.
func (v Values) Of(name string) []string {
	for i := range v {
		if v[i].Name == name {
			return v[i].Texts
		}
	}
	return nil
}

// Add adds values of a parameter. Later changes of texts do not count.
func (v *Values) Add(name string, texts []string) {
	for i := range *v {
		if p := &(*v)[i]; p.Name == name {
			p.Texts = append(p.Texts, texts...)
			return
		}
	}
	*v = append(*v, Value{name, slices.Clip(texts)})
}

// Match finds the values in u at their places in t. given reports whether the
// query sets a parameter, whose place may then be empty. With extra, u may have
// parts without a place. If u does not fit t because a parameter has no value,
// missing is its name.
func (t *Template) Match(u *URL, given func(string) bool, extra bool) (m *Match, missing string) {
	m = &Match{}
	m.Values = m.memory.Values[:0]
	if missing = t.matchAuthority(u, given, m); missing != "" {
		return nil, missing
	}
	if len(m.Extra) > 0 && !extra {
		return nil, ""
	}
	// The place of a parameter that the query sets is empty, unless segments
	// would be left over.
	for _, inPath := range []func(string) bool{given, none} {
		p := pathMatch{given: inPath, extra: extra, taken: m.memory.taken[:0]}
		left := p.match(t.path, u.Segments)
		if left < 0 {
			continue
		}
		for _, v := range p.taken {
			m.Values.Add(v.name, v.segments)
		}
		if left > 0 {
			m.Extra = append(m.Extra, "the end of the path")
		}
		return m, ""
	}
	t.Places(func(name string, optional bool) {
		if missing == "" && !optional && len(m.Values.Of(name)) == 0 && !given(name) {
			missing = name
		}
	})
	if missing != "" && len(u.Segments) >= minSegments(t.path) {
		missing = "" // something else is wrong
	}
	return nil, missing
}

func none(string) bool { return false }

// minSegments returns how many segments a path has at least.
func minSegments(nodes []pathNode) (n int) {
	for _, node := range nodes {
		if node.group == nil {
			n++
		}
	}
	return n
}

// matchAuthority finds the values before the path. It returns the name of the
// first required parameter without a value, or "".
func (t *Template) matchAuthority(u *URL, given func(string) bool, m *Match) (missing string) {
	texts := m.memory.texts[:0]
	add := func(name, text string) {
		texts = append(texts, text)
		m.Values.Add(name, texts[len(texts)-1:])
	}
	take := func(p Place, has bool, text, what string) {
		switch {
		case p.Name == "" && has && text != "":
			m.Extra = append(m.Extra, what)
		case p.Name == "":
		case text != "":
			add(p.Name, text)
		case !p.optional && !given(p.Name) && missing == "":
			missing = p.Name
		}
	}
	host, port := u.Authority, ""
	if t.port.Name != "" {
		if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
			host, port = host[:i], host[i+1:]
		}
	}
	take(t.User, u.HasUser, u.User, "the user")
	take(t.Password, u.HasPassword, u.Password, "the password")
	switch {
	case t.hostList != "" && host != "" && given(t.Host.Name):
		add(t.hostList, percent.DecodeText(host))
	case t.hostIsList && host == "" && len(u.Segments) > 0:
	default:
		take(t.Host, true, percent.DecodeText(host), "the host")
	}
	take(t.port, true, port, "the port")
	return missing
}

// pathMatch matches the path of a URL with the path of a template.
type pathMatch struct {
	given func(string) bool
	extra bool
	taken []takenSegments
}

// takenSegments are segments of a URL that are values of a parameter.
type takenSegments struct {
	name     string
	segments []string
}

// match appends the segments to p.taken, with the nodes' parameters. It returns
// how many segments are left over, or -1 if the nodes do not fit; then it has
// appended nothing.
func (p *pathMatch) match(nodes []pathNode, segments []string) int {
	if len(nodes) == 0 {
		if len(segments) > 0 && !p.extra {
			return -1
		}
		return len(segments)
	}
	n, after := nodes[0], nodes[1:]
	switch {
	case n.group != nil:
		if left := p.match(append(append([]pathNode{}, n.group...), after...), segments); left >= 0 {
			return left
		}
		return p.match(after, segments)
	case n.rest:
		min := 1
		if p.given(n.name) {
			min = 0
		}
		// The pattern of the next parameter marks the end of the list, as for a
		// secret with slashes in it before a region.
		if len(after) > 1 && after[0].pattern != nil && !p.given(after[0].name) {
			for k := min; k < len(segments); k++ {
				if !after[0].pattern.MatchString(segments[k]) {
					continue
				}
				if left := p.take(n.name, k, after, segments); left >= 0 {
					return left
				}
			}
		}
		for k := len(segments); k >= min; k-- {
			if left := p.take(n.name, k, after, segments); left >= 0 {
				return left
			}
		}
		return -1
	case n.literal != "":
		if len(segments) == 0 || !strings.EqualFold(segments[0], n.literal) {
			return -1
		}
		return p.match(after, segments[1:])
	case p.given(n.name):
		return p.match(after, segments)
	case len(segments) == 0:
		return -1
	}
	return p.take(n.name, 1, after, segments)
}

// take takes the first k segments for a parameter, and matches the others with
// the nodes.
func (p *pathMatch) take(name string, k int, nodes []pathNode, segments []string) int {
	before := len(p.taken)
	if k > 0 {
		p.taken = append(p.taken, takenSegments{name, segments[:k]})
	}
	left := p.match(nodes, segments[k:])
	if left < 0 {
		p.taken = p.taken[:before]
	}
	return left
}
