package source

import (
	"maps"
	"net/http"
	"slices"
	"sync"
)

// Format describes the requests of a program.
type Format struct {
	// Name is the name of the source in addresses.
	Name string

	// Program is the name of the program.
	Program string

	// Doc is the address of the documentation of the format.
	Doc string

	// Checked is the newest version of the program, or the date of its source code, that the format
	// was compared with. It is empty if the format was only compared with messages that the program
	// sent.
	Checked string

	// Has says how a payload of the program is recognized. Each row is a condition: one of its
	// fields, separated by |, must exist; null counts. An error names the first one. a.b is a
	// member of an object, a[].b a member of an element of an array, a=text a field with this text,
	// and a~text a field that begins or ends with this text.
	//
	// A payload must meet all conditions except those with ? at their end. It belongs to the format
	// of which it meets the most conditions; those with ? count half.
	Has []string

	// Header is the name of a header that all requests of the program have and no other requests;
	// "" for none. Requests with it need not meet the conditions.
	Header string

	// Reads are the names of other formats whose payloads the format also accepts.
	Reads []string

	// Templates make the message. They are empty if API is set.
	Templates

	// Field is the name of the form field with the JSON payload, or "".
	Field string

	// Text is the name of the payload field for a body that is not JSON. If it is
	// empty, such a body is refused.
	Text string

	// Tokens are the places where the program can put a token, besides the places of [HasToken].
	Tokens []TokenPlace

	// Scheme is the signature scheme of the program; "" for none.
	Scheme string

	// Signed means that requests must always have a signature of Scheme. It is for
	// schemes that need no secret.
	Signed bool

	// Handshake means that senders first ask with OPTIONS and the header WebHook-Request-Origin
	// whether they may post.
	Handshake bool

	// Payload returns the data for the templates. If it is nil, the data is the JSON of the body or
	// of Field, or the fields of a form or of the query string.
	Payload func(r *Request) (any, error)

	// API reads requests and writes answers, for a program whose clients expect answers in its own
	// format. nil means that the format has templates.
	API *API

	// Files means that forms of the program can have images as files.
	Files bool

	// MaxFiles is how many files the program may send in one message if the operator sets no limit;
	// 0 for the default.
	MaxFiles int

	conditions []condition             // parsed from Has
	header     string                  // Header as http.Header has it
	builtin    func() (*Source, error) // see [Builtin]
}

// HasImages reports whether a message of the format can have images.
func (f *Format) HasImages() bool {
	return f.Images != "" || f.Files || f.API != nil && f.API.Images
}

// Templates are the templates of a message, as texts.
type Templates struct {
	Title  string
	Body   string
	Type   string // a type, or a common word of alerting
	Tag    string // preferred tags of the message, separated by commas or spaces
	Format string // format of the body; default text
	Skip   string // "true" if there is nothing to send

	// Incident is the text that identifies what the message is about. All messages about one alert
	// must have the same text.
	Incident string

	// Alerts are the identifiers of the open alerts of a group, separated by white space. A new one
	// among them is a new state of the incident.
	Alerts string

	// Partial is not empty if the payload leaves out alerts of a group. It then says nothing about
	// the alerts that it leaves out, so it does not resolve the incident; the next complete payload
	// does.
	Partial string

	Images string // addresses of images, one per line
}

// IsAPI reports whether the format is an API. Clients of an API expect an answer in
// its format.
func (f *Format) IsAPI() bool { return f.API != nil }

// HasAlerts reports whether the format is the API of an incident tool, whose clients open and close
// alerts by name.
func (f *Format) HasAlerts() bool { return f.API != nil && f.API.Alerts }

// formats are the built-in formats by name. The init functions of package programs register
// them.
var formats = map[string]*Format{}

// Register adds a built-in format, which every site has under f.Name. Call it in an init function.
// It panics if the name is taken.
func Register(f Format) {
	if formats[f.Name] != nil {
		panic("source: " + f.Name + " is registered twice")
	}
	f.conditions, f.header = parseHas(f.Has), http.CanonicalHeaderKey(f.Header)
	f.builtin = sync.OnceValues(func() (*Source, error) { return New(Config{Name: f.Name}) })
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
