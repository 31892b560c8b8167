package notifier

import (
	"errors"
	"fmt"
	"maps"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/caddy-notify/caddy-notify/notifier/redact"
)

// URLError says what is wrong with a notification URL. It never holds a part
// of the URL other than the service's and the parameter's name.
type URLError struct {
	Service  string // "" where the URL does not say
	Param    string // "" where no parameter is to blame
	Problem  string
	Expected string // how the service's URLs are written
}

func (e *URLError) Error() string {
	var b strings.Builder
	if e.Service != "" {
		b.WriteString(e.Service + ": ")
	} else {
		b.WriteString("the URL ")
	}
	b.WriteString(e.Problem)
	if e.Expected != "" {
		b.WriteString("; expected " + e.Expected)
	}
	return b.String()
}

// parse sets the parameters from u. It returns a warning for each part of the
// URL that has no effect.
func (s *Schema) parse(u *raw) (warnings []string, used *template, err error) {
	s.Scheme = u.scheme
	given := s.given(u)
	var first error
	// A template that leaves nothing over is better than one that does,
	// though URLs with too much in them are in use and mean what they say.
	for _, excess := range []bool{false, true} {
		for k, t := range s.templates {
			i := slices.IndexFunc(t.schemes, func(x scheme) bool { return x.name == u.scheme })
			if i < 0 || s.saysHostTwice(t, u, given) && s.fitsBetter(s.templates[k+1:], u, given) {
				continue
			}
			b, missing := t.match(u, given, excess)
			if b == nil {
				if first == nil && missing != "" {
					first = s.missing(missing, t)
				}
				continue
			}
			for _, p := range s.params {
				p.reset()
			}
			if s.server != nil {
				s.server.Secure, s.server.hasPassword = t.schemes[i].secure, u.hasPass
			}
			if s.slash != nil {
				*s.slash = u.slash
			}
			warnings, err := s.assign(b.values, u.query, t)
			if err == nil {
				for _, x := range b.excess {
					warnings = append(warnings, x+" has no meaning to "+s.Name+" and no effect")
				}
				if u.fragment {
					warnings = append(warnings, "what follows a # within a word of the URL has no effect; a # that is meant is written %23")
				}
				return warnings, t, nil
			}
			if first == nil {
				first = err
			}
		}
		if first != nil {
			return nil, nil, first
		}
	}
	return nil, nil, &URLError{Service: s.Name, Problem: "the URL is not written as the service wants it", Expected: s.expected(u.scheme)}
}

// saysHostTwice reports that the query brings what stands in the host's place
// of t, though u has something there.
func (s *Schema) saysHostTwice(t *template, u *raw, given func(string) bool) bool {
	return u.authority != "" && given(t.host.name) && s.byName[t.host.name].kind != KindList
}

// fitsBetter reports that one of the templates has a meaning for everything
// in u, the host too.
func (s *Schema) fitsBetter(others []*template, u *raw, given func(string) bool) bool {
	return slices.ContainsFunc(others, func(t *template) bool {
		if !slices.ContainsFunc(t.schemes, func(x scheme) bool { return x.name == u.scheme }) || s.saysHostTwice(t, u, given) {
			return false
		}
		b, _ := t.match(u, given, false)
		return b != nil
	})
}

// given says of a parameter whether the query brings it.
func (s *Schema) given(u *raw) func(string) bool {
	in := map[*Param]bool{}
	for _, kv := range u.query {
		if p := s.byName[strings.ToLower(kv.key)]; p != nil && kv.value != "" {
			in[p] = true
		}
	}
	return func(name string) bool { return in[s.byName[name]] }
}

