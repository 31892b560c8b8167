package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

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

	// Templates make the message. They are empty if api is set.
	Templates

	// Field is the name of the form field with the JSON payload, or "".
	Field string

	// Text is the name of the payload field for a body that is not JSON. If it is
	// empty, such a body is refused.
	Text string

	// Tokens are the places where the program can put a token, in addition to ?token=
	// and Authorization: Bearer.
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
}

// Templates are the templates of a message, as texts.
type Templates struct {
	Title  string
	Body   string
	Type   string // a type, or a common word of alerting
	Tag    string // preferred tags of the message, separated by commas or spaces
	Format string // of the body; default text
	Skip   string // "true" if there is nothing to send
	Images string // addresses of images, one per line
}

// api reads the requests of an API and writes its answers. It replaces the templates.
type api struct {
	// paths are the accepted paths below the source's address. A * matches any
	// segment.
	paths []string

	read  func(r *Request) (*Message, error)
	reply func(o Outcome) Reply
}

// IsAPI reports whether the format is an API. Clients of an API expect an answer in
// its format.
func (f *Format) IsAPI() bool { return f.api != nil }

// Request is a request in the format of a program.
type Request struct {
	Header http.Header
	Query  url.Values
	Path   string     // below the source's address, without slashes at its ends
	Body   []byte     // raw body; nil for a multipart form
	Form   url.Values // the fields of a multipart form; nil for another body
	Files  int        // number of files of a multipart form
	Time   time.Time  // when the request arrived
}

// Message is the message of a request.
type Message struct {
	Title  string
	Body   string
	Type   string   // info, success, warning or failure; "" for info
	Format string   // text, markdown or html, for the body; "" for text
	Tags   []string // preferred tags: they select only if a destination has one
	Attach []string // addresses of files to attach
	Images []string // addresses of images to attach; one that cannot be fetched is left out

	// File is the name of the file that the body of the request is, or "" if the body
	// is not a file.
	File string

	// Skip means that there is nothing to send.
	Skip bool

	// Warnings are for the sender.
	Warnings []string

	// Topic is the topic for ntfy, which the answer repeats.
	Topic string
}

// Outcome is the outcome of a request, for the answer to a client of an API.
type Outcome struct {
	Status  int    // HTTP status of the answer
	Error   string // "" for success
	ID      string // ID of the message; may be empty
	Time    time.Time
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
	Status int // HTTP status of the answer
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

	title, body, typ, tag, format, skip, images templatePair
}

// templatePair is the operator's template and the built-in one. The built-in
// one is used if the operator's is missing or fails. Either may be nil.
type templatePair struct{ custom, builtin *Template }

// New returns the source with the settings c. The error names the wrong setting.
func New(c Config) (*Source, error) {
	s := &Source{config: c, types: map[string]notifier.Type{}}
	base := formats[c.Name]
	s.Format = base
	if base == nil {
		s.Format = &Format{Name: c.Name, Program: c.Name}
		if c.Title == "" && c.Body == "" {
			return nil, fmt.Errorf("there is no built-in source %s; give it a title or a body, or use one of %s", c.Name, strings.Join(slices.Sorted(maps.Keys(formats)), ", "))
		}
	}
	if s.Format.api != nil && (c.Templates != Templates{} || len(c.Types) > 0) {
		return nil, fmt.Errorf("%s is an API, whose messages need no templates; it takes sign, token and images", c.Name)
	}
	if c.Token != "" && strings.TrimSpace(c.Token) == "" || c.Scheme != "" && c.Scheme != schemeSNS && strings.TrimSpace(c.Secret) == "" {
		return nil, errors.New("the secret is empty")
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
	s.verify, err = newVerifier(scheme, c.Secret)
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

// Accepts reports whether the source handles requests to a path below its address.
func (s *Source) Accepts(path string) bool {
	if path == "" {
		return true
	}
	if s.Format.api == nil {
		return false
	}
	segments := strings.Split(path, "/")
	return slices.ContainsFunc(s.Format.api.paths, func(p string) bool {
		want := strings.Split(p, "/")
		return len(want) == len(segments) && !slices.ContainsFunc(segments, func(s string) bool { return s == "" }) &&
			slices.EqualFunc(want, segments, func(w, s string) bool { return w == "*" || w == s })
	})
}

// Fetcher returns the content at an address.
type Fetcher func(ctx context.Context, url string) ([]byte, error)

// Authenticate returns an [*Error] with the status 401 if a request does not have the
// signature and the token that the source requires. It uses fetch for certificates.
func (s *Source) Authenticate(ctx context.Context, r *Request, fetch Fetcher) error {
	if s.config.Token != "" && !s.hasToken(r) {
		return errorf(http.StatusUnauthorized, "the request has no token or a wrong one; enter the token of the source %s in the program that sends", s.config.Name)
	}
	if s.verify == nil {
		return nil
	}
	if r.Form != nil {
		return errorf(http.StatusUnauthorized, "a multipart form has no signature; have the program send JSON")
	}
	if err := s.verify(ctx, r, fetch); err != nil {
		return errorf(http.StatusUnauthorized, "the signature was not accepted: %w", err)
	}
	return nil
}

// Read returns the message of a request. The error is an [*Error] if the request
// cannot be read.
func (s *Source) Read(r *Request) (*Message, error) {
	if s.Format.api != nil {
		m, err := s.Format.api.read(r)
		if err == nil && !s.config.Images {
			m.Images = nil
		}
		return m, err
	}
	data, err := s.payload(r)
	if err != nil {
		return nil, err
	}
	if formats[s.config.Name] != nil && length(items(data)) == 0 {
		return nil, s.emptyError()
	}
	m := &Message{}
	run := func(t templatePair) (out string) {
		if err == nil {
			out, err = t.execute(data, r.Header, m)
		}
		return strings.TrimSpace(out)
	}
	if run(s.skip) == "true" {
		m.Skip = true
		return m, nil
	}
	m.Title, m.Body, m.Type = run(s.title), run(s.body), s.typeOf(run(s.typ), m)
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

// emptyError returns the error for a payload without content.
func (s *Source) emptyError() *Error {
	return errorf(http.StatusBadRequest, "the payload has nothing that a message of %s has; compare its address with the program that sends", s.Format.Program)
}

// execute runs the operator's template or, if there is none or it fails, the built-in
// one. It adds a warning to m for a template that fails.
func (t templatePair) execute(data any, h http.Header, m *Message) (string, error) {
	if t.custom != nil {
		out, err := t.custom.Execute(data, h)
		if err == nil || t.builtin == nil {
			return out, err
		}
		m.Warnings = append(m.Warnings, fmt.Sprintf("The built-in text is used in place of a template that fails: %v", err))
	}
	if t.builtin == nil {
		return "", nil
	}
	return t.builtin.Execute(data, h)
}

// typeOf returns the type for the word that the type template returns. It adds a
// warning to m for an unknown word.
func (s *Source) typeOf(word string, m *Message) string {
	if word == "" {
		return ""
	}
	if t, ok := s.types[strings.ToLower(word)]; ok {
		return string(t)
	}
	t, known := notifier.TypeOfWord(word)
	if !known {
		m.Warnings = append(m.Warnings, fmt.Sprintf("The type %q is unknown, so the message has the type info; add it to types of the source", markup.TruncateBytes(word, 40)))
	}
	return string(t)
}

// Reply returns the answer in the format of the API, or nil if the format is not an
// API.
func (s *Source) Reply(o Outcome) *Reply {
	if s.Format.api == nil {
		return nil
	}
	reply := s.Format.api.reply(o)
	return &reply
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
