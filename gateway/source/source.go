package source

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/internal/similar"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/typeword"
)

// Config has the settings of a source.
type Config struct {
	// Name is the name of a built-in format, or a new name.
	Name string

	// Templates replace the built-in format's templates. An empty one replaces nothing.
	Templates

	// Types maps additional words of the type template to types.
	Types map[string]string

	// Images means that images are attached if the payload has their addresses.
	Images bool

	// Mentions sets whether a text of the payload can mention people. nil allows it only for an API
	// of a chat or push service, whose clients write for the destination.
	Mentions *bool

	// Scheme and Secret are for the signature that requests must have; "" for none.
	Scheme, Secret string

	// Token is the token that requests must have; "" for none.
	Token string
}

// Source is a Format with the settings of the operator. Its methods may be called concurrently.
type Source struct {
	Format *Format
	config Config
	types  map[string]notifier.Type
	verify verifier

	title, body, typ, tag, format, skip, incident, alerts, partial, images templatePair

	readsOpenFor bool // the operator's title or body does
}

// openForField is the payload field that tells templates how long a resolved incident was open.
const openForField = "OpenFor"

// templatePair is the operator's template and the built-in one, which is used if the operator's is
// missing or fails. Either may be nil.
type templatePair struct{ custom, builtin *Template }

// New returns the source with the settings c. The error names the wrong setting.
func New(c Config) (*Source, error) { return newSource(c, nil) }

// WithToken returns a source that makes no messages. It accepts requests that have the token, or
// all requests for "".
func WithToken(name, token string) *Source {
	return &Source{Format: &Format{Name: name}, config: Config{Name: name, Token: token}}
}

// newSource is like New with roots for certificates; nil means the system's.
func newSource(c Config, roots *x509.CertPool) (*Source, error) {
	s := &Source{config: c, Format: formats[c.Name]}
	if s.Format == nil {
		if c.Title == "" && c.Body == "" {
			return nil, noFormatError(c.Name)
		}
		s.Format = &Format{Name: c.Name, Program: c.Name}
	}
	if err := c.check(s.Format); err != nil {
		return nil, err
	}
	var err error
	if s.types, err = parseTypes(c.Types); err != nil {
		return nil, err
	}
	if err := s.parseTemplates(); err != nil {
		return nil, err
	}
	scheme := c.Scheme
	if scheme == "" && s.Format.Signed {
		scheme = s.Format.Scheme
	}
	s.verify, err = newVerifier(scheme, c.Secret, roots)
	return s, err
}

// noFormatError returns the error for a source that has no templates and whose name is not a
// built-in format.
func noFormatError(name string) error {
	names := slices.Sorted(maps.Keys(formats))
	if similar := similar.Names(name, names); len(similar) > 0 {
		names = similar
	}
	return fmt.Errorf("there is no built-in source %s; give it a title or a body, or use one of %s", name, strings.Join(names, ", "))
}

// check returns an error for a wrong value, or for a setting that has no effect on the format.
func (c *Config) check(f *Format) error {
	if f.API != nil && (c.Templates != Templates{} || len(c.Types) > 0) {
		return fmt.Errorf("%s is an API, whose messages need no templates; it takes sign, token and images", c.Name)
	}
	if c.Images && formats[c.Name] != nil && !f.HasImages() {
		return fmt.Errorf("images on has no effect, because %s sends no images; remove it", f.Program)
	}
	// Without actions, the template always yields its own text.
	if f := c.Templates.Format; !strings.Contains(f, "{{") {
		if _, err := markup.ParseFormat(f); err != nil {
			return fmt.Errorf("the template format: %q is not a format; write text, markdown or html", markup.TruncateBytes(f, 40))
		}
	}
	if c.Token != "" && strings.TrimSpace(c.Token) == "" {
		return errEmptySecret
	}
	return nil
}

// parseTypes returns the types for words in lower case.
func parseTypes(words map[string]string) (map[string]notifier.Type, error) {
	types := map[string]notifier.Type{}
	for word, name := range words {
		t, err := notifier.ParseType(name)
		if err != nil || strings.TrimSpace(name) == "" {
			return nil, fmt.Errorf("types: %s=%s: use info, success, warning or failure", word, name)
		}
		types[strings.ToLower(word)] = t
	}
	return types, nil
}

