package notifier

import (
	"fmt"
	"maps"
	"slices"
	"unsafe"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier/redact"
)

// Kind is the kind of value that a parameter takes.
type Kind string

// The kinds of parameters.
const (
	KindString Kind = "string"
	KindInt    Kind = "int"
	KindFloat  Kind = "float"
	KindBool   Kind = "bool"
	KindChoice Kind = "choice"
	KindList   Kind = "list"
	KindMap    Kind = "map"
	KindFile   Kind = "file"
)

// Param describes one parameter of a service. Its methods add to the
// description and return it, so that they can be chained. They panic if the
// parameter is of a kind that they do not apply to.
type Param struct {
	name     string
	index    int // in description.params
	kind     Kind
	doc      string
	def      string // the default, as a URL writes it
	aliases  []string
	example  []string
	secret   bool
	required bool
	lenient  bool
	common   bool // every service has it
	dialled  bool // see Dialled
	phones   bool // declared by Schema.Phones

	pattern    *lazyregexp.Regexp
	normalize  func(string) (string, error)
	secretPart func(string) (public, secret string)
	note       func(string) string
	enum       bool // declared by Schema.Enum
	first      bool // see FirstMatch

	numbers numberRules // KindInt and KindFloat
	choices []Choice    // KindChoice
	list    listRules   // KindList
	dict    mapRules    // KindMap
	file    fileRules   // KindFile

	variable    variable
	description *description
}

// declare adds a parameter, whose variable is v.
func (s *Schema) declare(kind Kind, name, def, doc string, v unsafe.Pointer) *Param {
	if s.byName[name] != nil {
		panic(s.Name + ": parameter " + name + " is declared twice")
	}
	p := &Param{name: name, index: len(s.params), kind: kind, def: def, doc: doc, variable: s.bind(v), description: s.description}
	s.byName[name] = p
	s.params = append(s.params, p)
	return p
}

// mustDescribe panics unless the service is being described and the parameter is
// of one of the kinds. No kinds means all.
func (p *Param) mustDescribe(kinds ...Kind) {
	if p.description.binder == nil {
		panic("parameter " + p.name + " can be described in Describe only")
	}
	if len(kinds) > 0 && !slices.Contains(kinds, p.kind) {
		panic(fmt.Sprintf("parameter %s is of kind %s, and its description is for %v", p.name, p.kind, kinds))
	}
}

// Alias declares other names for the parameter in the query.
func (p *Param) Alias(names ...string) *Param {
	p.mustDescribe()
	for _, n := range names {
		if p.description.byName[n] != nil {
			panic("the alias " + n + " of parameter " + p.name + " is taken")
		}
		p.description.byName[n] = p
	}
	p.aliases = append(p.aliases, names...)
	return p
}

// Secret marks the value as a secret, which no log line, error or answer shows.
func (p *Param) Secret() *Param {
	p.mustDescribe()
	p.secret = true
	return p
}

// SecretPart marks a part of the value, or of each item of a list, as a secret.
// f returns the value in two parts: one to show, and the secret, or "" if there
// is none.
func (p *Param) SecretPart(f func(value string) (public, secret string)) *Param {
	p.mustDescribe(KindString, KindList, KindFile)
	p.secretPart = f
	return p
}

// Required makes the parameter required. A parameter that has a place in the
// URL's template is required without it.
func (p *Param) Required() *Param {
	p.mustDescribe()
	p.required = true
	return p
}

// Lenient accepts an invalid value with a warning instead of refusing the URL. A
// number above the range is clipped to it, and any other invalid value means the
// default. It is for values that users have in their URLs already.
func (p *Param) Lenient() *Param {
	p.mustDescribe(KindString, KindInt, KindFloat, KindChoice)
	p.lenient = true
	return p
}

// FirstMatch makes the beginning of several choices mean the first one that is
// declared.
func (p *Param) FirstMatch() *Param {
	p.mustDescribe(KindChoice)
	p.first = true
	return p
}

