package api

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/charset"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

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
	media, params, err := mime.ParseMediaType(x.r.Header.Get("Content-Type"))
	switch {
	case x.r.Header.Get("Content-Type") == "":
		return x.readUntypedBody()
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

var errMediaType = Errorf(http.StatusUnsupportedMediaType, "the header Content-Type must be application/json, application/x-www-form-urlencoded, multipart/form-data, text/plain, text/markdown or text/html, and the body must be in that format; application/xml is for what an xml:// URL sends")

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