// parseTemplates parses the operator's templates and the built-in ones.
func (s *Source) parseTemplates() (err error) {
	c, builtin := s.config, s.Format.Templates
	s.readsOpenFor = strings.Contains(c.Title+c.Body, openForField)
	for _, t := range []struct {
		to              *templatePair
		name            string
		custom, builtin string
	}{
		{&s.title, "title", c.Title, builtin.Title},
		{&s.body, "body", c.Body, builtin.Body},
		{&s.typ, "type", c.Type, builtin.Type},
		{&s.tag, "tag", c.Tag, builtin.Tag},
		{&s.format, "format", c.Templates.Format, builtin.Format},
		{&s.skip, "skip", c.Skip, builtin.Skip},
		{&s.incident, "incident", c.Incident, builtin.Incident},
		{&s.alerts, "alerts", c.Templates.Alerts, builtin.Alerts},
		{&s.partial, "partial", c.Partial, builtin.Partial},
		{&s.images, "images", c.Templates.Images, builtin.Images},
	} {
		if t.to.custom, err = parseOptional(t.name, t.custom); err != nil {
			return err
		}
		if t.to.builtin, err = parseOptional(t.name, t.builtin); err != nil {
			return err
		}
	}
	if s.body.custom != nil && s.format.custom == nil {
		s.format = templatePair{} // the built-in format is for the built-in body
	}
	return nil
}

// parseOptional parses a template, or returns nil if text is empty.
func parseOptional(name, text string) (*Template, error) {
	if text == "" {
		return nil, nil
	}
	return ParseTemplate(name, text)
}

// Set has the sources of a site that the operator has configured, by name. The site has the
// built-in ones as well.
type Set map[string]*Source

// Inherit returns s with the sources of base that s does not have.
func (s Set) Inherit(base Set) Set {
	all := maps.Clone(base)
	if all == nil {
		return s
	}
	maps.Copy(all, s)
	return all
}

// Get returns the source with a name, or nil if there is none. An error is about its settings.
func (s Set) Get(name string) (*Source, error) {
	if found := s[name]; found != nil {
		return found, nil
	}
	return Builtin(name)
}

// Has reports whether there is a source of a name.
func (s Set) Has(name string) bool { return s[name] != nil || formats[name] != nil }

