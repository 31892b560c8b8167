package notifier

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/caddy-notify/caddy-notify/notifier/internal/urlsyntax"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// A Service is a service that messages can be sent to, such as Discord. A value
// of it is one destination.
//
// Describe declares the service's URLs, parameters and limits, and binds the
// parameters to fields of the service, as package flag binds variables. Send
// sends one message, and returns soon after ctx is done: somebody may wait for it.
//
// Describe runs once, when the service is registered. It binds parameters to
// fields of the value itself, not to what a field points to, and gives each its
// default by binding it. The value of a URL is a copy of the described one, so a
// map or slice that Describe sets is shared and must not be changed. Functions
// that Describe passes to parameters serve all URLs and must not use the value.
//
// One value serves all messages to one destination, from several goroutines
// at once, so Send may change fields only under a lock (see [Cached]). A service
// that keeps a connection implements io.Closer. It may be used again after
// Close.
type Service interface {
	Describe(s *Schema)
	Send(ctx context.Context, c *Client, m *Message) error
}

// A Finisher is a [Service] that checks its parameters against each other. Finish runs after all of
// them are set. It may change the schema's limits and format to suit the mode that the parameters
// select. Its error is shown to the person who wrote the URL and must not contain a parameter's
// value.
type Finisher interface {
	Finish(s *Schema) error
}

// A Warner is a [Service] that may ignore a part of its URL. Warning says which part, and why, or
// returns "". It runs after Finish. The text must not contain a parameter's value.
type Warner interface {
	Warning() string
}

// A Rewriter is a [Service] with URLs that the grammar would misread, such as
// one with a slash in the user name. Rewrite returns the URL with these parts
// percent-encoded. It runs before the URL is parsed and must not use the
// service's fields.
type Rewriter interface {
	Rewrite(url string) string
}

// Schema describes a service. Describe sets the exported fields.
type Schema struct {
	// Name is the service's name for itself, for example "Discord".
	Name string

	// Site is the address of the service's API documentation, or of its home
	// page if there is none.
	Site string

	// Setup is one sentence on where in the service the token or the address
	// for the URL is found or created: which page, which menu. The list of
	// services shows it.
	Setup string

	// Format is the format that the service takes. Messages are converted to
	// it unless the URL sets the parameter format. Default: [Text].
	Format Format

	// Limits are the largest title and body that the service takes. The
	// default is a title of 250 and a body of 32768 characters. With a title
	// of 0, the title is put into the body.
	Limits markup.Limits

	// Foreign says how the service reads texts of other programs. nil means that it shows plain
	// text as it is and reads Markdown and HTML like any program. All URLs of the service share it:
	// Finish replaces it rather than change it.
	Foreign *ForeignText

	// Attachments reports whether the service sends files. Otherwise their names and sizes are put
	// into the text.
	Attachments bool

	// TextRequired means that the service refuses a message without a text, even one with files.
	// The names and sizes of the files are then the text.
	TextRequired bool

	// Acknowledge is where the service shows [Message].Link. By default, the
	// text ends with it. Finish may change it to the mode's place.
	Acknowledge AcknowledgePlace

	// Recipients is the number of recipients of a message to the URL, for [Limits].Deliveries. 0,
	// the default, means the number of items in the URL's lists, except paths, and at least 1. A
	// service whose lists have another meaning sets it in Describe or Finish.
	Recipients int

	// Scheme is the part of the URL before "://", in lower case. It is set
	// when Finish runs.
	Scheme string

	*description
}

// Incidents declares that the service understands incidents: it shows these states in a way of its
// own, unlike a message without an incident. [Message].Incident has the ID and the state. Without
// an incident, or for another state, it sends an ordinary message. A parameter of the URL takes
// precedence over the incident.
func (s *Schema) Incidents(states ...IncidentState) { s.incidents = states }

// Dialect declares that the service reads the references of a dialect in Markdown:
// it gets references of [Message].Dialect as they are.
func (s *Schema) Dialect(d markup.Dialect) { s.dialect = d }