// assign sets the parameters from their places in the URL and from the query,
// which wins; the two add up for lists.
func (s *Schema) assign(places map[string][]string, query []pair, t *template) (warnings []string, err error) {
	values := map[*Param][]string{}
	for name, v := range places {
		values[s.byName[name]] = slices.Clip(v)
	}
	byName := map[*Param]bool{} // set under its own name, which beats an alias
	for _, kv := range query {
		p := s.byName[strings.ToLower(kv.key)]
		if p == nil {
			p = s.mapFor(kv.key)
		}
		switch {
		case p == nil:
			if kv.key != "" {
				warnings = append(warnings, fmt.Sprintf("%s has no effect: %s has no parameter of that name", nameOf(kv, places, query), s.Name))
			}
		case p.kind == KindMap:
			if *p.dict == nil {
				*p.dict = map[string]string{}
			}
			name := kv.key[len(p.prefix):]
			if p.header && !httpguts.ValidHeaderFieldName(name) {
				return nil, &URLError{Service: s.Name, Param: p.name, Problem: "what follows a + is no name of an HTTP header, such as X-Origin (" + p.doc + ")"}
			}
			if p.header && !httpguts.ValidHeaderFieldValue(kv.value) {
				return nil, &URLError{Service: s.Name, Param: p.name, Problem: "the value of a header has a control character or a line break (" + p.doc + ")"}
			}
			(*p.dict)[name] = kv.value
			if len(*p.dict) > maxEntries {
				return nil, &URLError{Service: s.Name, Param: p.name, Problem: fmt.Sprintf("%s has more than %d entries (%s)", p.name, maxEntries, p.doc)}
			}
		case kv.value == "":
		case p.kind == KindList:
			values[p] = append(values[p], kv.value)
		case byName[p] && !strings.EqualFold(kv.key, p.name):
		default:
			values[p] = []string{kv.value}
			byName[p] = strings.EqualFold(kv.key, p.name)
		}
	}
	required := map[*Param]bool{}
	if t != nil {
		t.names(func(name string, optional bool) { required[s.byName[name]] = !optional })
	}
	for _, p := range s.params {
		if p.kind == KindMap {
			continue
		}
		v, problem := values[p], error(nil)
		if p.kind == KindList {
			var dropped []string
			if dropped, problem = p.setList(v); len(dropped) > 0 {
				warnings = append(warnings, dropped...)
			}
		} else if len(v) > 0 {
			problem = p.check(v[0])
		}
		if problem != nil && p.lenient && p.kind != KindList {
			warnings = append(warnings, fmt.Sprintf("%s: %s %v; such a value means the default", s.Name, p.name, problem))
			problem = nil
		}
		if problem != nil {
			return nil, &URLError{Service: s.Name, Param: p.name, Problem: p.name + " " + problem.Error() + " (" + p.doc + ")"}
		}
		empty := len(v) == 0 || p.kind == KindList && len(p.items()) == 0
		if empty && (required[p] || p.required) {
			return nil, s.missing(p.name, t)
		}
	}
	return warnings, nil
}

// maxNamed is how many query parameters a URL may have for those to be named
// that have no effect. All of them are compared with each other.
const maxNamed = 64

// shortWord is what the name of a query parameter looks like.
var shortWord = regexp.MustCompile(`^[A-Za-z_]{1,24}$`)

// nameOf names a query parameter that no service has. One without a value, one
// that does not look like a name, and one that stands among the values of the
// URL may be a token that has got there, and is counted instead.
func nameOf(kv pair, places map[string][]string, query []pair) string {
	secret := func(value string) bool { return len(kv.key) >= 4 && strings.Contains(value, kv.key) }
	shown := len(query) <= maxNamed && kv.value != "" && shortWord.MatchString(kv.key) && !slices.ContainsFunc(query, func(o pair) bool { return secret(o.value) })
	for _, values := range places {
		shown = shown && !slices.ContainsFunc(values, secret)
	}
	if shown {
		return kv.key
	}
	return fmt.Sprintf("query parameter %d", slices.Index(query, kv)+1)
}

func (s *Schema) mapFor(key string) *Param {
	var rest *Param
	for _, p := range s.params {
		if p.kind != KindMap {
			continue
		}
		if p.prefix == "" {
			rest = p
		} else if len(key) > len(p.prefix) && strings.HasPrefix(key, p.prefix) {
			return p
		}
	}
	return rest
}

// check sets a scalar parameter.
func (p *Param) check(v string) error {
	if p.pattern != nil && !p.pattern.MatchString(v) {
		return errors.New("is malformed")
	}
	return p.set(v)
}

// What a list or a map of a URL may hold, whoever wrote it: each item of a
// list is at least one request for every message, and each entry of a map a
// part of every request.
const (
	maxItems   = 500
	maxEntries = 100
)

// setList splits, checks and deals out the items of a list. One that cannot be
// used is left out, so that the others get the message; where there is no
// other, the URL is refused, unless the list may be empty then.
func (p *Param) setList(values []string) (dropped []string, err error) {
	p.dropped = false
	var items []string
	for _, v := range values {
		switch {
		case p.whole:
			items = append(items, v)
		case p.split != nil:
			items = append(items, p.split(v)...)
		default:
			items = append(items, strings.FieldsFunc(v, p.splitter)...)
		}
	}
	var first error
	n, count, kept := 0, 0, 0
	for _, item := range items {
		n++
		var bad error
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		if count++; count > maxItems {
			return nil, fmt.Errorf("has more than %d items; move the others to a URL of their own", maxItems)
		}
		if p.pattern != nil && !p.pattern.MatchString(item) {
			bad = errors.New("is malformed")
		} else if p.item != nil {
			item, bad = p.item(item)
		}
		if bad != nil {
			if p.path {
				return nil, fmt.Errorf("has an item, number %d, that %w", n, bad)
			}
			if first == nil {
				first = fmt.Errorf("has an item, number %d, that %w", n, bad)
			}
			p.dropped = true
			dropped = append(dropped, fmt.Sprintf("%s: item %d of %s %v and is left out", p.schema.Name, n, p.name, bad))
			continue
		}
		kept++
		to := p.list
		for _, part := range p.parts {
			if rest, ok := strings.CutPrefix(item, part.prefix); ok && rest != "" {
				to, item = part.to, rest
				break
			}
		}
		if p.path || !slices.Contains(*to, item) {
			*to = append(*to, item)
		}
	}
	if kept == 0 && first != nil && !p.drop {
		return nil, first
	}
	return dropped, nil
}

