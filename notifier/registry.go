package notifier

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// registry is filled by init functions and only read afterwards.
var registry = struct {
	byScheme map[string]*kind
	kinds    []*kind
}{byScheme: map[string]*kind{}}

// kind is a registered service.
type kind struct {
	new      func() Service
	schema   *Schema // of the zero value
	compiled *compiled
	schemes  []string
	keeps    bool // the service has fields that can hold more than its parameters
}

// Register adds a service to those that URLs may name. It is called for its
// effect when a program starts:
//
//	var _ = notifier.Register[gotify]()
//
// It panics if the description contradicts itself or claims a scheme that
// another service has.
func Register[T any, P interface {
	*T
	Service
}]() struct{} {
	register(func() Service { return P(new(T)) })
	return struct{}{}
}

func register(make func() Service) {
	k := &kind{new: make, compiled: newCompiled()}
	k.schema = newSchema(make(), new(options), k.compiled)
	if k.schema.Name == "" || len(k.schema.templates) == 0 {
		panic(fmt.Sprintf("service %T has no name or no URL", make()))
	}
	for _, t := range k.schema.templates {
		t.names(func(name string, _ bool) {
			if p := k.schema.byName[name]; p == nil || p.name != name {
				panic(k.schema.Name + ": nothing is bound to {" + name + "} of " + t.text)
			}
		})
		t.delimit(k.schema.byName)
		for _, s := range t.schemes {
			if !slices.Contains(k.schemes, s.name) {
				k.schemes = append(k.schemes, s.name)
			}
		}
	}
	for _, n := range k.schema.natives {
		for _, name := range n.names {
			if k.schema.byName[name] == nil {
				panic(k.schema.Name + ": nothing is bound to {" + name + "} of " + n.text)
			}
		}
	}
	for _, s := range k.schemes {
		if other := registry.byScheme[s]; other != nil {
			panic(k.schema.Name + " and " + other.schema.Name + " both claim " + s + "://")
		}
		registry.byScheme[s] = k
	}
	k.keeps = keeps(reflect.TypeOf(make()).Elem())
	registry.kinds = append(registry.kinds, k)
}

// keeps says whether values of the type can hold anything but plain data,
// such as a session behind a lock. Services without it are the same for
// every message.
func keeps(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64, reflect.String:
		return false
	case reflect.Slice:
		return keeps(t.Elem())
	case reflect.Map:
		return keeps(t.Key()) || keeps(t.Elem())
	case reflect.Struct:
		if strings.HasPrefix(t.PkgPath(), "sync") {
			return true
		}
		for i := range t.NumField() {
			if keeps(t.Field(i).Type) {
				return true
			}
		}
		return false
	}
	return true
}

func newCompiled() *compiled {
	return &compiled{
		patterns:  map[string]*regexp.Regexp{},
		templates: map[string]*template{},
		natives:   map[string]*native{},
	}
}

// ServiceInfo is what there is to know about a service, for listings and
// documentation.
type ServiceInfo struct {
	Name        string      `json:"name"`
	Site        string      `json:"site,omitempty"`
	Schemes     []string    `json:"schemes"`
	URLs        []string    `json:"urls"`
	Natives     []string    `json:"native_urls,omitempty"`
	Examples    []string    `json:"examples"`
	Params      []ParamInfo `json:"params"`
	Format      Format      `json:"format"`
	MaxTitle    int         `json:"max_title"`
	MaxBody     int         `json:"max_body"`
	Unit        markup.Unit `json:"unit"` // what the two are counted in
	Attachments bool        `json:"attachments"`
}

