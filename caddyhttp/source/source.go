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
	// Name is the name in addresses.
	Name string

	// Program is the name of the program.
	Program string

	// Doc is the address of the documentation of the format.
	Doc string

	// Checked is the newest version of the program, or the date of its
	// source, that the format was compared with. It is empty if the format
	// follows messages that the program has sent, and was not compared with its
	// source.
	Checked string

	// Templates make the message. They are empty if api is set.
	Templates

	// Field is the field of a form that holds the payload as JSON.
	Field string

	// Text is the field of the payload that gets a body that is not JSON. If it
	// is empty, such a body is refused.
	Text string

	// Tokens are the places where the program can put a token, in addition to
	// the usual ones.
	Tokens []TokenPlace

	// Scheme is the signature scheme of the program; "" for none.
	Scheme string

	// Signed demands a signature without a setting. It is for schemes that need
	// no secret.
	Signed bool

	// Handshake means that senders ask with OPTIONS and the header
	// WebHook-Request-Origin whether they may post.
	Handshake bool

	// payload returns what the templates get. If it is nil, they get the JSON of
	// the body or of Field, or else the fields of a form or of the query string.
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
	Skip   string // true if there is no message
	Images string // addresses of images, one a line
}

// api is code for a program whose requests templates cannot read, and for
// clients that expect an answer of their own.
type api struct {
	// paths are the paths below the source's address, with * for any segment.
	paths []string

	read  func(r *Request) (*Message, error)
	reply func(o Outcome) Reply
}

// IsAPI reports whether the format is an API, whose clients expect an answer of
// its form.
func (f *Format) IsAPI() bool { return f.api != nil }

// Request is a request in the format of a program.
type Request struct {
	Header http.Header
	Query  url.Values
	Path   string     // below the source's address, without slashes at its ends
	Body   []byte     // as it was sent; nil for a multipart form
	Form   url.Values // the fields of a multipart form; nil for another body
	Files  int        // the number of files of a multipart form
	Time   time.Time
}

// Message is what a program wants to say.
type Message struct {
	Title  string
	Body   string
	Type   string // a type; "" if the program does not say
	Format string
	Tags   []string // preferred tags: they select only if a destination has one
	Attach []string // addresses of files to attach
	Images []string // addresses of images to attach, if they can be had

	// File means that the body of the request is a file, with this name.
	File string

	// Skip means that there is nothing to send.
	Skip bool

	// Warnings are for the sender.
	Warnings []string

	// Topic is the part of the path that a client expects in the answer.
	Topic string
}

// Outcome is what became of a message, for the answer to a client of an API.
type Outcome struct {
	Status  int    // HTTP status of the answer
	Error   string // "" for success
	ID      string // of the message
	Time    time.Time
	Request *Request
	Message *Message // nil if it could not be read
}

// Reply is an answer in the form that a client expects.
type Reply struct {
	Status      int
	ContentType string
	Body        []byte
}

