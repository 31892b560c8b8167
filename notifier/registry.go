package notifier

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// registry has the registered services. It is filled by init functions and only
// read after.
var registry = struct {
	entries  []*entry
	byScheme map[string]*entry
}{byScheme: map[string]*entry{}}

// An entry is a registered service.
type entry struct {
	service  Service  // with the defaults of its parameters
	options  *options // with the defaults of its parameters
	schema   *Schema
	schemes  []string
	private  bool // no URL can name the service (see NewPrivate)
	hasState bool // the service has fields for more than its parameters
}

// Register adds a service to those that URLs can name. It is called when the
// program starts:
//
//	var _ = notifier.Register[gotify]()
//
// It panics if the description is contradictory, or if another service has one
// of its schemes.
func Register[T any, P interface {
	*T
	Service
}]() struct{} {
	register(P(new(T)))
	return struct{}{}
}

func register(svc Service) {
	e := newEntry(svc)
	for _, scheme := range e.schemes {
		if other := registry.byScheme[scheme]; other != nil {
			panic(e.schema.Name + " and " + other.schema.Name + " both have the scheme " + scheme + "://")
		}
		registry.byScheme[scheme] = e
	}
	registry.entries = append(registry.entries, e)
}

// newEntry describes a service and checks the description.
func newEntry(svc Service) *entry {
	e := &entry{service: svc, options: new(options)}
	e.schema = newSchema(e.service, e.options)
	s := e.schema
	if s.Name == "" || len(s.templates) == 0 {
		panic(fmt.Sprintf("service %T has no name or no URL", e.service))
	}
	for _, t := range s.templates {
		t.Places(func(name string, _ bool) {
			if p := s.byName[name]; p == nil || p.name != name {
				panic(s.Name + ": no parameter is called {" + name + "}, as in " + t.Text)
			}
		})
		t.SetPatterns(func(name string) *lazyregexp.Regexp { return s.byName[name].pattern })
		for _, scheme := range t.Schemes {
			if !slices.Contains(e.schemes, scheme.Name) {
				e.schemes = append(e.schemes, scheme.Name)
			}
		}
	}
	if len(s.ways) > 0 && len(s.ways) != len(s.templates) {
		panic(s.Name + ": some URLs have a way and others have none")
	}
	if len(s.groups) == 0 {
		s.groups = []Group{GroupOther}
	}
	for _, h := range s.hints {
		for _, name := range h.names {
			if p := s.byName[name]; name != hintAddress && (p == nil || p.name != name) ||
				name == hintAddress && s.server == nil && s.byName["host"] == nil {
				panic(s.Name + ": no parameter is called " + name + ", as in the hint " + h.text)
			}
		}
	}
	for _, n := range s.natives {
		for _, name := range n.Names {
			if s.byName[name] == nil {
				panic(s.Name + ": no parameter is called {" + name + "}, as in " + n.Text)
			}
		}
	}
	e.hasState = hasState(reflect.TypeOf(e.service).Elem())
	return e
}

// hasState reports whether values of the type can hold more than plain data,
// such as a lock or a session. Services of other types are the same for every
// message.
func hasState(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint8, reflect.Float64, reflect.String:
		return false
	case reflect.Slice:
		return hasState(t.Elem())
	case reflect.Map:
		return hasState(t.Key()) || hasState(t.Elem())
	case reflect.Struct:
		if strings.HasPrefix(t.PkgPath(), "sync") {
			return true
		}
		for field := range t.Fields() {
			if hasState(field.Type) {
				return true
			}
		}
		return false
	}
	return true
}

// SchemesOf returns all schemes of the service that has the given one, or nil
// if no service has it.
func SchemesOf(scheme string) []string {
	if e := registry.byScheme[strings.ToLower(scheme)]; e != nil {
		return slices.Clone(e.schemes)
	}
	return nil
}

// HasParam reports whether the service with a scheme has a parameter of this name.
func HasParam(scheme, name string) bool {
	e := registry.byScheme[strings.ToLower(scheme)]
	return e != nil && e.schema.byName[strings.ToLower(name)] != nil
}
