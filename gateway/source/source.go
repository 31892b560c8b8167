package source

import (
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Format describes the requests of a program.
type Format struct {
	// Name is the name of the source in addresses.
	Name string

	// Program is the name of the program.
	Program string

	// Doc is the address of the documentation of the format.
	Doc string

	// Checked is the newest version of the program, or the date of its source code,
	// that the format was compared with. It is empty if the format was only compared
	// with messages of the program.
	Checked string

	// Has are the fields that make a payload one of the program. Each row is a condition:
	// one of its fields must exist; null counts. An error names the first one. The fields
	// are separated by |: a.b is a member of an object, a[].b a member of an element of an
	// array, and a=text a field with this text.
	//
	// A payload must meet all conditions, except those that end with ?. It belongs to the
	// format of which it meets the most; those that end with ? count half.
	Has []string

	// Header is the name of a header that all requests of the program have, and no others;
	// "" for none. Its requests need not meet the conditions.
	Header string

	// Reads are the names of other formats whose payloads the format reads as well.
	Reads []string

	// Templates make the message. They are empty if api is set.
	Templates

	// Field is the name of the form field with the JSON payload, or "".
	Field string

	// Text is the name of the payload field for a body that is not JSON. If it is
	// empty, such a body is refused.
	Text string

	// Tokens are the places where the program can put a token, in addition to those of
	// [HasToken].
	Tokens []TokenPlace

	// Scheme is the signature scheme of the program; "" for none.
	Scheme string

	// Signed means that requests must always have a signature of Scheme. It is for
	// schemes that need no secret.
	Signed bool

	// Handshake means that senders ask with OPTIONS and the header
	// WebHook-Request-Origin whether they may post.
	Handshake bool

	// payload returns the data for the templates. If it is nil, the data is the JSON
	// of the body or of Field, or else the fields of a form or of the query string.
	payload func(r *Request) (any, error)

	api *api

	// files means that a form of the program can have images as files.
	files bool

	conditions []condition // of Has
}

// hasImages reports whether a message of the format can have images.
func (f *Format) hasImages() bool {
	return f.Images != "" || f.files || f.api != nil && f.api.images
}

// Templates are the templates of a message, as texts.
type Templates struct {
	Title  string
	Body   string
	Type   string // a type, or a common word of alerting
	Tag    string // preferred tags of the message, separated by commas or spaces
	Format string // of the body; default text
	Skip   string // "true" if there is nothing to send

	// Incident names what the message is about. All messages about one alert have
	// the same text: choose what stays the same from the first message to the last.
	Incident string

	// Alerts are the identifiers of the alerts of a group that are open, separated by
	// white space: one that joins is a new state of the incident.
	Alerts string

	Images string // addresses of images, one per line
}

// IsAPI reports whether the format is an API. Clients of an API expect an answer in
// its format.
func (f *Format) IsAPI() bool { return f.api != nil }

// HasAlerts reports whether the format is the API of an incident tool, whose clients open
// alerts and later close them by their names.
func (f *Format) HasAlerts() bool { return f.api != nil && f.api.alerts }

// Request is a request in the format of a program.
type Request struct {
	Method  string // "" for POST
	Address string // of the source, as the client knows it; "" if there is none

	Header http.Header
	Query  url.Values
	Path   string     // below the source's address, without slashes at its ends and empty segments
	Body   []byte     // raw body; nil for a multipart form, and before it is read
	Form   url.Values // the fields of a multipart form; nil for another body
	Files  int        // number of files of a multipart form
	Time   time.Time  // when the request arrived

	decoded any // JSON payload that the read function of an API has found; nil for none
}

// Message is the message of a request.
type Message struct {
	Title   string
	Body    string
	Type    string   // info, success, warning or failure; "" for info
	Format  string   // text, markdown or html, for the body; "" for text
	Tags    []string // preferred tags: they select only if a destination has one
	OwnTags bool     // the parameters tag and tags of the query string are among Tags
	Attach  []RemoteFile
	Images  []string // addresses of images to attach; one that cannot be fetched is left out

	// Incident is what the message is about, or "". Alerts are the identifiers of the
	// alerts that are open in it, if the program tells.
	Incident string
	Alerts   []string

	// Acknowledged means that somebody takes care of the incident.
	Acknowledged bool

	// Alert is the name of an alert that the text has because there is nothing else to
	// say what the message is about, or "".
	Alert string

	// Dialect is the chat whose Markdown the body is, or "".
	Dialect markup.Dialect

	// Foreign means that the text must not mention people: see [notifier.Message].
	Foreign bool

	// File is the name of the file that the body of the request is, or "" if the body
	// is not a file.
	File string

	// Skip means that there is nothing to send.
	Skip bool

	// Warnings are for the sender.
	Warnings []string

	// sent is what the answer to a client of an API repeats of its message, by the
	// names of the answer.
	sent map[string]any
}

// RemoteFile is a file to attach.
type RemoteFile struct {
	URL  string
	Name string // "" for the name that the address has
}

// Outcome is the outcome of a request, for the answer to a client of an API.
type Outcome struct {
	Status  int    // HTTP status of the answer
	Error   string // "" for success
	Code    string // of the [Error]
	ID      string // ID of the message; may be empty
	Time    time.Time
	Took    time.Duration // from Time to the answer
	Request *Request
	Message *Message // nil if the request could not be read
}

// Reply is an HTTP answer in the format of an API.
type Reply struct {
	Status      int
	ContentType string
	Body        []byte
}

// Error is returned when a request is refused.
type Error struct {
	Status int    // HTTP status of the answer
	Code   string // of the error in the program's API; "" for the usual one of Status
	Err    error
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

func errorf(status int, format string, args ...any) *Error {
	return &Error{Status: status, Err: fmt.Errorf(format, args...)}
}

// formats are the built-in formats by name. The init functions of the program files
// register them.
var formats = map[string]*Format{}

// register adds a built-in format.
func register(f Format) {
	if formats[f.Name] != nil {
		panic("source: " + f.Name + " is registered twice")
	}
	f.conditions = parseHas(f.Has)
	formats[f.Name] = &f
}

// Formats returns the built-in formats in alphabetical order.
func Formats() []*Format {
	var out []*Format
	for _, name := range slices.Sorted(maps.Keys(formats)) {
		out = append(out, formats[name])
	}
	return out
}

// Lookup returns the built-in format with the name, or nil.
func Lookup(name string) *Format { return formats[name] }

// Config has the settings of a source.
type Config struct {
	// Name is the name of a built-in format, or a new name.
	Name string

	// Templates replace those of the built-in format. An empty one replaces nothing.
	Templates

	// Types maps further words that the type template returns to types.
	Types map[string]string

	// Images means that images whose addresses are in the payload are attached.
	Images bool

	// Mentions sets whether a text of the payload can mention people. nil means only
	// for an API of a chat or push service, whose clients write what the destination is to
	// show.
	Mentions *bool

	// Scheme and Secret are the scheme and the secret of the signature that requests
	// must have; "" for none.
	Scheme, Secret string

	// Token is the token that requests must have; "" for none.
	Token string
}

// Source is a Format with the settings of the operator. Its methods may be called by
// several goroutines at the same time.
type Source struct {
	Format *Format
	config Config
	types  map[string]notifier.Type
	verify verifier

	title, body, typ, tag, format, skip, incident, alerts, images templatePair
}

// templatePair is the operator's template and the built-in one. The built-in
// one is used if the operator's is missing or fails. Either may be nil.
type templatePair struct{ custom, builtin *Template }

// New returns the source with the settings c. The error names the wrong setting.
func New(c Config) (*Source, error) { return newSource(c, nil) }

// newSource is like New with the roots of certificates, or nil for those of the system.
func newSource(c Config, roots *x509.CertPool) (*Source, error) {
	s := &Source{config: c, types: map[string]notifier.Type{}}
	base := formats[c.Name]
	s.Format = base
	if base == nil {
		s.Format = &Format{Name: c.Name, Program: c.Name}
		if c.Title == "" && c.Body == "" {
			names := slices.Sorted(maps.Keys(formats))
			if similar := notifier.Similar(c.Name, names); len(similar) > 0 {
				names = similar
			}
			return nil, fmt.Errorf("there is no built-in source %s; give it a title or a body, or use one of %s", c.Name, strings.Join(names, ", "))
		}
	}
	if s.Format.api != nil && (c.Templates != Templates{} || len(c.Types) > 0) {
		return nil, fmt.Errorf("%s is an API, whose messages need no templates; it takes sign, token and images", c.Name)
	}
	if c.Images && base != nil && !base.hasImages() {
		return nil, fmt.Errorf("images on has no effect, because %s sends no images; remove it", base.Program)
	}
	// Only a template with actions can yield a format that is not its own text.
	if f := c.Templates.Format; !strings.Contains(f, "{{") {
		if _, err := markup.ParseFormat(f); err != nil {
			return nil, fmt.Errorf("the template format: %q is not a format; write text, markdown or html", markup.TruncateBytes(f, 40))
		}
	}
	if c.Token != "" && strings.TrimSpace(c.Token) == "" {
		return nil, errEmptySecret
	}
	for word, name := range c.Types {
		t, err := notifier.ParseType(name)
		if err != nil || strings.TrimSpace(name) == "" {
			return nil, fmt.Errorf("types: %s=%s: use info, success, warning or failure", word, name)
		}
		s.types[strings.ToLower(word)] = t
	}
	builtin := Templates{}
	if base != nil {
		builtin = base.Templates
	}
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
		{&s.images, "images", c.Templates.Images, builtin.Images},
	} {
		var err error
		if t.custom != "" {
			if t.to.custom, err = ParseTemplate(t.name, t.custom); err != nil {
				return nil, err
			}
		}
		if t.builtin != "" {
			if t.to.builtin, err = ParseTemplate(t.name, t.builtin); err != nil {
				return nil, err
			}
		}
	}
	if s.body.custom != nil && s.format.custom == nil {
		s.format = templatePair{} // the built-in format is for the built-in body
	}
	scheme := c.Scheme
	if scheme == "" && s.Format.Signed {
		scheme = s.Format.Scheme
	}
	var err error
	s.verify, err = newVerifier(scheme, c.Secret, roots)
	return s, err
}

var builtins sync.Map // by name, of func() (*Source, error)

// Builtin returns the source of a built-in format with default settings, or nil if
// there is no such format.
func Builtin(name string) (*Source, error) {
	if formats[name] == nil {
		return nil, nil
	}
	f, _ := builtins.LoadOrStore(name, sync.OnceValues(func() (*Source, error) { return New(Config{Name: name}) }))
	return f.(func() (*Source, error))()
}

// Methods returns the methods of requests to a path below the source's address. There
// are none if the source has no such path.
func (s *Source) Methods(path string) []string {
	switch {
	case s.Format.api != nil:
		return s.Format.api.methods(path)
	case path == "":
		return postMethods
	}
	return nil
}

// ChecksSender reports whether the operator has set a token or the secret of a
// signature, so that only who has it can send. The signature of Amazon SNS needs no
// secret, and everyone who uses Amazon SNS can make it.
func (s *Source) ChecksSender() bool { return s.config.Token != "" || s.config.Secret != "" }

// Fetcher returns the content at an address.
type Fetcher func(ctx context.Context, url string) ([]byte, error)

// AuthenticateHeader checks what it can of a request whose body has not been read. It
// reports whether the request is verified, so that its body needs no check; this is so
// for a source that requires neither a signature nor a token. The error is an [*Error]
// with the status 401 if no body can make the request valid.
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
		return errorf(http.StatusUnauthorized, "the signature was not accepted: %w", err)
	}
	return nil
}

