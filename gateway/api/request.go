package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Limits are the limits of one request and of its deliveries.
type Limits struct {
	// MaxBody bounds a JSON body, including its files in base64, or an
	// urlencoded form, in bytes. In a multipart form it bounds all parts
	// together that are not files.
	MaxBody int64

	// MaxFiles bounds the number of attachments; 0 turns attachments off.
	MaxFiles int

	// MaxFileSize bounds each attachment, in bytes.
	MaxFileSize int64

	// RemoteFiles allows attachments that the gateway fetches from an address.
	RemoteFiles bool

	// FetchTimeout bounds the time in which all of them are fetched.
	FetchTimeout time.Duration

	// Egress decides which addresses they may be fetched from.
	Egress *egress.Policy

	// Client holds the limits of a message to URLs of the request; nil means no
	// limits.
	Client *notifier.Limits

	// Memory counts the memory that the request holds. Close frees it. The zero
	// Allocation has no limit.
	Memory notifier.Allocation
}

// MinMemory returns the minimum memory limit for all requests together, in
// bytes. It has room for the longest text of one request.
func (l Limits) MinMemory() int64 {
	const shares = 2 // clients' URLs have half of the memory
	if l.MaxBody > math.MaxInt64/(shares*textCopies) {
		return math.MaxInt64
	}
	return shares * textCopies * l.MaxBody
}

// Request is a request to send one message, with its mappings applied. It owns
// everything that the request allocates until Close.
type Request struct {
	limits   Limits
	began    time.Time // when the request came in
	spool    notifier.Spool
	query    map[string][]string // title, type, format, incident, tag and tags of the query string
	content                      // of the body
	fileRefs []fileRef           // files that fields name; Message reads them
	images   []fileRef           // left out if they cannot be fetched
	payload  payload             // of a request in another format
	warnings []string            // for the report
	opened   []notifier.Target   // destinations made from the request's URLs

	textSize    int64 // of all texts
	textCounted int64 // the part of limits.Memory that they take

	unfetched   []fileRef // of fileRefs, for LinkFiles
	hasMappings bool      // the query string has mappings
}

// content is the content of the body of a request.
type content struct {
	fields   map[string]field
	raw      *bytes.Buffer // backs the JSON values in fields; nil if there are none
	files    []*notifier.Attachment
	jsonForm bool // the body was sent as a form but begins like JSON
	foreign  bool // the title or the body is that of another program's payload
	dialect  markup.Dialect

	acknowledge string // address of a webhook's message to acknowledge its incident
}

// The fields that the API knows. Others have no effect, and cause a warning.
const (
	fieldURLs     = "urls"
	fieldBody     = "body"
	fieldTitle    = "title"
	fieldType     = "type"
	fieldFormat   = "format"
	fieldIncident = "incident"
)

// Fields with several names.
var (
	tagFields    = []string{"tag", "tags"}
	attachFields = []string{"attach", "attachment", "attachments"}
)

// fieldNames are the names of all fields that the API knows.
var fieldNames = slices.Concat([]string{fieldURLs, fieldBody, fieldTitle, fieldType, fieldFormat, fieldIncident}, tagFields, attachFields)

func isField(name string) bool { return slices.Contains(fieldNames, name) }

// maxFields bounds the fields of a request, known or not.
const maxFields = 1000

// Read reads the query string and the body of r. Files of a multipart form are
// kept in memory up to 1 MiB each, if there is room, and otherwise in temporary
// files. If the request is malformed or exceeds a limit, or if there is no room
// for it, Read returns an [*Error].
func Read(w http.ResponseWriter, r *http.Request, l Limits) (*Request, error) {
	q := newRequest(l)
	if err := q.read(w, r); err != nil {
		q.Close()
		return nil, err
	}
	return q, nil
}

func newRequest(l Limits) *Request {
	q := &Request{limits: l, began: time.Now(), spool: notifier.Spool{MaxSize: l.MaxFileSize, MaxCount: l.MaxFiles}}
	q.spool.Memory = q.Memory()
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
	_ = q.spool.Close() // it returns no error
	q.limits.Memory.Close()
}

// Memory returns what the request holds in memory.
func (q *Request) Memory() *notifier.Allocation { return &q.limits.Memory }