// ParamInfo is what there is to know about one parameter.
type ParamInfo struct {
	Name     string   `json:"name"`
	Doc      string   `json:"doc"`
	Kind     Kind     `json:"kind"`
	Default  string   `json:"default,omitempty"`
	Choices  []string `json:"choices,omitempty"`
	Aliases  []string `json:"aliases,omitempty"`
	Prefix   string   `json:"prefix,omitempty"`
	Parts    []string `json:"parts,omitempty"`
	Min      *float64 `json:"min,omitempty"`
	Max      *float64 `json:"max,omitempty"`
	Required bool     `json:"required,omitempty"`
	InURL    bool     `json:"in_url,omitempty"`
	Secret   bool     `json:"secret,omitempty"`
	Common   bool     `json:"common,omitempty"`
	Example  string   `json:"example,omitempty"`
}

// Services lists the registered services by name.
func Services() []ServiceInfo {
	out := make([]ServiceInfo, 0, len(registry.kinds))
	for _, k := range registry.kinds {
		out = append(out, k.info())
	}
	slices.SortFunc(out, func(a, b ServiceInfo) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	return out
}

// SchemesOf lists all schemes of the service that has the given one, or
// nothing if there is none.
func SchemesOf(scheme string) []string {
	if k := registry.byScheme[strings.ToLower(scheme)]; k != nil {
		return slices.Clone(k.schemes)
	}
	return nil
}

func (k *kind) info() ServiceInfo {
	s := k.schema
	info := ServiceInfo{
		Name: s.Name, Site: s.Site, Schemes: k.schemes, Format: s.Format,
		MaxTitle: s.Limits.Title, MaxBody: s.Limits.Body, Unit: cmp.Or(s.Limits.Unit, markup.Characters), Attachments: s.Attachments,
	}
	for _, t := range s.templates {
		info.URLs = append(info.URLs, t.text)
		info.Examples = append(info.Examples, s.example(t))
	}
	for _, n := range s.natives {
		info.Natives = append(info.Natives, n.text)
	}
	for _, p := range s.params {
		info.Params = append(info.Params, s.paramInfo(p))
	}
	// The parameters of a server count only where they have a place.
	if s.server != nil {
		info.Params = slices.DeleteFunc(info.Params, func(p ParamInfo) bool {
			return !p.InURL && slices.Contains([]string{"user", "password", "host", "port"}, p.Name)
		})
	}
	return info
}

func (s *Schema) paramInfo(p *Param) ParamInfo {
	i := ParamInfo{
		Name: p.name, Doc: p.doc, Kind: p.kind, Default: p.def, Aliases: p.aliases,
		Prefix: p.prefix, Required: p.required, Secret: p.secret, Common: p.common, Example: p.example,
	}
	for _, c := range p.choices {
		i.Choices = append(i.Choices, c.Name)
	}
	for _, part := range p.parts {
		i.Parts = append(i.Parts, part.prefix+": "+part.doc)
	}
	if p.span() != "" {
		if p.lo > -1e300 {
			i.Min = &p.lo
		}
		if p.hi < 1e300 {
			i.Max = &p.hi
		}
	}
	optional := false
	for _, t := range s.templates {
		if !t.has(p.name) {
			optional = true
			continue
		}
		i.InURL = true
		t.names(func(name string, opt bool) { optional = optional || name == p.name && opt })
	}
	i.Required = i.Required || i.InURL && !optional
	return i
}

// example is a URL in which every place of the template has a value, and what
// is required beyond.
func (s *Schema) example(t *template) string {
	values := func(name string) []string {
		p := s.byName[name]
		switch {
		case p.example != "":
			return []string{p.example}
		case p.kind == KindInt:
			return []string{fmt.Sprint(max(1, int(max(p.lo, 1))))}
		case p.kind == KindBool:
			return []string{"yes"}
		case len(p.choices) > 0:
			return []string{p.choices[0].Name}
		}
		return []string{p.name}
	}
	out := t.print(t.schemes[len(t.schemes)-1].name, values, false)
	separator := "?"
	for _, p := range s.params {
		if p.required && !t.has(p.name) {
			out += separator + p.name + "=" + escapeUser(values(p.name)[0])
			separator = "&"
		}
	}
	return out
}
