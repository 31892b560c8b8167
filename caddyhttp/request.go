package caddyhttp

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// request is what a client has sent, with its mapping applied.
type request struct {
	rules *rules
	spool *notifier.Spool
	query map[string][]string // title, type, format, tag and tags of the query string
	payload
	sources []source // of attachments, which message reads
}

// payload is what the body of a request holds.
type payload struct {
	fields   map[string]field
	raw      *bytes.Buffer // of which the fields are parts; nil where they are not
	files    []*notifier.Attachment
	likeJSON bool // it came as a form, but begins as JSON does
}

// The fields of a payload that mean something. All others are ignored.
const (
	fieldURLs   = "urls"
	fieldBody   = "body"
	fieldTitle  = "title"
	fieldType   = "type"
	fieldFormat = "format"
)

var (
	tagFields    = []string{"tag", "tags"}
	attachFields = []string{"attach", "attachment", "attachments"}
)

func isField(name string) bool {
	switch name {
	case fieldURLs, fieldBody, fieldTitle, fieldType, fieldFormat, "tag", "tags", "attach", "attachment", "attachments":
		return true
	}
	return false
}

// maxFields is how many fields a payload may have, known or not.
const maxFields = 1000

// readRequest reads a request to its end. Files go to the spool.
func readRequest(w http.ResponseWriter, r *http.Request, rules *rules, spool *notifier.Spool) (*request, error) {
	pairs, err := parsePairs(r.URL.RawQuery)
	if err != nil {
		return nil, badRequest("the query string: %w", err)
	}
	q := &request{rules: rules, spool: spool}
	var mappings []mapping
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
		case fieldTitle, fieldType, fieldFormat, "tag", "tags":
			if q.query == nil {
				q.query = map[string][]string{}
			}
			q.query[p.name] = append(q.query[p.name], p.value)
		}
	}
	if q.payload, err = readPayload(w, r, rules, spool); err != nil {
		return nil, err
	}
	if err := q.remap(mappings); err != nil {
		return nil, err
	}
	return q, nil
}

// close gives back the text of the request, of which nothing may be used any
// more. What the message holds is its own.
func (q *request) close() {
	if q.raw != nil {
		putBuffer(q.raw)
	}
	q.payload = payload{}
}

// readPayload reads the body of a request as its Content-Type says.
func readPayload(w http.ResponseWriter, r *http.Request, rules *rules, spool *notifier.Spool) (payload, error) {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return payload{}, nil
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return payload{}, refuse(http.StatusUnsupportedMediaType, "the body of a request must not be compressed (Content-Encoding)")
	}
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err != nil && media == "": // a malformed parameter does not hide the type
	case isJSON(media):
		text, err := readText(w, r, rules.maxBody)
		if err != nil || len(text.Bytes()) == 0 {
			return payload{}, err
		}
		fields, err := readJSON(text.Bytes())
		return payload{fields: fields, raw: text}, err
	case media == "application/x-www-form-urlencoded":
		text, err := readText(w, r, rules.maxBody)
		if err != nil {
			return payload{}, err
		}
		defer putBuffer(text)
		fields, err := readForm(text.String())
		return payload{fields: fields, likeJSON: likeJSON(text.Bytes())}, err
	case media == "multipart/form-data":
		return readMultipart(w, r, params["boundary"], rules, spool)
	}
	if n, err := io.ReadFull(r.Body, make([]byte, 1)); n == 0 && err == io.EOF {
		return payload{}, nil // sent in chunks, of which there were none
	}
	return payload{}, refuse(http.StatusUnsupportedMediaType, "the body must be application/json, application/x-www-form-urlencoded or multipart/form-data, and the header Content-Type must say which")
}

// isJSON says whether a media type is JSON, in its own name, the names that
// are about or a name that ends so (RFC 6839).
func isJSON(media string) bool {
	switch media {
	case "application/json", "text/json", "application/x-json", "text/x-json":
		return true
	}
	return strings.HasSuffix(media, "+json")
}

// likeJSON says whether the text of a form begins as JSON does. curl -d calls
// everything a form that is not said to be something else.
func likeJSON(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) > 0 && (text[0] == '{' || text[0] == '[')
}

// buffers are for the texts of requests, of which nothing is kept.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func putBuffer(b *bytes.Buffer) {
	if b.Cap() > 64<<10 {
		return
	}
	b.Reset()
	buffers.Put(b)
}

// maxClaim is how many bytes of a body there is room for before they come.
const maxClaim = 1 << 20

// readText reads the body of a request, of at most so many bytes, which must
// be UTF-8. The buffer is to be given back.
func readText(w http.ResponseWriter, r *http.Request, most int64) (*bytes.Buffer, error) {
	if r.ContentLength > most {
		return nil, readError(&http.MaxBytesError{Limit: most})
	}
	b := buffers.Get().(*bytes.Buffer)
	if r.ContentLength > 0 {
		// MinRead more lets it see the end without growing. How much is to
		// come is no more than a claim, so a large body still has to grow.
		b.Grow(int(min(r.ContentLength, maxClaim)) + bytes.MinRead)
	}
	if _, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, most)); err != nil {
		putBuffer(b)
		return nil, readError(err)
	}
	if !utf8.Valid(b.Bytes()) {
		putBuffer(b)
		return nil, badRequest("the body is not UTF-8")
	}
	return b, nil
}
