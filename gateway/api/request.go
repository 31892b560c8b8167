package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/internal/charset"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/memory"
	"github.com/caddy-notify/caddy-notify/notifier/spool"
	"github.com/caddy-notify/caddy-notify/notifier/typeword"
)

// Request is a request to send one message, with its mappings applied. It owns what the request
// allocates, until Close. Read it in this order:
//
//	Message, or Draft                title, body, type, format and incident
//	SelectTags or SelectURLs         where it goes
//	Fingerprint, FetchesFiles        what must be known before its files
//	Attachments, then LinkFiles      its files
type Request struct {
	limits   message.Limits
	content  content           // its fields
	texts    textReader        // reads its texts
	files    files             // reads its files
	payload  payload           // of a request in another format
	warnings warnings          // for the report
	leftOut  string            // what is left out of the text of a signal; "" for nothing
	lost     []string          // names of files that are left out of a signal
	opened   []notifier.Target // destinations made from the request's URLs, or with its values

	// What the request becomes. It lives as long as the request, so they are one allocation. The
	// time of the message is set first.
	message   notifier.Message
	selection message.Selection
}

// warnings are warnings for a client, in the order in which they occur.
type warnings []string

// add adds a warning.
func (w *warnings) add(format string, args ...any) { *w = append(*w, fmt.Sprintf(format, args...)) }

// Read reads the query string and the body of r. Files of a multipart form are
// kept in memory up to 1 MiB each, if there is room, and otherwise in temporary
// files. If the request is malformed or exceeds a limit, or if there is no room
// for it, Read returns an [*Error].
func Read(w http.ResponseWriter, r *http.Request, l message.Limits) (*Request, error) {
	q := newRequest(l)
	if err := (&requestReader{q, w, r}).read(); err != nil {
		q.Close()
		return nil, err
	}
	return q, nil
}

func newRequest(l message.Limits) *Request {
	q := &Request{limits: l}
	q.message.Time = time.Now()
	q.texts.limits, q.files.limits = &q.limits, &q.limits
	q.files.spool = spool.Spool{MaxSize: l.MaxFileSize, MaxCount: l.MaxFiles, Memory: q.Memory()}
	return q
}

// Close closes the destinations made from the request's URLs and removes its
// temporary files. Attachments of the message cannot be read afterwards.
// Further calls do nothing.
func (q *Request) Close() {
	for _, t := range q.opened {
		t.Close()
	}
	q.opened = nil
	q.releaseText()
	_ = q.files.spool.Close() // it returns no error
	q.limits.Memory.Close()
}

// Memory returns what the request holds in memory.
func (q *Request) Memory() *memory.Allocation { return &q.limits.Memory }

// Distrust counts the memory of the request as a client's message with URLs. If there is no room
// for it, Distrust returns an [*Error].
func (q *Request) Distrust() error {
	if !q.limits.Memory.Distrust() {
		return errNoMemory(q.limits.Memory.Max())
	}
	return nil
}

// releaseText drops the fields of the request, which can take as much memory
// as the body. A message has copies of what it needs.
func (q *Request) releaseText() {
	if q.content.raw != nil {
		putBuffer(q.content.raw)
	}
	q.content, q.files.attached, q.files.refs = content{}, nil, nil
}

// requestReader reads an HTTP request into a Request.
type requestReader struct {
	q *Request
	w http.ResponseWriter
	r *http.Request
}

// read reads the query string and the body, and applies the mappings.
func (x *requestReader) read() error {
	mappings, err := x.readQuery(x.r.URL.RawQuery)
	if err != nil {
		return err
	}
	if err := x.readBody(); err != nil {
		return err
	}
	x.q.content.mapped = len(mappings) > 0
	if err := x.q.content.applyMappings(mappings); err != nil {
		return err
	}
	x.q.content.readHook()
	if doubt := x.q.texts.doubt; doubt.Any() {
		x.q.warnings.add("%s", doubt)
	}
	return nil
}

// declared returns the charset that the request declares for its body, or "".
func (x *requestReader) declared() string { return charset.OfType(x.r.Header.Get("Content-Type")) }