// A description is the part of a schema that is the same for all URLs of a
// service. It is built when the service is registered and not changed after.
type description struct {
	templates []*urlsyntax.Template
	natives   []*urlsyntax.Native
	params    []*Param
	byName    map[string]*Param // by names and aliases
	files     []*Param          // parameters of kind KindFile
	server    *variable         // of type Server; nil if the service has none
	slash     *variable         // of type bool; nil if the service has none
	binder    *binder           // nil if the description is complete
	ignored   []ignoredParam
	incidents []IncidentState // that the service shows in its own way
	dialect   markup.Dialect
	groups    []Group
	words     []string
	ways      []*urlsyntax.Template // those with a name, the best first; nil if none has one
	hints     []*hint
	noWeb     bool // see NoWeb
}

// newSchema runs Describe for a service, which gives its fields their defaults,
// and adds the parameters that all services have.
func newSchema(svc Service, o *options) *Schema {
	s := &Schema{
		Format:      Text,
		Limits:      markup.Limits{Title: 250, Body: 32768},
		description: &description{byName: map[string]*Param{}, binder: newBinder(svc, o)},
	}
	svc.Describe(s)
	s.options(o)
	s.binder = nil
	return s
}

// URL declares how the service's URLs are written. The first template that fits
// a URL is used.
//
//		gotify[s]://{host}[:{port}][/{path...}]/{token}
//
//	  - {name} is the place of a parameter. A parameter with a place outside
//	    brackets is required. The query may set a parameter that has a place, too.
//	  - [ ] encloses an optional part.
//	  - {name...} is a list that takes all path segments that remain. In place of
//	    the host it takes the host and all path segments.
//	  - {name|list}, in place of the host, is the parameter name, or the first item
//	    of the list if the query sets name.
//	  - gotify[s] stands for the schemes gotify and gotifys. With the longer one,
//	    [Server.Secure] is true.
//	  - | separates schemes with the same meaning.
//
// A template that begins with https:// is an address that the service gives out, for a
// service without a scheme of its own. Its host has no place of a parameter. Lists and
// settings name the service by that host, as if it were the scheme.
func (s *Schema) URL(templates ...string) {
	for _, text := range templates {
		t, err := urlsyntax.Compile(text)
		if err != nil {
			panic(s.Name + ": " + err.Error())
		}
		s.templates = append(s.templates, t)
		if t.Address != "" {
			s.Native(text)
		}
	}
}

// Native declares addresses that the service gives out, such as the address of a webhook. They
// are accepted as URLs of the service.
//
//	https://hooks.example.com/services/{a}/{b}
//
// They are written like the templates of [Schema.URL], with these differences:
//
//   - {name} in the host matches up to the next dot, and {host...} matches a
//     host with user, password and port.
//   - A query in the template, as in https://hooks.example.com/{token}?mode=trigger,
//     sets parameters. ?key={token} says which one the address has under that name.
//   - ?{name} is the first key of a query without values, as in
//     https://notes.example.com/?tok3n.
//
// The address may have a query with parameters, as any URL.
func (s *Schema) Native(templates ...string) {
	for _, text := range templates {
		s.natives = append(s.natives, urlsyntax.CompileNative(text))
	}
}

// TrailingSlash binds a variable that is true if the path of the URL ends in a
// slash, for services that send to the address exactly as it is written.
func (s *Schema) TrailingSlash(v *bool) { s.slash = new(s.bind(unsafe.Pointer(v))) }

// defaultOf returns the default of a parameter as a URL writes it.
func (s *Schema) defaultOf(p *Param) string {
	if p.common && p.name == "format" {
		return string(s.Format) // which Finish may have changed
	}
	return p.def
}

// hasRequired reports whether every required place of t has a value.
func (d *Destination) hasRequired(t *urlsyntax.Template) bool {
	return !slices.ContainsFunc(t.Needed, func(name string) bool { return !d.has(d.schema.byName[name]) })
}

