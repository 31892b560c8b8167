package notifier

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier/internal/urlsyntax"
)

// A URLForm is one way to write the URLs of a service, as a form that a person
// fills in: it has a field for each parameter.
type URLForm struct {
	Service  string      // the service's name
	Template string      // written as for [Schema.URL]
	Way      string      // name of the form, see [Schema.Way]; "" if it has none
	Schemes  []URLScheme // schemes that differ in meaning; the first is the best choice
	Fields   []URLField  // those with a place in the template first
	Slash    bool        // a slash at the end of the path has a meaning

	// Address is the form of an address that the service hands out with all required values, as in
	// https://hooks.example.com/…/…, or "" if there is none. [Recognize] takes it apart.
	Address string

	entry    *entry
	template *urlsyntax.Template
}

// A URLScheme is a scheme that a form offers.
type URLScheme struct {
	Name   string
	Secure bool // with TLS, where the service has both
}

// A URLField is the field of a parameter in a form. Required and InURL apply to
// this form.
type URLField struct {
	ParamInfo
	Path  bool // of KindList: the items are the segments of a path
	Split bool // of KindList: a comma separates items

	// Elsewhere reports whether the parameter has a place in another form of the service's URLs but
	// not in this one. A page can leave it out unless it has a value.
	Elsewhere bool

	// InAddress reports whether the form's Address has the value.
	InAddress bool
}

// URLValues are the values of a form.
type URLValues struct {
	// Scheme is one of the service's schemes; "" means the first of the form.
	Scheme string

	// Texts has the values by the names of their parameters: one text, or the
	// items of a list. A parameter without an entry has its default. An empty
	// text means the same, except for a password: an empty one differs from
	// none, see [Server.Login].
	Texts map[string][]string

	// Maps has the entries of the parameters that are maps, by the names of
	// these parameters.
	Maps map[string]map[string]string

	// Slash reports whether the path ends in a slash.
	Slash bool
}

// URLForms returns the forms of the service that has a scheme, the best for a
// newcomer first, or nil if no service has it.
func URLForms(scheme string) []*URLForm {
	e := registry.byScheme[strings.ToLower(scheme)]
	if e == nil {
		return nil
	}
	var forms []*URLForm
	for _, t := range e.schema.forms() {
		forms = append(forms, e.form(t))
	}
	return forms
}

// Form returns the form that matches the URL of d, and its values, including
// secrets.
func (d *Destination) Form() (*URLForm, URLValues) {
	v := URLValues{Scheme: d.scheme.Name, Texts: map[string][]string{}, Maps: map[string]map[string]string{}}
	for _, p := range d.schema.params {
		switch {
		case !d.has(p):
		case p.kind == KindMap:
			v.Maps[p.name] = maps.Clone(*d.entries(p))
		case p.kind == KindList || d.template.Has(p.name) || d.value(p) != d.schema.defaultOf(p):
			v.Texts[p.name] = d.texts(p)
		}
	}
	if server := d.server(); server != nil && server.hasPassword && server.Password == "" {
		v.Texts["password"] = []string{""}
	}
	if slash := d.slash(); slash != nil {
		v.Slash = *slash
	}
	return d.entry.form(d.template), v
}

// form returns the form of a template.
func (e *entry) form(t *urlsyntax.Template) *URLForm {
	s := e.schema
	f := &URLForm{Service: s.Name, Template: t.Text, Way: t.Way, Slash: s.slash != nil, entry: e, template: t}
	for _, secure := range []bool{true, false} {
		if i := slices.IndexFunc(t.Schemes, func(s urlsyntax.Scheme) bool { return s.Secure == secure }); i >= 0 {
			f.Schemes = append(f.Schemes, URLScheme{t.Schemes[i].Name, secure})
		}
	}
	t.Places(func(name string, _ bool) {
		if !slices.ContainsFunc(f.Fields, func(x URLField) bool { return x.Name == name }) {
			f.Fields = append(f.Fields, s.field(s.byName[name], true, slices.Contains(t.Needed, name)))
		}
	})
	for _, p := range s.params {
		ofServer := s.server != nil && slices.Contains([]string{"user", "password", "host", "port"}, p.name)
		if !t.Has(p.name) && !ofServer {
			f.Fields = append(f.Fields, s.field(p, false, false))
		}
	}
	e.findAddress(f)
	return f
}