// Distrust counts what the request holds as that of a client's message with URLs. If there
// is no room for it, Distrust returns an [*Error].
func (q *Request) Distrust() error {
	if !q.limits.Memory.Distrust() {
		return errNoMemory(q.limits.Memory.Max())
	}
	return nil
}

// releaseText drops the fields of the request, which can take as much memory
// as the body. A message has copies of what it needs.
func (q *Request) releaseText() {
	if q.raw != nil {
		putBuffer(q.raw)
	}
	q.query, q.content, q.fileRefs = nil, content{}, nil
}

func (q *Request) read(w http.ResponseWriter, r *http.Request) error {
	mappings, err := q.readQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	if err := q.readBody(w, r); err != nil {
		return err
	}
	q.hasMappings = len(mappings) > 0
	if err := q.applyMappings(mappings); err != nil {
		return err
	}
	q.readHook()
	return nil
}

// readQuery reads the fields that the query string may set, and returns the
// mappings in it.
func (q *Request) readQuery(query string) (mappings []mapping, err error) {
	pairs, err := parsePairs(query)
	if err != nil {
		return nil, badRequest("the query string: %w", err)
	}
	for _, p := range pairs {
		if source, ok := strings.CutPrefix(p.name, ":"); ok {
			m, err := newMapping(source, p.value)
			if err != nil {
				return nil, err
			}
			if mappings = append(mappings, m); len(mappings) > maxMappings {
				return nil, badRequest("the query string has more than %d mappings", maxMappings)
			}
			continue
		}
		switch p.name {
		case fieldTitle, fieldType, fieldFormat, fieldIncident, "tag", "tags":
			if q.query == nil {
				q.query = map[string][]string{}
			}
			q.query[p.name] = append(q.query[p.name], p.value)
		}
	}
	return mappings, nil
}

// readBody reads the body in the format that Content-Type names.
func (q *Request) readBody(w http.ResponseWriter, r *http.Request) error {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return errCompressed
	}
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.Header.Get("Content-Type") == "":
		return q.readUntypedBody(w, r)
	case err != nil && media == "": // with a malformed parameter, media is still set
	case isJSON(media):
		return q.readJSONBody(w, r)
	case media == "application/xml" || media == "text/xml":
		return q.readXMLBody(w, r)
	case media == "application/x-www-form-urlencoded":
		return q.readFormBody(w, r)
	case media == "multipart/form-data":
		return q.readMultipart(w, r, params["boundary"])
	case media == "text/plain":
		return q.readPlainBody(w, r, markup.Text)
	case media == "text/markdown":
		return q.readPlainBody(w, r, markup.Markdown)
	case media == "text/html":
		return q.readPlainBody(w, r, markup.HTML)
	}
	if r.ContentLength < 0 && r.Header.Get("Expect") == "" {
		if n, err := io.ReadFull(r.Body, make([]byte, 1)); n == 0 && err == io.EOF {
			return nil // a chunked body of no chunks
		}
	}
	return errMediaType
}

var errMediaType = Errorf(http.StatusUnsupportedMediaType, "the header Content-Type must be application/json, application/x-www-form-urlencoded, multipart/form-data, text/plain, text/markdown or text/html, and the body must be in that format; application/xml is for what an xml:// URL sends")

var errCompressed = Errorf(http.StatusUnsupportedMediaType, "the body is compressed (Content-Encoding); send it uncompressed")

func (q *Request) readJSONBody(w http.ResponseWriter, r *http.Request) error {
	text, err := q.readText(w, r)
	if err != nil {
		return err
	}
	q.raw = text
	if text.Len() > 0 {
		q.fields, err = readJSON(text.Bytes())
	}
	return err
}

func (q *Request) readFormBody(w http.ResponseWriter, r *http.Request) error {
	text, err := q.readText(w, r)
	if err != nil {
		return err
	}
	defer putBuffer(text)
	if isPlain(text.Bytes()) {
		q.fields = plainFields(text.String(), markup.Text, r.Header)
		return nil
	}
	q.jsonForm = beginsLikeJSON(text.Bytes())
	q.fields, err = readForm(text.String())
	return err
}

