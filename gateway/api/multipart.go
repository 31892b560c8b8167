package api

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/caddy-notify/caddy-notify/gateway/mail"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/internal/charset"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// maxParts bounds the parts of a multipart form.
const maxParts = 1000

// payloadPart is the name of the part that may hold the fields as JSON.
const payloadPart = "payload"

// readMultipart reads a multipart form (RFC 7578) as it arrives. Each part with a file name is an
// attachment, under any name. A part payload of the type application/json holds fields, which take
// precedence over parts of the same name.
func (x *requestReader) readMultipart(boundary string) error {
	if boundary == "" {
		return badRequest("the header Content-Type: multipart/form-data has no boundary; let the HTTP client set the header")
	}
	max := maxMultipart(&x.q.limits)
	if x.r.ContentLength > max {
		return BodyError(&http.MaxBytesError{Limit: max})
	}
	x.q.content.fields = map[string]field{}
	f := &multipartReader{request: x.q, remaining: x.q.limits.MaxBody, declared: x.declared()}
	parts := multipart.NewReader(http.MaxBytesReader(x.w, x.r.Body, max), boundary)
	for n := 0; ; n++ {
		part, err := parts.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return multipartError(err)
		}
		if n == maxParts {
			return badRequest("the form has more than %d parts", maxParts)
		}
		if err := f.read(part); err != nil {
			return err
		}
	}
	for name, value := range f.payload {
		if !value.absent() {
			x.q.content.fields[name] = value
		}
	}
	return nil
}

// maxMultipart returns how many bytes a multipart request may have: texts, files, and the headers
// and boundaries of parts.
func maxMultipart(l *message.Limits) int64 {
	const perPart = 1 << 10
	n := int64(l.MaxFiles)
	if n > 0 && l.MaxFileSize > (math.MaxInt64-l.MaxBody-maxParts*perPart)/n {
		return math.MaxInt64
	}
	return l.MaxFileSize*n + l.MaxBody + maxParts*perPart
}

// multipartReader reads the parts of a form into a request.
type multipartReader struct {
	request   *Request
	remaining int64            // bytes of text that may still come
	payload   map[string]field // fields of the part payload
	declared  string           // charset of the texts that do not declare one
}

func (f *multipartReader) read(part *multipart.Part) error {
	name, file := f.names(part)
	media, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
	isPayload := name == payloadPart && isJSON(media) && !f.request.payload.multipart
	if (file != "" || isMedia(media) && (!isField(name) || slices.Contains(attachFields, name))) && !isPayload {
		content := bufio.NewReader(part)
		if _, err := content.Peek(1); err == io.EOF && file == "" {
			return nil // an input of a page that is not used
		}
		a, err := f.request.files.read(printable(file)+" of the form", file, part.Header.Get("Content-Type"), content)
		if err != nil {
			return err
		}
		f.request.files.attached = append(f.request.files.attached, a)
		return nil
	}
	text, err := f.text(part)
	if err != nil {
		return err
	}
	if isPayload {
		if f.payload != nil {
			return badRequest("the form has more than one part payload; send all fields in one")
		}
		f.payload, err = readJSON([]byte(text))
		return err
	}
	if name == charset.CharsetField {
		f.declared = strings.TrimSpace(text)
		return nil
	}
	fields := f.request.content.fields
	fields[name] = field{texts: append(fields[name].texts, text)}
	return nil
}

// names returns the field name and the file name of a part. mime/multipart does not decode a file
// name in a charset other than UTF-8 (RFC 2231).
func (f *multipartReader) names(part *multipart.Part) (name, file string) {
	if file = part.FileName(); file == "" {
		_, params := mail.ParseParameters(part.Header.Get("Content-Disposition"))
		file = params["filename"]
	}
	return f.request.texts.header(part.FormName()), f.request.texts.header(file)
}

// isMedia reports whether a part of the media type is a file even if it has no file name.
func isMedia(media string) bool {
	kind, _, _ := strings.Cut(media, "/")
	return kind == "image" || kind == "audio" || kind == "video" || media == "application/pdf" || media == "application/octet-stream"
}

// maxPrintedName bounds the name of a file in an error, in bytes.
const maxPrintedName = 100

// printable returns the name of a file for an error text, without control
// characters.
func printable(file string) string {
	file = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control) {
			return -1
		}
		return r
	}, file)
	return markup.TruncateBytes(file, maxPrintedName)
}

// text reads a part that is not a file.
func (f *multipartReader) text(part *multipart.Part) (string, error) {
	b, err := f.request.texts.readBuffer(io.LimitReader(part, f.remaining+1), f.remaining+1)
	if err != nil {
		if _, ok := errors.AsType[*Error](err); ok {
			return "", err
		}
		return "", multipartError(err)
	}
	if f.remaining -= int64(b.Len()); f.remaining < 0 {
		putBuffer(b)
		return "", BodyError(&http.MaxBytesError{Limit: f.request.limits.MaxBody})
	}
	if b, err = f.request.texts.decode(b, cmp.Or(charset.OfType(part.Header.Get("Content-Type")), f.declared)); err != nil {
		return "", err
	}
	defer putBuffer(b)
	return b.String(), nil
}

// multipartError returns the error for a form whose reading ended with err.
func multipartError(err error) error {
	if e := BodyError(err); e.Status != http.StatusBadRequest {
		return e
	}
	if errors.Is(err, multipart.ErrMessageTooLarge) {
		return Errorf(http.StatusRequestEntityTooLarge, "a part of the form has too many headers")
	}
	return badRequest("the multipart form is malformed or ends before its last boundary")
}