var errSignedForm = errorf(http.StatusUnauthorized, "a multipart form has no signature; have the program send JSON")

// tokenError returns the error for a request without the token of the source.
func (s *Source) tokenError() *Error {
	return errorf(http.StatusUnauthorized, "the request has no token or a wrong one; enter the token of the source %s in the program that sends", s.config.Name)
}

// Read returns the message of a request. The error is an [*Error] if the request
// cannot be read. The templates stop when ctx is done, and after templateTimeout.
func (s *Source) Read(ctx context.Context, r *Request) (*Message, error) {
	if s.Format.api != nil {
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
	ctx, cancel := context.WithTimeoutCause(ctx, templateTimeout, fmt.Errorf("%w: all templates of a source together have %s", errTooMuch, templateTimeout))
	defer cancel()
	m := &Message{Foreign: !s.mentions()}
	run := func(t templatePair) (out string) {
		if err == nil {
			out, err = t.execute(ctx, data, r.Header, m)
		}
		return strings.TrimSpace(out)
	}
	if run(s.skip) == "true" {
		m.Skip = true
		return m, nil
	}
	m.Title, m.Body, m.Type = run(s.title), run(s.body), s.typeOf(run(s.typ), m)
	m.Incident, m.Alerts = run(s.incident), strings.Fields(run(s.alerts))
	tags, format := run(s.tag), run(s.format)
	if s.config.Images {
		m.Images = addresses(run(s.images))
	}
	if err != nil {
		return nil, &Error{Status: http.StatusBadRequest, Err: err}
	}
	m.Tags = validTags(tags)
	if _, err := markup.ParseFormat(format); err != nil {
		return nil, errorf(http.StatusBadRequest, "the template format: %w", err)
	}
	m.Format = format
	if m.Body == "" {
		m.Title, m.Body = "", m.Title
	}
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
	return s.Format.api != nil && !s.Format.api.alerts
}

// emptyError returns the error for a payload without content.
func (s *Source) emptyError() *Error {
	return errorf(http.StatusBadRequest, "the payload has nothing that a message of %s has; compare its address with the program that sends", s.Format.Program)
}

// execute runs the operator's template or, if there is none or it fails, the built-in
// one. It adds a warning to m for a template that fails.
func (t templatePair) execute(ctx context.Context, data any, h http.Header, m *Message) (string, error) {
	if t.custom != nil {
		out, err := t.custom.Execute(ctx, data, h)
		if err == nil || t.builtin == nil || ctx.Err() != nil {
			return out, err
		}
		m.Warnings = append(m.Warnings, fmt.Sprintf("The built-in text is used in place of a template that fails: %v", err))
	}
	if t.builtin == nil {
		return "", nil
	}
	return t.builtin.Execute(ctx, data, h)
}

// typeOf returns the type for the word that the type template returns. It adds a
// warning to m for an unknown word, and notes an acknowledgement.
func (s *Source) typeOf(word string, m *Message) string {
	if word == "" {
		return ""
	}
	if t, ok := s.types[strings.ToLower(word)]; ok {
		return string(t)
	}
	m.Acknowledged = notifier.IsAcknowledgement(word)
	t, known := notifier.TypeOfWord(word)
	if !known {
		m.Warnings = append(m.Warnings, fmt.Sprintf("The type %q is unknown, so the message has the type info; add it to types of the source", markup.TruncateBytes(word, 40)))
	}
	return string(t)
}

// TakesFiles reports whether the files of a multipart form are attached. They are for
// an API, and for any other format if Config.Images is set.
func (s *Source) TakesFiles() bool { return s.Format.api != nil || s.config.Images }

// maxTags is the maximum number of tags of a message.
const maxTags = 50

// validTags returns the valid tags in a text. It leaves out tags with a special
// meaning: all, always, and numbers.
func validTags(s string) (out []string) {
	for _, tag := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' }) {
		tag = strings.ToLower(tag)
		if notifier.ValidTag(tag) && tag != "all" && tag != "always" && strings.Trim(tag, "0123456789") != "" && len(out) < maxTags && !slices.Contains(out, tag) {
			out = append(out, tag)
		}
	}
	return out
}

// maxImages is the maximum number of images of a message.
const maxImages = 3

// addresses returns the HTTP and HTTPS addresses in a text that has one per line.
func addresses(s string) (out []string) {
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if isAddress(line) && !slices.Contains(out, line) && len(out) < maxImages {
			out = append(out, line)
		}
	}
	return out
}

// isAddress reports whether s begins as an HTTP or HTTPS address and has no spaces.
func isAddress(s string) bool {
	return (strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")) && !strings.ContainsAny(s, " \t\r\n")
}