// readPlainBody reads a body that is the message itself, written in format.
func (q *Request) readPlainBody(w http.ResponseWriter, r *http.Request, format markup.Format) error {
	text, err := q.readText(w, r)
	if err != nil {
		return err
	}
	defer putBuffer(text)
	q.fields = plainFields(text.String(), format, r.Header)
	return nil
}

// readUntypedBody reads a body without Content-Type: the message itself, as HTML if
// it begins with an element of HTML.
func (q *Request) readUntypedBody(w http.ResponseWriter, r *http.Request) error {
	text, err := q.readText(w, r)
	if err != nil {
		return err
	}
	defer putBuffer(text)
	format := markup.Text
	if strings.HasPrefix(http.DetectContentType(text.Bytes()), "text/html") {
		format = markup.HTML
	}
	if beginsLikeJSON(text.Bytes()) && json.Valid(text.Bytes()) {
		q.warn("The request has no Content-Type, so its JSON is the text of the message; add the header Content-Type: application/json")
	}
	q.fields = plainFields(text.String(), format, r.Header)
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

// buffers holds buffers for the text of requests.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxPooledBuffer bounds the buffers that the pool keeps, in bytes.
const maxPooledBuffer = 64 << 10

func putBuffer(b *bytes.Buffer) {
	if b.Cap() > maxPooledBuffer {
		return
	}
	b.Reset()
	buffers.Put(b)
}

// readText reads the body of r, which must be UTF-8 and have at most MaxBody
// bytes. The caller returns the buffer with putBuffer.
func (q *Request) readText(w http.ResponseWriter, r *http.Request) (*bytes.Buffer, error) {
	b, err := q.readBytes(w, r)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(b.Bytes()) {
		putBuffer(b)
		return nil, badRequest("the body is not UTF-8; encode it as UTF-8")
	}
	return b, nil
}

// readBytes reads the body of r, which must have at most MaxBody bytes. The
// caller returns the buffer with putBuffer.
func (q *Request) readBytes(w http.ResponseWriter, r *http.Request) (*bytes.Buffer, error) {
	max := q.limits.MaxBody
	if r.ContentLength > max {
		return nil, BodyError(&http.MaxBytesError{Limit: max})
	}
	size := max
	if r.ContentLength > 0 {
		size = r.ContentLength
	}
	b, err := q.readBuffer(http.MaxBytesReader(w, r.Body, max), size)
	if err != nil {
		if _, ok := errors.AsType[*Error](err); ok {
			return nil, err
		}
		return nil, BodyError(err)
	}
	return b, nil
}

// readBuffer reads r to its end, which is expected within max bytes. The error
// is that of r, or an [*Error] if there is no memory for the text. The caller
// returns the buffer with putBuffer.
func (q *Request) readBuffer(r io.Reader, max int64) (*bytes.Buffer, error) {
	b := buffers.Get().(*bytes.Buffer)
	for {
		if b.Available() == 0 {
			size := bufferSize(int64(b.Cap()), max)
			larger := bytes.NewBuffer(append(make([]byte, 0, size), b.Bytes()...))
			putBuffer(b)
			b = larger
		}
		room := b.AvailableBuffer()
		n, err := r.Read(room[:cap(room)])
		b.Write(room[:n])
		if e := q.countText(n); e != nil {
			putBuffer(b)
			return nil, e
		}
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			putBuffer(b)
			return nil, err
		}
	}
}

// bufferSize returns the size of the buffer that replaces a full one of n bytes,
// for a text of up to limit bytes. Memory for a long text is only allocated as
// the text arrives, because the Content-Length is a claim of the client.
func bufferSize(n, limit int64) int64 {
	size := max(2*n, notifier.SmallText)
	// Reading to the end needs room beyond it.
	return min(size, max(limit, n)+bytes.MinRead)
}

// textCopies is the number of copies of a text in memory: as it arrives,
// decoded, and, for the first delivery, as part of its request and while that
// is encoded.
const textCopies = 4

// countText counts n bytes of text that have arrived.
func (q *Request) countText(n int) error {
	q.textSize += int64(n)
	more := textCopies*max(q.textSize-notifier.SmallText, 0) - q.textCounted
	if more <= 0 {
		return nil
	}
	if !q.limits.Memory.Take(more) {
		return errNoMemory(q.limits.Memory.Max())
	}
	q.textCounted += more
	return nil
}