// findAddress sets the address that the service hands out, if it has all required values.
func (e *entry) findAddress(f *URLForm) {
	for _, n := range e.schema.natives {
		names, shown := n.Needs()
		lacks := slices.ContainsFunc(f.Fields, func(x URLField) bool {
			return x.Required && !slices.Contains(names, x.Name)
		})
		strange := slices.ContainsFunc(names, func(name string) bool { return !f.template.Has(name) && e.schema.placed(name) })
		if names == nil || lacks || strange || !strings.HasPrefix(n.Text, "https://") || f.template.Address != "" {
			continue
		}
		f.Address = shown
		for i := range f.Fields {
			x := &f.Fields[i]
			x.InAddress = slices.Contains(names, x.Name) || slices.Contains(names, "host") && x.Name == "port"
		}
		return
	}
}

func (s *Schema) field(p *Param, inURL, required bool) URLField {
	f := URLField{ParamInfo: s.paramInfo(p)}
	f.Elsewhere = f.InURL && !inURL && p.kind != KindList
	f.InURL, f.Required = inURL, required || p.required
	if p.kind == KindList {
		f.Path, f.Split = p.list.repeats, len(p.list.split("a,b")) > 1
	}
	return f
}

// Build returns the URL with the values v in its canonical form. It parses the URL again to make
// sure that it has exactly these values. If not, it returns the problems, each with its parameter
// if it is about one.
func (f *URLForm) Build(v URLValues) (url string, problems []*URLError) {
	if v.Scheme == "" {
		v.Scheme = f.Schemes[0].Name
	}
	scheme, ok := f.template.Scheme(v.Scheme)
	if !ok {
		return "", []*URLError{{Service: f.Service, Problem: "this form of the URL does not have the scheme " + v.Scheme + "://"}}
	}
	d := f.entry.newDestination(f.template, scheme)
	if problems := d.fill(v); len(problems) > 0 {
		return "", problems
	}
	err := d.readFiles(Files{})
	if err == nil {
		err = d.finish()
	}
	if err != nil {
		return "", []*URLError{d.urlError(err)}
	}
	url = d.print(false)
	again, err := Parse(url, nil)
	if err != nil {
		return "", []*URLError{d.urlError(err)}
	}
	if name := d.differs(again); name != "" {
		return "", []*URLError{{
			Service: f.Service, Param: name, Problem: name + " has a value that this form of the URL cannot hold",
			Fix: "remove white space at its beginning and end, or choose another form",
		}}
	}
	return url, nil
}

// urlError returns an error about the URL of d as a [*URLError].
func (d *Destination) urlError(err error) *URLError {
	if e, ok := errors.AsType[*URLError](err); ok {
		return e
	}
	return &URLError{Service: d.schema.Name, Problem: err.Error()}
}

// fill sets the parameters to the values of a form, and returns all mistakes.
func (d *Destination) fill(v URLValues) (problems []*URLError) {
	s := d.schema
	if server := d.server(); server != nil {
		_, server.hasPassword = v.Texts["password"]
	}
	if slash := d.slash(); slash != nil {
		*slash = v.Slash
	}
	for _, p := range s.params {
		mistake := func(problem string) { problems = append(problems, d.urlError(s.errValue(p, problem))) }
		switch p.kind {
		case KindMap:
			for _, key := range slices.Sorted(maps.Keys(v.Maps[p.name])) {
				if err := d.put(p, p.dict.prefix+key, v.Maps[p.name][key]); err != nil {
					mistake(err.Error())
				}
			}
			continue
		case KindList:
			warnings, err := d.setList(p, v.Texts[p.name], false)
			if err != nil {
				warnings = []string{err.Error()}
			}
			for _, w := range warnings {
				mistake(w)
			}
			if len(warnings) > 0 {
				continue
			}
		default:
			if texts := v.Texts[p.name]; len(texts) > 0 && texts[0] != "" {
				if err := d.set(p, texts[0]); err != nil {
					mistake(p.name + " " + err.Error())
					continue
				}
			}
		}
		if (p.required || slices.Contains(d.template.Needed, p.name)) && !d.has(p) {
			problems = append(problems, &URLError{Service: s.Name, Param: p.name, Problem: p.name + " is missing"})
		}
	}
	return problems
}

// differs returns the name of a parameter that has different values in two
// destinations of a service, or "" if there is none.
func (d *Destination) differs(o *Destination) string {
	for _, p := range d.schema.params {
		var same bool
		switch p.kind {
		case KindMap:
			same = maps.Equal(*d.entries(p), *o.entries(p))
		case KindList:
			same = slices.Equal(d.items(p), o.items(p))
		default:
			same = cmp.Or(d.value(p), d.schema.defaultOf(p)) == cmp.Or(o.value(p), o.schema.defaultOf(p))
		}
		if !same {
			return p.name
		}
	}
	if a, b := d.server(), o.server(); a != nil && a.Secure != b.Secure {
		return "host"
	}
	if a, b := d.slash(), o.slash(); a != nil && *a != *b {
		return "path"
	}
	return ""
}