// readQuery reads the fields that the query string may set, and returns the
// mappings in it.
func (x *requestReader) readQuery(query string) (mappings []mapping, err error) {
	if query == "" {
		return nil, nil
	}
	pairs, doubt, ok := charset.ReadForm([]byte(query), "", maxFields)
	if !ok {
		return nil, badRequest("the query string: more than %d fields", maxFields)
	}
	x.q.texts.note(doubt)
	for _, p := range pairs {
		if source, ok := strings.CutPrefix(p.Name, ":"); ok {
			m, err := newMapping(source, p.Value)
			if err != nil {
				return nil, err
			}
			if mappings = append(mappings, m); len(mappings) > maxMappings {
				return nil, badRequest("the query string has more than %d mappings", maxMappings)
			}
			continue
		}
		switch p.Name {
		case fieldTitle, fieldType, fieldFormat, fieldIncident, fieldSendAt, "tag", "tags":
			if x.q.content.query == nil {
				x.q.content.query = map[string][]string{}
			}
			x.q.content.query[p.Name] = append(x.q.content.query[p.Name], p.Value)
		}
	}
	return mappings, nil
}

// readBody reads the body in the format that Content-Type names.
func (x *requestReader) readBody() error {
	if x.r.Body == nil || x.r.Body == http.NoBody || x.r.ContentLength == 0 {
		return nil
	}
	if encoding := x.r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return errCompressed
	}
	contentType := x.r.Header.Get("Content-Type")
	switch {
	case contentType == "":
		return x.readUntypedBody()
	case isJSON(contentType):
		return x.readJSONBody()
	}
	media, params, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil && media == "": // with a malformed parameter, media is still set
	case isJSON(media):
		return x.readJSONBody()
	case media == "application/xml" || media == "text/xml":
		return x.readXMLBody()
	case media == "application/x-www-form-urlencoded":
		return x.readFormBody()
	case media == "multipart/form-data":
		return x.readMultipart(params["boundary"])
	case media == "text/plain":
		return x.readPlainBody(markup.Text)
	case media == "text/markdown":
		return x.readPlainBody(markup.Markdown)
	case media == "text/html":
		return x.readPlainBody(markup.HTML)
	}
	if x.r.ContentLength < 0 && x.r.Header.Get("Expect") == "" {
		if n, err := io.ReadFull(x.r.Body, make([]byte, 1)); n == 0 && err == io.EOF {
			return nil // a chunked body of no chunks
		}
	}
	return errMediaType
}

var errMediaType = Errorf(http.StatusUnsupportedMediaType,
	"the header Content-Type must be application/json, application/x-www-form-urlencoded, multipart/form-data, text/plain, text/markdown "+
		"or text/html, and the body must be in that format; application/xml is for what an xml:// URL sends")

var errCompressed = Errorf(http.StatusUnsupportedMediaType, "the body is compressed (Content-Encoding); send it uncompressed")

func (x *requestReader) readJSONBody() error {
	text, err := x.q.texts.readText(x.w, x.r)
	if err != nil {
		return err
	}
	x.q.content.raw = text
	if text.Len() > 0 {
		x.q.content.fields, err = readJSON(text.Bytes())
	}
	return err
}

func (x *requestReader) readFormBody() error {
	text, err := x.q.texts.readBytes(x.w, x.r)
	if err != nil {
		return err
	}
	wide := charset.IsWide(text.Bytes(), x.declared())
	if wide || isPlain(text.Bytes()) {
		if text, err = x.q.texts.decode(text, x.declared()); err != nil {
			return err
		}
	}
	defer putBuffer(text)
	if isPlain(text.Bytes()) {
		x.readPlain(text, markup.Text)
		return nil
	}
	x.q.content.jsonForm = beginsLikeJSON(text.Bytes())
	return x.readForm(text, wide)
}

// readPlainBody reads a body that is the message itself, written in format.
func (x *requestReader) readPlainBody(format markup.Format) error {
	text, err := x.q.texts.readBytes(x.w, x.r)
	if err != nil {
		return err
	}
	declared := x.declared()
	if declared == "" && format == markup.HTML {
		declared = charset.OfHTML(text.Bytes())
	}
	if text, err = x.q.texts.decode(text, declared); err != nil {
		return err
	}
	defer putBuffer(text)
	x.readPlain(text, format)
	return nil
}