// A variable is the place of a bound variable in the value of a service, or in
// options. Describe binds the fields of one value of the service; in every other
// value the same field has the same offset. So a destination needs no list of
// its variables.
type variable struct {
	offset uintptr
	common bool // in options, and not in the service
}

// A binder finds the places of the variables that Describe binds.
type binder struct {
	service reflect.Value // the value that Describe runs for
	options reflect.Value
}

func newBinder(svc Service, o *options) *binder {
	return &binder{reflect.ValueOf(svc).Elem(), reflect.ValueOf(o).Elem()}
}

// bind returns the place of v. It panics if v is not a field of the
// service.
func (s *Schema) bind(v unsafe.Pointer) variable {
	if s.binder == nil {
		panic(s.Name + ": parameters can be declared in Describe only")
	}
	for _, in := range []struct {
		value  reflect.Value
		common bool
	}{{s.binder.service, false}, {s.binder.options, true}} {
		offset := uintptr(v) - in.value.UnsafeAddr()
		if offset < in.value.Type().Size() { // it wraps around if v is below
			return variable{offset, in.common}
		}
	}
	panic(fmt.Sprintf("%s: Describe binds a variable that is not a field of %s", s.Name, s.binder.service.Type()))
}

// at returns a pointer to a bound variable of d.
func (d *Destination) at(v variable) unsafe.Pointer {
	if v.common {
		return unsafe.Add(unsafe.Pointer(d.options), v.offset)
	}
	return unsafe.Add(reflect.ValueOf(d.service).UnsafePointer(), v.offset)
}

// change returns a pointer to a bound variable of d that is about to be changed.
// Until then, d has the options of its entry.
func (d *Destination) change(v variable) unsafe.Pointer {
	if v.common && d.options == d.entry.options {
		d.options = new(*d.options)
	}
	return d.at(v)
}

// server returns the server of d, or nil if its service has none.
func (d *Destination) server() *Server {
	if v := d.schema.server; v != nil {
		return (*Server)(d.at(*v))
	}
	return nil
}

// slash returns the variable of [Schema.TrailingSlash], or nil if there is none.
func (d *Destination) slash() *bool {
	if v := d.schema.slash; v != nil {
		return (*bool)(d.at(*v))
	}
	return nil
}

// copyOf returns a new value of a service with the fields of svc.
func copyOf(svc Service) Service {
	from := reflect.ValueOf(svc).Elem()
	to := reflect.New(from.Type())
	to.Elem().Set(from)
	return to.Interface().(Service)
}

// An ignoredParam is a parameter without effect that URLs in use have.
type ignoredParam struct {
	name     string // in lower case; a * at the end stands for any text
	reason   string
	harmless []string
}

// Ignore declares a parameter that Apprise has and that has no effect here. URLs with it are
// accepted with a warning, which ends in reason. If values are given, any other value is a
// mistake, like the value of an unknown parameter: see [Destination.Mistake]. A * at the end of
// the name stands for any text.
func (s *Schema) Ignore(name, reason string, values ...string) {
	s.ignored = append(s.ignored, ignoredParam{name, reason, values})
}

// ignoredParam returns the parameter without effect that a key of the query
// names, or nil.
func (d *description) ignoredParam(key string) *ignoredParam {
	for i := range d.ignored {
		p := &d.ignored[i]
		prefix, isPrefix := strings.CutSuffix(p.name, "*")
		if strings.EqualFold(key, p.name) || isPrefix && strings.HasPrefix(key, prefix) {
			return p
		}
	}
	return nil
}

// warn adds the warning for the value of q to d.
func (p *ignoredParam) warn(d *Destination, q urlsyntax.QueryParam) {
	add := d.note
	if len(p.harmless) > 0 && !slices.ContainsFunc(p.harmless, func(v string) bool { return strings.EqualFold(v, q.Value) }) {
		add = d.warn
	}
	name := p.name
	if paramName.MatchString(q.Key) {
		name = q.Key
	}
	add("the parameter %s has no effect: %s", name, p.reason)
}