func (s *Schema) missing(name string, t *template) error {
	doc := ""
	if p := s.byName[name]; p != nil && p.doc != "" {
		doc = " (" + p.doc + ")"
	}
	e := &URLError{Service: s.Name, Param: name, Problem: "missing " + name + doc}
	if t != nil {
		e.Expected = t.text
	}
	return e
}

func (s *Schema) expected(name string) string {
	var texts []string
	for _, t := range s.templates {
		if t.hasScheme(name) {
			texts = append(texts, t.text)
		}
	}
	return strings.Join(texts, " or ")
}

// print writes the URL of the parameters' values, with secrets masked if hide is
// true.
func (s *Schema) print(t *template, hide bool) string {
	shown := func(p *Param, v string) string {
		if hide && v != "" && (p.secret || p.token(v)) {
			return redact.Mask
		}
		if name, key := p.cutKey(v); hide && key != "" {
			return name + p.key + redact.Mask
		}
		return v
	}
	values := func(name string) (out []string) {
		p := s.byName[name]
		if p.kind != KindList {
			if v := p.get(); v != "" {
				out = append(out, shown(p, v))
			}
			return out
		}
		for _, v := range p.items() {
			out = append(out, shown(p, v))
		}
		return out
	}
	out := t.print(s.Scheme, values, s.server != nil && s.server.hasPassword)
	if s.slash != nil && *s.slash && !strings.HasSuffix(out, "/") {
		out += "/"
	}
	var query []string
	for _, p := range s.params {
		switch {
		case t.has(p.name):
		case p.kind == KindMap:
			for _, k := range slices.Sorted(maps.Keys(*p.dict)) {
				query = append(query, p.prefix+escapeUser(k)+"="+escapeUser(shown(p, (*p.dict)[k])))
			}
		case p.kind == KindList:
			if v := values(p.name); len(v) > 0 {
				query = append(query, p.name+"="+escapeUser(strings.Join(v, ",")))
			}
		case p.get() != p.def:
			query = append(query, p.name+"="+escapeUser(shown(p, p.get())))
		}
	}
	if len(query) > 0 {
		out += "?" + strings.Join(query, "&")
	}
	return out
}

// items are a list's items, those with prefixes behind the others.
func (p *Param) items() []string {
	out := slices.Clone(*p.list)
	for _, part := range p.parts {
		for _, v := range *part.to {
			out = append(out, part.prefix+v)
		}
	}
	return out
}

// cutKey takes an item of a list apart where its secret begins.
func (p *Param) cutKey(item string) (name, key string) {
	if p.key == "" {
		return item, ""
	}
	name, key, _ = strings.Cut(item, p.key)
	return name, key
}

// token says whether an item of a list is long enough to be one.
func (p *Param) token(v string) bool { return p.tokens > 0 && len(v) >= p.tokens }

// secrets are the values that must not be shown anywhere.
func (s *Schema) secrets() (out []string) {
	for _, p := range s.params {
		if p.key != "" {
			for _, item := range p.items() {
				_, key := p.cutKey(item)
				out = append(out, key)
			}
		}
		if p.tokens > 0 {
			out = append(out, slices.DeleteFunc(p.items(), func(v string) bool { return !p.token(v) })...)
		}
		if !p.secret {
			continue
		}
		switch p.kind {
		case KindMap:
			out = slices.AppendSeq(out, maps.Values(*p.dict))
		case KindList:
			out = append(out, p.items()...)
		default:
			out = append(out, p.get())
		}
	}
	return out
}

// Phone normalises a telephone number to its digits, with a + before them if
// it was written so. It has 3 to 15 digits (ITU-T E.164; short codes are
// shorter than numbers).
func Phone(s string) (string, error) {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r >= '0' && r <= '9':
			b.WriteRune(r)
		case r == '+' && i == 0:
			b.WriteRune(r)
		case strings.ContainsRune(" \t-.()/", r):
		default:
			return "", errors.New("is no telephone number")
		}
	}
	if n := len(strings.TrimPrefix(b.String(), "+")); n < 3 || n > 15 {
		return "", errors.New("is no telephone number")
	}
	return b.String(), nil
}

// FullPhone is like [Phone] for numbers of 10 to 14 digits, which a short
// code is not; it leaves out the +.
func FullPhone(s string) (string, error) {
	s, err := Phone(s)
	s = strings.TrimPrefix(s, "+")
	if err == nil && (len(s) < 10 || len(s) > 14) {
		err = errors.New("is no telephone number with its country code")
	}
	return s, err
}

// Email checks that a text is an e-mail address, with or without a name.
func Email(s string) (string, error) {
	if _, err := mail.ParseAddress(s); err != nil {
		return "", errors.New("is no e-mail address")
	}
	return s, nil
}

func timeZone(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	if _, err := time.LoadLocation(name); err != nil || strings.EqualFold(name, "local") {
		return "", errors.New("is no time zone such as Europe/Berlin")
	}
	return name, nil
}
