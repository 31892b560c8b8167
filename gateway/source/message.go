package source

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/internal/charset"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Request is a request in the format of a program.
type Request struct {
	Method  string // "" for POST
	Address string // of the source, as the client knows it; "" if there is none

	Header  http.Header
	Query   url.Values
	Path    string     // below the source's address, without slashes at its ends and empty segments
	RawPath string     // Path as the client has encoded it, with empty segments; "" if there is none
	Body    []byte     // raw body, of which signatures are; nil for a multipart form, before it is read, and when it is answered
	Form    url.Values // the fields of a multipart form; nil for another body, and when it is answered
	Files   int        // number of files of a multipart form
	Time    time.Time  // when the request arrived

	// Payload is the JSON payload that Read of an [Endpoint] has found. If it is one of
	// another program, the request is refused. Read leaves or sets it nil if the address
	// says already which program has sent the request.
	Payload any

	text  []byte // Body as text; nil before it is needed
	doubt charset.Doubt

	// OpenFor, if set, returns how long an incident has been open, as in "14 min", or "".
	// Templates of a source of the operator's read it as the field OpenFor of the payload.
	OpenFor func(incident string) string

	// AlertTitle, if set, returns the title of the message that has opened an incident, or "".
	AlertTitle func(incident string) string

	ticketing ticketing
}

// NewRequest returns the method, the headers and the query of r, in which clients send tokens.
// Its body is not read.
func NewRequest(r *http.Request) *Request {
	query, doubt := charset.ParseQuery(r.URL.RawQuery)
	return &Request{Method: r.Method, Header: r.Header, Query: query, doubt: doubt}
}

// Text returns the body as UTF-8, in the charset that the request declares.
func (r *Request) Text() []byte {
	if r.text == nil && len(r.Body) > 0 {
		r.text = r.note(charset.Decode(r.Body, r.declared()))
	}
	return r.text
}

// HeaderText returns a header as text.
func (r *Request) HeaderText(name string) string {
	text, doubt := charset.DecodeHeader(r.Header.Get(name))
	r.doubt = r.doubt.Or(doubt)
	return text
}

// declared returns the charset that the request declares for its body, or "".
func (r *Request) declared() string { return charset.OfType(r.Header.Get("Content-Type")) }

// note notes a doubt about a text and returns the text.
func (r *Request) note(text []byte, d charset.Doubt) []byte {
	r.doubt = r.doubt.Or(d)
	return text
}

// Release forgets the body, whose memory another request gets.
func (r *Request) Release() { r.Body, r.Form, r.text = nil, nil, nil }

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

	// Acknowledged means that somebody takes care of the incident, and Unacknowledged that
	// nobody does any more.
	Acknowledged, Unacknowledged bool

	// Partial means that all is well with what the payload lists, and that it leaves alerts out.
	Partial bool

	// Priority is the priority of the alert of an incident tool, as its client calls it; "" for
	// none. Another one is news, also if the message has the same type.
	Priority string

	// Named means that the message only names its alert, which another one has opened.
	Named bool

	// Dialect is the chat whose Markdown the body is, or "".
	Dialect markup.Dialect

	// Foreign means that the text must not mention people: see [notifier.Message].
	Foreign bool

	// File is the name of the file that the body of the request is, or of the first file of a
	// multipart form, in place of its own; "" if the body is not a file, or the files have their
	// own names.
	File string

	// Beat is the name of the beat that the request is, or "" if it is a message.
	Beat string

	// SendAt is when the message is sent: a time of RFC 3339, or a duration from now; "" for now.
	SendAt string

	// Sequence is the name of the messages that replace one another; "" for none. Those that
	// are planned are not sent once another one comes, or one with Skip.
	Sequence string

	// Skip means that there is nothing to send.
	Skip bool

	// Warnings are for the sender.
	Warnings []string

	// Untold is why nobody is told of the message, which is no error; "" if somebody is. It is
	// set when that is known, for Reply of an [Endpoint].
	Untold string

	// Published is what the message says to ntfy's clients alone, for the inbox of its key;
	// nil if it is not for ntfy.
	Published *message.Published

	// Echo has what Reply of an [Endpoint] repeats of the message, by the names of the
	// answer. Read sets it. It stays in memory until the message is delivered.
	Echo map[string]any
}

// FillBody makes the title the body if there is none. Titles are plain texts.
func (m *Message) FillBody() {
	if m.Body == "" {
		m.Title, m.Body, m.Format, m.Dialect = "", m.Title, "", ""
	}
}

// Cut shortens a text whose words are longer than max bytes, and says so in the text and in a
// warning. It returns how many bytes are left out.
func (m *Message) Cut(max int) (left int) {
	if len(m.Body) <= max || m.Dialect != "" && len(m.Dialect.Convert(m.Body, markup.Text, nil)) <= max {
		return 0
	}
	body := strings.ToValidUTF8(m.Body[:max], "")
	left = len(m.Body) - len(body)
	m.Body = fmt.Sprintf("%s…\n(%d bytes are left out, because the text is longer than max_body)", body, left)
	m.Warnings = append(m.Warnings, fmt.Sprintf("%d bytes of the text are left out, because it is longer than max_body", left))
	return left
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

	// Anonymous means that the request was refused because it has no token at all.
	Anonymous bool
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

// Errorf returns an error with an HTTP status. %w wraps an error, as in [fmt.Errorf].
func Errorf(status int, format string, args ...any) *Error {
	return &Error{Status: status, Err: fmt.Errorf(format, args...)}
}

// MaxTags is the maximum number of tags of a message.
const MaxTags = 50

// ValidTags returns the valid tags in a text. It leaves out tags with a special
// meaning: all, always, and numbers.
func ValidTags(s string) (out []string) {
	for _, tag := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' }) {
		tag = strings.ToLower(tag)
		if notifier.ValidTag(tag) && tag != "all" && tag != "always" && strings.Trim(tag, "0123456789") != "" && len(out) < MaxTags && !slices.Contains(out, tag) {
			out = append(out, tag)
		}
	}
	return out
}

// MaxImages is the maximum number of images of a message.
const MaxImages = 3

// addresses returns the HTTP and HTTPS addresses in a text that has one per line.
func addresses(s string) (out []string) {
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if IsAddress(line) && !slices.Contains(out, line) && len(out) < MaxImages {
			out = append(out, line)
		}
	}
	return out
}

// IsAddress reports whether s begins as an HTTP or HTTPS address and has no spaces. A scheme
// alone, which programs send for an empty address, is none.
func IsAddress(s string) bool {
	scheme, rest, _ := strings.Cut(s, "://")
	return (scheme == "https" || scheme == "http") && rest != "" && !strings.ContainsAny(s, " \t\r\n")
}
