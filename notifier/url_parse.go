package notifier

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/internal/similar"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/internal/urlsyntax"
)

// Parse reads a notification URL. Messages to it may go where policy allows; nil,
// for URLs of the operator, allows everything. The error is a [*URLError].
//
// The URL cannot name files of this machine: see [ParseWithFiles].
func Parse(text string, policy *egress.Policy) (*Destination, error) {
	return ParseWithFiles(text, policy, Files{})
}

// parse reads a URL up to the parameters.
func parse(text string) (*Destination, error) {
	u, err := splitURL(text)
	if err != nil {
		return nil, err
	}
	parse := parseURL
	if u.Scheme == "http" || u.Scheme == "https" {
		parse = parseNative
	}
	return parse(text, u)
}

// Bounds of a URL. Some hold a key or a certificate.
const (
	maxURL      = 64 << 10 // bytes
	maxURLParts = 1000     // path segments, and parameters of the query
)

// splitURL divides a notification URL into its parts.
func splitURL(text string) (*urlsyntax.URL, error) {
	if len(text) > maxURL {
		return nil, &URLError{Problem: "the URL is longer than 64 KiB", Fix: "divide it into several URLs"}
	}
	u, ok := urlsyntax.Split(text)
	if !ok {
		return nil, &URLError{Problem: "the URL does not begin with a service and ://", Fix: "write for example json://example.com"}
	}
	if len(u.Segments) > maxURLParts || len(u.Query) > maxURLParts {
		return nil, &URLError{Problem: "the URL has more than 1000 parts", Fix: "divide it into several URLs"}
	}
	return u, nil
}

// parseURL reads a URL that has the scheme of a service.
func parseURL(text string, u *urlsyntax.URL) (*Destination, error) {
	e := registry.byScheme[u.Scheme]
	if e == nil || e.schema.templates[0].Address != "" {
		return nil, errUnknownScheme(u.Scheme)
	}
	if r, ok := e.service.(Rewriter); ok {
		var err error
		if u, err = splitURL(r.Rewrite(text)); err != nil {
			return nil, err
		}
	}
	e.schema.login(u)
	// A template with a place for every part of the URL is preferred. URLs
	// with a part that has no place are in use and are accepted, too.
	for _, extra := range []bool{false, true} {
		if d, err := e.parse(u, extra); d != nil || err != nil {
			return d, err
		}
	}
	return nil, e.schema.errForm(u.Scheme)
}