// readUntypedBody reads a body without Content-Type: the message itself, as HTML if
// it begins with an element of HTML.
func (x *requestReader) readUntypedBody() error {
	text, err := x.q.texts.readText(x.w, x.r)
	if err != nil {
		return err
	}
	defer putBuffer(text)
	format := markup.Text
	if strings.HasPrefix(http.DetectContentType(text.Bytes()), "text/html") {
		format = markup.HTML
	}
	if beginsLikeJSON(text.Bytes()) && json.Valid(text.Bytes()) {
		x.q.warnings.add("The request has no Content-Type, so its JSON is the text of the message; add the header Content-Type: application/json")
	}
	x.readPlain(text, format)
	return nil
}

// isJSON reports whether a media type is JSON: application/json, an older name
// of it, or a type with the suffix +json (RFC 6839, section 3.1).
func isJSON(media string) bool {
	switch media {
	case "application/json", "text/json", "application/x-json", "text/x-json":
		return true
	}
	return strings.HasSuffix(media, "+json")
}

// beginsLikeJSON reports whether text begins with an object or array. Without
// a Content-Type, curl -d sends JSON as a form.
func beginsLikeJSON(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) > 0 && (text[0] == '{' || text[0] == '[')
}

// readForm reads an urlencoded form. decoded reports whether it has been decoded as a whole.
func (x *requestReader) readForm(text *bytes.Buffer, decoded bool) error {
	declared := x.declared()
	if decoded {
		declared = ""
	}
	pairs, doubt, ok := charset.ReadForm(text.Bytes(), declared, maxFields)
	if !ok {
		return badRequest("the form: more than %d fields", maxFields)
	}
	x.q.texts.note(doubt)
	x.q.content.fields = make(map[string]field, len(pairs))
	for _, p := range pairs {
		x.q.content.fields[p.Name] = field{texts: append(x.q.content.fields[p.Name].texts, p.Value)}
	}
	delete(x.q.content.fields, charset.CharsetField)
	return nil
}

// isPlain reports whether an urlencoded body is a plain text, as curl -d "backup
// done" sends it: it has no equals sign and is not JSON.
func isPlain(text []byte) bool {
	return len(bytes.TrimSpace(text)) > 0 && bytes.IndexByte(text, '=') < 0 && (!beginsLikeJSON(text) || !json.Valid(text))
}

// plainHeaders are the headers that set fields of a message whose body is its text. A later header
// takes precedence over an earlier one for the same field.
//
// Apprise API has X-Apprise-Title and similar headers since 2.0.2, according to its release notes.
// The names follow its other headers; no document that lists them was found.
var plainHeaders = []struct{ header, name string }{
	{"Subject", fieldTitle},
	{"Title", fieldTitle},
	{"X-Apprise-Title", fieldTitle},
	{"Priority", fieldType},
	{"X-Apprise-Type", fieldType},
	{"Tags", "tag"},
	{"X-Apprise-Tag", "tag"},
	{"X-Apprise-Format", fieldFormat},
	{"Incident", fieldIncident},
}

// readPlain sets the fields of a request whose body is the message itself. The headers Title, Tags
// and Priority, as ntfy names them, set title, tag and type, and Incident sets incident. Subject,
// which Kopia sends, is another name of Title. If the body is not plain text, its format takes
// precedence over a header or the query string.
func (x *requestReader) readPlain(text *bytes.Buffer, format markup.Format) {
	fields := map[string]field{fieldBody: {texts: []string{text.String()}}}
	for _, f := range plainHeaders {
		value := x.q.texts.header(x.r.Header.Get(f.header))
		if value == "" {
			continue
		}
		if f.name == fieldType {
			if t, ok := typeword.TypeOfPriority(value); ok && !typeword.IsAcknowledgement(value) {
				value = string(t)
			}
		}
		fields[f.name] = field{texts: []string{value}, mapped: true}
	}
	if format != markup.Text {
		fields[fieldFormat] = field{texts: []string{string(format)}}
	}
	x.q.content.fields = fields
}