// Error is a request that is refused.
type Error struct {
	Status int
	Err    error
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

func errorf(status int, format string, args ...any) *Error {
	return &Error{Status: status, Err: fmt.Errorf(format, args...)}
}

// formats are the built-in formats. Each file of a program adds one when the
// program starts.
var formats = map[string]*Format{}

// register adds a built-in format.
func register(f Format) {
	if formats[f.Name] != nil {
		panic("source: " + f.Name + " is registered twice")
	}
	formats[f.Name] = &f
}

// Formats returns the built-in formats in the order of their names.
func Formats() []*Format {
	var out []*Format
	for _, name := range slices.Sorted(maps.Keys(formats)) {
		out = append(out, formats[name])
	}
	return out
}

// Lookup returns the built-in format with a name, or nil.
func Lookup(name string) *Format { return formats[name] }

// Config is a source as the operator sets it up.
type Config struct {
	// Name is the name of a built-in format, or of one's own.
	Name string

	// Templates replace those of the built-in format, one by one.
	Templates

	// Types are types for words that templates for the type return.
	Types map[string]string

	// Images attaches the images that the payload names.
	Images bool

	// Scheme and Secret are the signature that requests must have; "" for none.
	Scheme, Secret string

	// Token is the token that requests must have; "" for none.
	Token string
}

// Source is a Format ready for use. Its methods may be called by several
// goroutines at once.
type Source struct {
	Format *Format
	config Config
	types  map[string]notifier.Type
	verify verifier

	title, body, kind, tag, markup, skip, images chain
}

// chain is the operator's template and the built-in one, which is used if the
// first fails; either may be nil.
type chain struct{ own, builtin *Template }

// New returns a Source for a Config. The error says which setting is wrong.
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
		to           *chain
		name         string
		own, builtin string
	}{
		{&s.title, "title", c.Title, builtin.Title},
		{&s.body, "body", c.Body, builtin.Body},
		{&s.kind, "type", c.Type, builtin.Type},
		{&s.tag, "tag", c.Tag, builtin.Tag},
		{&s.markup, "format", c.Templates.Format, builtin.Format},
		{&s.skip, "skip", c.Skip, builtin.Skip},
		{&s.images, "images", c.Templates.Images, builtin.Images},
	} {
		var err error
		if t.own != "" {
			if t.to.own, err = ParseTemplate(t.name, t.own); err != nil {
				return nil, err
			}
		}
		if t.builtin != "" {
			if t.to.builtin, err = ParseTemplate(t.name, t.builtin); err != nil {
				return nil, err
			}
		}
	}
	if s.body.own != nil && s.markup.own == nil {
		s.markup = chain{} // the built-in format is that of the built-in body
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

// Builtin returns the source of a built-in format without settings, or nil if
// there is no such format.
func Builtin(name string) (*Source, error) {
	if formats[name] == nil {
		return nil, nil
	}
	f, _ := builtins.LoadOrStore(name, sync.OnceValues(func() (*Source, error) { return New(Config{Name: name}) }))
	return f.(func() (*Source, error))()
}

// Accepts reports whether the source answers a path below its address.
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

// Fetcher gets the content at an address.
type Fetcher func(ctx context.Context, url string) ([]byte, error)

// Authenticate returns an [*Error] with the status 401 if a request lacks the
// signature or the token that the source demands. fetch gets certificates.
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
		return nil, s.nothing()
	}
	m := &Message{}
	run := func(c chain) (out string) {
		if err == nil {
			out, err = c.execute(data, r.Header, m)
		}
		return strings.TrimSpace(out)
	}
	if run(s.skip) == "true" {
		m.Skip = true
		return m, nil
	}
	m.Title, m.Body, m.Type = run(s.title), run(s.body), s.typeOf(run(s.kind), m)
	tags, format := run(s.tag), run(s.markup)
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
		return nil, s.nothing()
	}
	return m, nil
}

// nothing returns the error for a payload without content.
func (s *Source) nothing() *Error {
	return errorf(http.StatusBadRequest, "the payload has nothing that a message of %s has; compare its address with the program that sends", s.Format.Program)
}

// execute runs the operator's template or, if there is none or it fails, the
// built-in one.
func (c chain) execute(data any, h http.Header, m *Message) (string, error) {
	if c.own != nil {
		out, err := c.own.Execute(data, h)
		if err == nil || c.builtin == nil {
			return out, err
		}
		m.Warnings = append(m.Warnings, fmt.Sprintf("The built-in text is used in place of a template that fails: %v", err))
	}
	if c.builtin == nil {
		return "", nil
	}
	return c.builtin.Execute(data, h)
}

// typeOf returns the type for what the template returns.
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

// Reply returns the answer in the form of the program's API, or nil if clients
// get the gateway's own.
func (s *Source) Reply(o Outcome) *Reply {
	if s.Format.api == nil {
		return nil
	}
	reply := s.Format.api.reply(o)
	return &reply
}

// TakesFiles reports whether the files of a multipart form are attached: always
// for an API, and for a webhook if images are wanted.
func (s *Source) TakesFiles() bool { return s.Format.api != nil || s.config.Images }

// maxTags bounds the tags of a message.
const maxTags = 50

// validTags returns the valid tags in a text. Tags with a special meaning are left
// out: all, always, and numbers, which choose a place in a chain.
func validTags(s string) (out []string) {
	for _, tag := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' }) {
		tag = strings.ToLower(tag)
		if notifier.ValidTag(tag) && tag != "all" && tag != "always" && strings.Trim(tag, "0123456789") != "" && len(out) < maxTags && !slices.Contains(out, tag) {
			out = append(out, tag)
		}
	}
	return out
}

// maxImages bounds the images of a message.
const maxImages = 3

// addresses returns the http addresses in a text, one a line.
func addresses(s string) (out []string) {
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if isAddress(line) && !slices.Contains(out, line) && len(out) < maxImages {
			out = append(out, line)
		}
	}
	return out
}

func isAddress(s string) bool {
	return (strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")) && !strings.ContainsAny(s, " \t\r\n")
}
