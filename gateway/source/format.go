package source

import (
	"maps"
	"slices"
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
	// array, a=text a field with this text, and a~text a field with this text at its beginning
	// or its end.
	//
	// A payload must meet all conditions, except those that end with ?. It belongs to the
	// format of which it meets the most; those that end with ? count half.
	Has []string

	// Header is the name of a header that all requests of the program have, and no others;
	// "" for none. Its requests need not meet the conditions.
	Header string

	// Reads are the names of other formats whose payloads the format reads as well.
	Reads []string

	// Templates make the message. They are empty if API is set.
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

	// Payload returns the data for the templates. If it is nil, the data is the JSON
	// of the body or of Field, or else the fields of a form or of the query string.
	Payload func(r *Request) (any, error)

	// API has the functions that read requests and answer them, for a program whose clients
	// expect answers in its own format. nil means that the format has templates.
	API *API

	// Files means that a form of the program can have images as files.
	Files bool

	// MaxFiles is how many files the program may send in one message where the operator sets
	// no limit; 0 for the usual number.
	MaxFiles int

	conditions []condition // of Has
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
	Format string // of the body; default text
	Skip   string // "true" if there is nothing to send

	// Incident names what the message is about. All messages about one alert have
	// the same text: choose what stays the same from the first message to the last.
	Incident string

	// Alerts are the identifiers of the alerts of a group that are open, separated by
	// white space: one that joins is a new state of the incident.
	Alerts string

	// Partial is not empty if the payload says that it leaves alerts of a group out. What it
	// says of all of them is then true only of those that it lists, so it resolves nothing:
	// the next whole payload does.
	Partial string

	Images string // addresses of images, one per line
}

// IsAPI reports whether the format is an API. Clients of an API expect an answer in
// its format.
func (f *Format) IsAPI() bool { return f.API != nil }

// HasAlerts reports whether the format is the API of an incident tool, whose clients open
// alerts and later close them by their names.
func (f *Format) HasAlerts() bool { return f.API != nil && f.API.Alerts }

// formats are the built-in formats by name. The init functions of package programs register
// them.
var formats = map[string]*Format{}

// Register makes a format a built-in one, which every site has under f.Name. Call it in an
// init function. It panics if there is a format with the name.
func Register(f Format) {
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