// parse reads u by the first template that fits. With extra, u may have parts
// without a place in the template. If the templates that fit are refused, it
// returns the first error, and if none fits, nothing.
func (e *entry) parse(u *urlsyntax.URL, extra bool) (*Destination, error) {
	s := e.schema
	given := s.given(u)
	var first error
	for i, t := range s.templates {
		scheme, ok := t.Scheme(u.Scheme)
		if !ok || s.hostTwice(t, u, given) && s.fits(s.templates[i+1:], u, given) {
			continue
		}
		m, missing := t.Match(u, given, extra)
		if m == nil {
			if missing != "" && first == nil {
				first = s.errMissing(s.byName[missing], t)
			}
			continue
		}
		d, err := e.destination(u, t, scheme, m)
		if err == nil {
			return d, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// destination returns the destination of a URL that t has matched.
func (e *entry) destination(u *urlsyntax.URL, t *urlsyntax.Template, scheme *urlsyntax.Scheme, m *urlsyntax.Match) (*Destination, error) {
	d := e.newDestination(t, scheme)
	if server := d.server(); server != nil {
		server.hasPassword = u.HasPassword
	}
	if slash := d.slash(); slash != nil {
		*slash = u.Slash
	}
	if err := d.assign(m.Values, u.Query, t); err != nil {
		return nil, err
	}
	for _, part := range m.Extra {
		d.warn("%s in the URL has no meaning and no effect", part)
	}
	if u.Fragment {
		d.warn("the URL ends at the # within a word; write %%23 for a # that belongs to the word")
	}
	return d, nil
}

// hostTwice reports whether both the query and the host's place in t set the
// same parameter.
func (d *description) hostTwice(t *urlsyntax.Template, u *urlsyntax.URL, given func(string) bool) bool {
	return u.Authority != "" && given(t.Host.Name) && d.byName[t.Host.Name].kind != KindList
}

// fits reports whether one of the templates has a place for every part of u,
// and none that the query sets, too.
func (d *description) fits(templates []*urlsyntax.Template, u *urlsyntax.URL, given func(string) bool) bool {
	return slices.ContainsFunc(templates, func(t *urlsyntax.Template) bool {
		if _, ok := t.Scheme(u.Scheme); !ok || d.hostTwice(t, u, given) {
			return false
		}
		m, _ := t.Match(u, given, false)
		return m != nil
	})
}

// given returns a function that reports whether the query sets a parameter.
func (d *description) given(u *urlsyntax.URL) func(name string) bool {
	var in []*Param
	for _, q := range u.Query {
		if p := d.byName[strings.ToLower(q.Key)]; p != nil && q.Value != "" && !slices.Contains(in, p) {
			in = append(in, p)
		}
	}
	if in == nil {
		return func(string) bool { return false }
	}
	return func(name string) bool { return slices.Contains(in, d.byName[name]) }
}

// parseNative reads an address that a service has given out.
func parseNative(text string, u *urlsyntax.URL) (*Destination, error) {
	address, _, _ := strings.Cut(strings.TrimSpace(text), "?")
	for _, e := range registry.entries {
		for _, n := range e.schema.natives {
			values := n.Match(address)
			if values == nil {
				continue
			}
			t := e.schema.templates[0]
			d := e.newDestination(t, t.SchemeFor(u.Scheme == "https"))
			if server := d.server(); server != nil {
				server.Secure = u.Scheme == "https"
			}
			u.User, u.Password = "", "" // the pattern has taken them
			e.schema.login(u)
			if u.User != "" {
				values[t.User.Name] = []string{u.User}
			}
			if u.Password != "" {
				values[t.Password.Name] = []string{u.Password}
			}
			query := u.Query
			if n.Bare != "" && len(query) > 0 && query[0].Value == "" {
				values[n.Bare], query = []string{query[0].Key}, query[1:]
			}
			var places urlsyntax.Values
			for name, texts := range values {
				places.Add(name, texts)
			}
			if err := d.assign(places, append(slices.Clone(n.Query), query...), nil); err != nil {
				return nil, err
			}
			return d, nil
		}
	}
	return nil, &URLError{
		Problem: "the URL is a web address that belongs to none of the services",
		Fix:     "for a webhook of your own write json:// or form:// instead of http://, and jsons:// or forms:// instead of https://",
	}
}

// newDestination returns a destination whose parameters have their defaults.
func (e *entry) newDestination(t *urlsyntax.Template, scheme *urlsyntax.Scheme) *Destination {
	d := &Destination{entry: e, schema: e.schema, service: copyOf(e.service), options: e.options, template: t, scheme: scheme}
	if server := d.server(); server != nil {
		server.Secure = scheme.Secure
	}
	return d
}

// assign sets the parameters to the values at their places in the URL and to the values of the
// query. For a single value the query takes precedence; lists get both. t is nil for an address
// that the service gives out.
func (d *Destination) assign(places urlsyntax.Values, query []urlsyntax.QueryParam, t *urlsyntax.Template) error {
	s := d.schema
	var memory [48]paramTexts // without an allocation for most services
	params := memory[:]
	if len(s.params) > len(params) {
		params = make([]paramTexts, len(s.params))
	}
	for _, v := range places {
		params[s.byName[v.Name].index].texts = v.Texts
	}
	for i := range query {
		if err := d.assignQuery(params, places, query, i); err != nil {
			return err
		}
	}
	if t != nil {
		for _, name := range t.Needed {
			params[s.byName[name].index].required = true
		}
	}
	return d.setParams(params, t)
}

// assignQuery assigns the i-th parameter of the query.
func (d *Destination) assignQuery(params []paramTexts, places urlsyntax.Values, query []urlsyntax.QueryParam, i int) error {
	s, q := d.schema, query[i]
	p := s.byName[strings.ToLower(q.Key)]
	if p == nil || p.kind == KindMap { // entries of a map are named by their prefix
		p = s.mapOf(q.Key)
	}
	if p == nil {
		if ignored := s.ignoredParam(q.Key); ignored != nil {
			ignored.warn(d, q)
		} else if q.Key != "" {
			text, named := unknownParam(query, i, places)
			if named {
				text += s.suggestParam(q.Key)
			}
			d.warn("%s", text)
		}
		return nil
	}
	switch own := &params[p.index]; {
	case p.kind == KindMap:
		if err := d.put(p, q.Key, q.Value); err != nil {
			return s.errValue(p, err.Error())
		}
	case q.Value == "":
	case p.kind == KindList:
		own.texts = append(slices.Clip(own.texts), q.Value)
	case own.named && !strings.EqualFold(q.Key, p.name):
	default:
		own.texts = []string{q.Value}
		own.named = strings.EqualFold(q.Key, p.name)
	}
	return nil
}

// setParams sets the parameters to their texts, and checks that the required ones have some.
func (d *Destination) setParams(params []paramTexts, t *urlsyntax.Template) error {
	s := d.schema
	for i, p := range s.params {
		if p.kind == KindMap {
			continue
		}
		own := params[i]
		required := own.required || p.required
		if len(own.texts) > 0 {
			if err := d.setParam(p, own.texts, required); err != nil {
				return err
			}
		}
		empty := len(own.texts) == 0 || p.kind == KindList && d.countItems(p) == 0
		if empty && required {
			return s.errMissing(p, t)
		}
	}
	return nil
}

// paramTexts are the texts that a URL has for a parameter.
type paramTexts struct {
	texts    []string
	named    bool // the query has the parameter under its own name, which takes precedence over an alias
	required bool // the template has a place that must not be empty
}

// setParam sets a parameter that is not a map to the texts that the URL has for
// it. There is at least one.
func (d *Destination) setParam(p *Param, texts []string, required bool) error {
	s := d.schema
	if p.kind == KindList {
		warnings, err := d.setList(p, texts, !required && p.list.dropInvalid)
		for _, w := range warnings {
			d.note("%s", w)
		}
		if err != nil {
			return s.errValue(p, err.Error())
		}
		return nil
	}
	err := d.set(p, texts[0])
	switch {
	case err != nil && p.lenient:
		d.setNearest(p, texts[0], err)
	case err != nil:
		return s.errValue(p, p.described()+" "+err.Error())
	case p.note != nil:
		if text := p.note(texts[0]); text != "" {
			d.note("%s %s", p.name, text)
		}
	}
	return nil
}

// isParam reports whether a service has a parameter of this name.
func isParam(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(registry.entries, func(e *entry) bool { return e.schema.byName[name] != nil })
}

// setNearest sets a lenient parameter instead of refusing a text for the reason
// err.
func (d *Destination) setNearest(p *Param, text string, err error) {
	if used := p.nearest(text); used != "" && used != d.schema.defaultOf(p) && d.set(p, used) == nil {
		d.warnOf(d.warning("%s %v", p.name, err), "; "+used+" is used")
		return
	}
	d.warnOf(d.warning("%s %v", p.name, err), "; the default is used")
}

// maxNamed is the maximum number of parameters of a query for which warnings
// name those without effect. Each of them is compared with all others.
const maxNamed = 64

// paramName matches what looks like the name of a parameter.
var paramName = lazyregexp.New(`^[-+:]?[A-Za-z_]{1,24}$`)

// unknownParam returns a warning about the parameter i of the query, which the service does not
// have. The warning names it by its key, which named reports, or by its number if the key could be
// a misplaced token: a key without a value, a key that does not look like a name, or a key that is
// part of another value of the URL and no service's parameter.
func unknownParam(query []urlsyntax.QueryParam, i int, places urlsyntax.Values) (text string, named bool) {
	q := query[i]
	hasKey := func(value string) bool { return len(q.Key) >= 4 && strings.Contains(value, q.Key) }
	safe := len(query) <= maxNamed && q.Value != "" && paramName.MatchString(q.Key) &&
		!slices.ContainsFunc(query, func(o urlsyntax.QueryParam) bool { return hasKey(o.Value) })
	for _, v := range places {
		safe = safe && !slices.ContainsFunc(v.Texts, hasKey)
	}
	if safe || q.Value != "" && isParam(q.Key) {
		return "the parameter " + q.Key + " is unknown and has no effect", true
	}
	return fmt.Sprintf("parameter %d of the query is unknown and has no effect", i+1), false
}

// suggestParam returns the end of a warning with the names that the author of an unknown
// parameter may have meant, or "".
func (s *Schema) suggestParam(key string) string {
	var names []string
	for _, p := range s.params {
		names = append(names, p.name)
	}
	names = similar.Names(strings.ToLower(key), names)
	if len(names) == 0 {
		return ""
	}
	return "; you may mean " + strings.Join(names, " or ")
}

// finish completes a destination whose parameters are set.
func (d *Destination) finish() error {
	s := d.entry.schema
	recipients := s.Recipients
	if f, ok := d.service.(Finisher); ok {
		own := *s
		own.Scheme = d.scheme.Name
		if err := f.Finish(&own); err != nil {
			return &URLError{Service: s.Name, Problem: err.Error()}
		}
		recipients = own.Recipients
		own.Scheme, own.Recipients = s.Scheme, s.Recipients
		if own != *s {
			d.schema = &own
		}
	}
	if w, ok := d.service.(Warner); ok {
		if text := w.Warning(); text != "" {
			d.note("%s", text)
		}
	}
	if recipients == 0 {
		recipients = d.countRecipients()
	}
	d.recipients = uint16(min(recipients, math.MaxUint16))
	// The URL is printed by the first template that has a place for each required value. It may
	// have been read by another template, because the query may have set the values of some places.
	if !d.hasRequired(d.template) {
		for _, t := range s.templates {
			if _, ok := t.Scheme(d.scheme.Name); ok && d.hasRequired(t) {
				d.template = t
				break
			}
		}
	}
	d.location = time.Local
	if d.options.tz != "" {
		if l, err := time.LoadLocation(d.options.tz); err == nil {
			d.location = l
		}
	}
	return nil
}