// Names returns the names of all sources, sorted.
func (s Set) Names() []string {
	names := map[string]bool{}
	for name := range formats {
		names[name] = true
	}
	for name := range s {
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// Missing returns the error for a client that names an unknown source, with a suggestion. If keys
// are protected, it does not suggest the operator's sources.
func (s Set) Missing(name string, protected bool) *Error {
	if name == site.SourceRuler {
		return Errorf(http.StatusNotFound, "Prometheus posts below this address, to /api/v2/alerts; write it as path_prefix of the "+
			"Alertmanager in prometheus.yml")
	}
	if protected {
		s = nil
	}
	mean := ""
	if near := similar.Names(name, s.Names()); len(near) > 0 {
		mean = "; you may mean " + strings.Join(near, " or ")
	}
	return Errorf(http.StatusNotFound, "there is no such source: %s%s; the address of a source is /notify/{KEY}/{SOURCE}, such as "+
		"/notify/ops/grafana", markup.TruncateBytes(name, 64), mean)
}

// Builtin returns the source of a built-in format with default settings, or nil if
// there is no such format.
func Builtin(name string) (*Source, error) {
	if f := formats[name]; f != nil {
		return f.builtin()
	}
	return nil, nil
}

// Methods returns the methods of requests to a path below the source's address. There
// are none if the source has no such path.
func (s *Source) Methods(path string) []string {
	switch {
	case s.Format.API != nil:
		return s.Format.API.methods(path)
	case path == "":
		return postMethods
	}
	return nil
}

// ChecksSender reports whether the operator has set a token or the secret of a signature, so that
// only senders that know it can send. The signature of Amazon SNS does not count: it needs no
// secret, and every user of Amazon SNS can make it.
func (s *Source) ChecksSender() bool { return s.config.Token != "" || s.config.Secret != "" }

// Fetcher returns the content at an address.
type Fetcher func(ctx context.Context, url string) ([]byte, error)

// AuthenticateHeader checks a request as far as possible before its body is read. verified reports
// whether the body needs no check, as for a source that requires neither a signature nor a token.
// If no body can make the request valid, the error is an [*Error] with the status 401.
func (s *Source) AuthenticateHeader(r *Request) (verified bool, err error) {
	verified = true
	if s.config.Token != "" && !s.hasToken(r) {
		if !s.Format.TakesTokenInBody() {
			return false, s.tokenError()
		}
		verified = false
	}
	if s.verify == nil {
		return verified, nil
	}
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media == "multipart/form-data" {
		return false, errSignedForm
	}
	return false, nil
}

// Authenticate returns an [*Error] with the status 401 if a request does not have the
// signature and the token that the source requires. It uses fetch for certificates.
func (s *Source) Authenticate(ctx context.Context, r *Request, fetch Fetcher) error {
	if s.config.Token != "" && !s.hasToken(r) {
		return s.tokenError()
	}
	if s.verify == nil {
		return nil
	}
	if r.Form != nil {
		return errSignedForm
	}
	if err := s.verify(ctx, r, fetch); err != nil {
		return Errorf(http.StatusUnauthorized, "the signature was not accepted: %w", err)
	}
	return nil
}

var errSignedForm = Errorf(http.StatusUnauthorized, "a multipart form has no signature; have the program send JSON")

// tokenError returns the error for a request without the token of the source.
func (s *Source) tokenError() *Error {
	return Errorf(http.StatusUnauthorized,
		"the request has no token or a wrong one; enter the token of the source %s in the program that sends", s.config.Name)
}

// Read returns the message of a request. The error is an [*Error] if the request
// cannot be read. The templates stop when ctx is done, and after templateTimeout; then
// the status is 503.
func (s *Source) Read(ctx context.Context, r *Request) (*Message, error) {
	m, err := s.read(ctx, r)
	if err == nil && r.doubt.Any() {
		m.Warnings = append(m.Warnings, r.doubt.String())
	}
	return m, err
}

func (s *Source) read(ctx context.Context, r *Request) (*Message, error) {
	if s.Format.API != nil {
		return s.readAPI(ctx, r)
	}
	data, err := s.payload(r)
	if err != nil {
		return nil, err
	}
	if formats[s.config.Name] != nil && payload.Len(items(data)) == 0 {
		return nil, s.emptyError()
	}
	if err := s.checkProgram(r, data); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, templateTimeout, errTooLate)
	defer cancel()
	m, x := &Message{Foreign: !s.mentions()}, &run{meter: meter{ctx: ctx}, header: r.Header}
	run := func(t templatePair) (out string) {
		if err == nil {
			out, err = t.execute(x, data, m)
		}
		return strings.TrimSpace(out)
	}
	if run(s.skip) == "true" {
		m.Skip = true
		return m, nil
	}
	m.Type, m.Incident = s.typeOf(run(s.typ), m), run(s.incident)
	if m.Type == string(notifier.Success) && run(s.partial) != "" {
		m.Type, m.Partial = string(notifier.Info), true
	}
	if fields, ok := data.(map[string]any); ok && s.readsOpenFor && r.OpenFor != nil && m.Incident != "" &&
		m.Type == string(notifier.Success) && fields[openForField] == nil {
		fields[openForField] = r.OpenFor(m.Incident)
	}
	m.Title, m.Body, m.Alerts = run(s.title), run(s.body), strings.Fields(run(s.alerts))
	tags, format := run(s.tag), run(s.format)
	if s.config.Images {
		m.Images = addresses(run(s.images))
	}
	switch {
	case errors.Is(err, errTooLate):
		// After a 503, unlike after a 400, a program sends the alert again.
		return nil, &Error{Status: http.StatusServiceUnavailable, Err: err}
	case err != nil:
		return nil, &Error{Status: http.StatusBadRequest, Err: err}
	}
	m.Tags = ValidTags(tags)
	if _, err := markup.ParseFormat(format); err != nil {
		return nil, Errorf(http.StatusBadRequest, "the template format: %w", err)
	}
	m.Format = format
	m.FillBody()
	if m.Body == "" {
		return nil, s.emptyError()
	}
	return m, nil
}

// mentions reports whether a text of the payload can mention people.
func (s *Source) mentions() bool {
	if s.config.Mentions != nil {
		return *s.config.Mentions
	}
	return s.Format.API != nil && !s.Format.API.Alerts
}

// emptyError returns the error for a payload without content.
func (s *Source) emptyError() *Error {
	return Errorf(http.StatusBadRequest, "the payload has nothing that a message of %s has; compare its address with the program that sends",
		s.Format.Program)
}

// execute runs the operator's template or, if there is none or it fails, the built-in
// one. It adds a warning to m for a template that fails.
func (t templatePair) execute(x *run, data any, m *Message) (string, error) {
	if t.custom != nil {
		out, err := t.custom.execute(x, data)
		if err == nil || t.builtin == nil || x.ctx.Err() != nil {
			return out, err
		}
		m.Warnings = append(m.Warnings, fmt.Sprintf("The built-in text is used in place of a template that fails: %v", err))
	}
	if t.builtin == nil {
		return "", nil
	}
	return t.builtin.execute(x, data)
}

// typeOf returns the type for the word that the type template returns. It adds a warning to m for
// an unknown word, and sets Acknowledged for an acknowledgement.
func (s *Source) typeOf(word string, m *Message) string {
	if word == "" {
		return ""
	}
	if t, ok := s.types[strings.ToLower(word)]; ok {
		return string(t)
	}
	m.Acknowledged = typeword.IsAcknowledgement(word)
	t, known := typeword.TypeOf(word)
	if !known {
		m.Warnings = append(m.Warnings, fmt.Sprintf("The type %q is unknown, so the message has the type info; add it to types of the source",
			markup.TruncateBytes(word, 40)))
	}
	return string(t)
}

// TakesFiles reports whether the files of a multipart form are attached: for an API, and for
// another format if Config.Images is set.
func (s *Source) TakesFiles() bool { return s.Format.API != nil || s.config.Images }
