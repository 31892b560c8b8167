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
	Method  string // "" means POST
	Address string // address of the source, as the client knows it; "" if there is none

	Header  http.Header
	Query   url.Values
	Path    string     // below the source's address, without slashes at its ends and empty segments
	RawPath string     // Path as the client has encoded it, with empty segments; "" if there is none
	Body    []byte     // raw body, for signatures; nil for a multipart form, before it is read, and when it is answered
	Form    url.Values // the fields of a multipart form; nil for another body, and when it is answered
	Files   int        // number of files of a multipart form
	Time    time.Time  // when the request arrived

	// Payload is the JSON payload that Read of an [Endpoint] has found. If it belongs to another
	// program, the request is refused. Read sets it to nil if the address already identifies the
	// program.
	Payload any

	text  []byte // Body as text; nil before it is needed
	doubt charset.Doubt

	// OpenFor, if set, returns how long an incident has been open, as in "14 min", or "". Templates
	// of the operator's sources read it as the field OpenFor of the payload.
	OpenFor func(incident string) string

	// AlertTitle, if set, returns the title of the message that opened an incident, or "".
	AlertTitle func(incident string) string

	ticketing ticketing
}

// NewRequest returns a request with the method, headers and query of r, which may hold a token. It
// does not read the body.
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

// note records a doubt about the charset of a text and returns the text.
func (r *Request) note(text []byte, d charset.Doubt) []byte {
	r.doubt = r.doubt.Or(d)
	return text
}

// Release drops the references to the body, because its memory is reused.
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
	Images  []string // addresses of images to attach; an image that cannot be fetched is left out

	// Incident is what the message is about, or "". Alerts are the identifiers of its open alerts,
	// if the program sends them.
	Incident string
	Alerts   []string

	// Acknowledged means that somebody takes care of the incident, Unacknowledged that nobody does
	// any more.
	Acknowledged, Unacknowledged bool

	// Partial means that all listed alerts are resolved, but that the payload leaves alerts out.
	Partial bool

	// Priority is the priority of an incident tool's alert in its client's words; "" for none. A
	// change of it is news even if the type stays the same.
	Priority string

	// Named means that the message only names its alert, which an earlier message opened.
	Named bool

	// Dialect is the chat in whose Markdown the body is written, or "".
	Dialect markup.Dialect

	// Foreign means that the text must not mention people: see [notifier.Message].
	Foreign bool

	// File is a name for the body of the request, which is a file, or for the first file of a
	// multipart form. It is "" if the body is no file or the files keep their own names.
	File string

	// Tickets are the used tickets, each of which has replaced a token for one request. The zero
	// value is ready for use.
	Beat string

	// SendAt is when the message is sent: a time of RFC 3339, or a duration from now; "" for now.
	SendAt string

	// Use records a ticket and reports whether it was not used before.
	Sequence string

	// Skip means that there is nothing to send.
	Skip bool

	// Warnings are for the sender.
	Warnings []string

	// Untold says why nobody is told of the message, which is no error; "" if somebody is. It is
	// set for Reply of an [Endpoint].
	Untold string

	// Published is what only ntfy's clients get from the message, for the inbox of its key; nil if
	// it is not for ntfy.
	Published *message.Published

	// Echo has the values of the message that Reply of an [Endpoint] repeats, by their names in the
	// answer. Read sets it. It stays in memory until the message is delivered.
	Echo map[string]any
}

// Place identifies a key in all sites and spaces. It stays the same when a saved key is moved to
// another name.
func (m *Message) FillBody() {
	if m.Body == "" {
		m.Title, m.Body, m.Format, m.Dialect = "", m.Title, "", ""
	}
}

// Cut shortens a text of more than max bytes, and says so in the text and in a warning. It returns
// how many bytes are left out.
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
	Name string // "" for the name in the address
}

// Outcome is the outcome of a request, for the answer to a client of an API.
type Outcome struct {
	Status  int    // HTTP status of the answer
	Error   string // "" for success
	Code    string // see [Error]
	ID      string // ID of the message; may be empty
	Time    time.Time
	Took    time.Duration // from Time to the answer
	Request *Request
	Message *Message // nil if the request could not be read

	// Anonymous means that the request was refused because it has no token.
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
	Code   string // code of the error in the program's API; "" for the usual one of Status
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

// ValidTags returns the valid tags in a text, without tags with a special meaning: all, always, and
// numbers.
func ValidTags(s string) (out []string) {
	for _, tag := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' }) {
		tag = strings.ToLower(tag)
		if notifier.ValidTag(tag) && tag != "all" && tag != "always" && strings.Trim(tag, "0123456789") != "" && len(out) < MaxTags &&
			!slices.Contains(out, tag) {
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

// IsAddress reports whether s begins like an HTTP or HTTPS address and has no spaces. Some programs
// send a scheme alone for an empty address; that is no address.
func IsAddress(s string) bool {
	scheme, rest, _ := strings.Cut(s, "://")
	return (scheme == "https" || scheme == "http") && rest != "" && !strings.ContainsAny(s, " \t\r\n")
}