// Strict refuses a URL with an invalid value of a switch, which is otherwise
// accepted as by [Param.Lenient]. It is for switches that security depends on.
func (p *Param) Strict() *Param {
	p.mustDescribe(KindBool)
	p.lenient = false
	return p
}

// Note adds a warning for values that are valid but may not mean what the author
// of the URL expects. f returns the warning for a value as the URL writes it, or
// "". It continues a sentence that begins with the parameter.
func (p *Param) Note(f func(value string) string) *Param {
	p.mustDescribe(KindString, KindInt, KindFloat, KindBool, KindChoice)
	p.note = f
	return p
}

// Example sets the value that example URLs have for the parameter. It looks real: a token has the
// length and the letters of the service's tokens. For a list it is one or more items, for a map a
// pair, key=value.
//
// An example URL has a value at each required place of its template, and at an optional place if
// the parameter has an example. The value of a required place without an example is the parameter's
// name. The scheme is the one with TLS, unless the host ends in ".local".
func (p *Param) Example(values ...string) *Param {
	p.mustDescribe()
	p.example = values
	return p
}

// Match demands that the value, or each item of a list, matches the regular
// expression. The case of letters does not count.
func (p *Param) Match(pattern string) *Param {
	p.mustDescribe(KindString, KindList)
	p.pattern = lazyregexp.New("(?i)" + pattern)
	return p
}

// Normalize passes the value, or each item of a list, through f, which checks
// it and returns it in the form that the service wants. The text of an error
// continues a sentence that begins with the parameter, for example "is not a
// telephone number", and does not contain the value.
func (p *Param) Normalize(f func(value string) (string, error)) *Param {
	p.mustDescribe(KindString, KindInt, KindList)
	p.normalize = f
	return p
}

// Param returns the parameter that has been declared under a name, so that more
// can be added to its description: for example to one of [Schema.Server].
func (s *Schema) Param(name string) *Param {
	if p := s.byName[name]; p != nil {
		return p
	}
	panic(s.Name + ": no parameter is called " + name)
}

// described returns the parameter as error texts name it.
func (p *Param) described() string { return p.name + " (" + p.doc + ")" }

// cut returns the part of a value that may be shown, and the part that is a
// secret.
func (p *Param) cut(value string) (public, secret string) {
	switch {
	case p.secret:
		return "", value
	case p.secretPart != nil:
		return p.secretPart(value)
	}
	return value, ""
}

// masked returns a value with its secret masked.
func (p *Param) masked(value string) string {
	public, secret := p.cut(value)
	if secret != "" {
		return public + redact.Mask
	}
	return public
}

// secrets returns the values that must not be shown.
func (d *Destination) secrets() (secrets []string) {
	for _, p := range d.schema.params {
		if !p.secret && p.secretPart == nil {
			continue
		}
		if p.kind == KindMap {
			for key, text := range *d.entries(p) {
				if p.hides(key) {
					secrets = append(secrets, text)
				}
			}
			continue
		}
		for _, text := range d.texts(p) {
			if _, secret := p.cut(text); secret != "" {
				secrets = append(secrets, secret)
			}
		}
	}
	return secrets
}

// texts returns the value of a parameter as a URL writes it: no text if it has
// none, one for a single value, and one for each item of a list and for each
// value of a map.
func (d *Destination) texts(p *Param) []string {
	switch p.kind {
	case KindList:
		return d.items(p)
	case KindMap:
		return slices.Collect(maps.Values(*d.entries(p)))
	}
	if text := d.value(p); text != "" {
		return []string{text}
	}
	return nil
}

// has reports whether a parameter has a value.
func (d *Destination) has(p *Param) bool {
	switch p.kind {
	case KindList:
		return d.countItems(p) > 0
	case KindMap:
		return len(*d.entries(p)) > 0
	}
	return d.value(p) != ""
}
