package notifier

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/caddy-notify/caddy-notify/notifier/memory"
)

// Body is the body of a request. It can be read again for another attempt.
// Files in it are not loaded: they are read while the request is sent.
type Body struct {
	ContentType string

	size     int64
	segments []segment
	first    [1]segment // most bodies have one
	err      error      // returned when the request is sent, so that a body can be made in an expression

	reader bytes.Reader // for the first request with the body
	opened atomic.Bool  // reader is used
}

// Content types of bodies.
const (
	jsonType = "application/json"
	formType = "application/x-www-form-urlencoded"
)

// segment is a run of bytes, or a file.
type segment struct {
	bytes []byte
	file  *Attachment
	code  encoding
}

// encoding is how a file is written in a body.
type encoding int

const (
	encodeRaw    encoding = iota
	encodeBase64          // on one line
	encodeMIME            // base64 in lines of 76 characters (RFC 2045, section 6.8)
	encodeForm            // base64, escaped as in forms
)

func (s segment) open() io.Reader {
	if s.file == nil {
		return bytes.NewReader(s.bytes)
	}
	switch s.code {
	case encodeBase64:
		return &base64Reader{r: s.file.Open()}
	case encodeMIME:
		return &lineReader{r: &base64Reader{r: s.file.Open()}}
	case encodeForm:
		return &formReader{r: &base64Reader{r: s.file.Open()}}
	}
	return s.file.Open()
}

// add appends text, which must not contain a placeholder of [Base64].
func (b *Body) add(data []byte) {
	if b.err == nil && bytes.Contains(data, []byte(placeholderStart)) {
		b.err = errPlaceholder
	}
	b.size += int64(len(data))
	b.append(segment{bytes: data})
}

func (b *Body) addFile(a *Attachment, code encoding) {
	if a.body != nil && b.err == nil {
		b.err = a.body.err
	}
	s := segment{file: a, code: code}
	size := a.Size
	switch code {
	case encodeBase64:
		size = base64Size(a.Size)
	case encodeMIME:
		size = base64Size(a.Size)
		size += max(size-1, 0) / lineLength * 2
	case encodeForm:
		// The length depends on the content.
		var err error
		if size, err = io.Copy(io.Discard, s.open()); err != nil {
			b.err = fmt.Errorf("reading attachment: %w", err)
		}
	}
	b.size += size
	b.append(s)
}

func (b *Body) append(s segment) {
	if b.segments == nil {
		b.segments = b.first[:0]
	}
	b.segments = append(b.segments, s)
}

// Size returns the length of the body in bytes.
func (b *Body) Size() int64 { return b.size }

func (b *Body) open() io.ReadCloser {
	if len(b.segments) == 1 && b.segments[0].file == nil {
		// net/http knows that this type does not block, and sends it together
		// with the header.
		r := &b.reader
		if !b.opened.CompareAndSwap(false, true) {
			r = new(bytes.Reader)
		}
		r.Reset(b.segments[0].bytes)
		return io.NopCloser(r)
	}
	readers := make([]io.Reader, len(b.segments))
	for i, s := range b.segments {
		readers[i] = s.open()
	}
	return io.NopCloser(io.MultiReader(readers...))
}

// WriteTo writes the body as it goes over the wire. It can be called again.
func (b *Body) WriteTo(w io.Writer) (int64, error) {
	if b.err != nil {
		return 0, b.err
	}
	return io.Copy(w, b.open())
}

// Bytes returns a body of any content type.
func Bytes(contentType string, data []byte) *Body {
	b := &Body{ContentType: contentType}
	b.add(data)
	return b
}

// File returns a body that consists of the file. If contentType is empty, the
// file's is used.
func File(contentType string, a *Attachment) *Body {
	if contentType == "" {
		contentType = a.ContentType
	}
	b := &Body{ContentType: contentType}
	b.addFile(a, encodeRaw)
	return b
}

// JSON returns a body with v as JSON, in which <, > and & are not escaped. A
// string in v may be or contain the [Base64] of one of files.
func JSON(v any, files ...*Attachment) *Body {
	b := &Body{ContentType: jsonType}
	enc := json.NewEncoder((*jsonWriter)(b))
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		b.err = fmt.Errorf("writing JSON: %w", err)
		return b
	}
	b.splice(bytes.TrimSuffix(b.first[0].bytes, []byte("\n")), files, Base64, encodeBase64)
	return b
}

// jsonWriter is a body that an encoder writes its text into.
type jsonWriter Body

func (w *jsonWriter) Write(text []byte) (int, error) {
	w.first[0].bytes = append(w.first[0].bytes, text...)
	return len(text), nil
}

// Base64 returns a placeholder for the base64 encoding of a, so that a body can
// contain the file without holding it in memory. [JSON], [Form], [Splice] and
// [MIME] replace it with the encoding if a is one of their files. If a
// placeholder is left in a body, the request fails and is not sent.
func Base64(a *Attachment) string { return fmt.Sprintf("%s-%p-", placeholderStart, a) }

// placeholderStart is the beginning of each placeholder of this process. It is
// random, so that no text of a client can contain one. A placeholder is at most
// 57 bytes long, so that its own base64 encoding fits into a line of a mail.
var placeholderStart = rand.Text()

var errPlaceholder = errors.New("the body has the Base64 of a file that is not among its files (a mistake in the service)")

// Splice returns a body of text, in which files replace their [Base64].
func Splice(contentType string, text []byte, files ...*Attachment) *Body {
	b := &Body{ContentType: contentType}
	b.splice(text, files, Base64, encodeBase64)
	return b
}

// MIME returns a body with a mail, in which files replace their [Base64]. The
// placeholders are parts of the mail with the transfer encoding base64.
func MIME(text []byte, files ...*Attachment) *Body {
	b := &Body{ContentType: "message/rfc822"}
	encode := base64.StdEncoding.EncodeToString
	b.splice(text, files, func(a *Attachment) string { return encode([]byte(Base64(a))) }, encodeMIME)
	start := encode([]byte(placeholderStart[:len(placeholderStart)/3*3]))
	for _, s := range b.segments {
		if b.err == nil && bytes.Contains(s.bytes, []byte(start)) {
			b.err = errPlaceholder
		}
	}
	return b
}

// splice adds text, and in place of each placeholder its file.
func (b *Body) splice(text []byte, files []*Attachment, placeholder func(*Attachment) string, code encoding) {
	for len(files) > 0 {
		at, found, length := len(text), (*Attachment)(nil), 0
		for _, f := range files {
			p := placeholder(f)
			if i := bytes.Index(text, []byte(p)); i >= 0 && i < at {
				at, found, length = i, f, len(p)
			}
		}
		if found == nil {
			break
		}
		b.add(text[:at])
		b.addFile(found, code)
		text = text[at+length:]
	}
	b.add(text)
}

// Form returns an application/x-www-form-urlencoded body. A value in v may be
// or contain the [Base64] of one of files.
func Form(v url.Values, files ...*Attachment) *Body {
	b := &Body{ContentType: formType}
	b.splice([]byte(v.Encode()), files, func(a *Attachment) string { return url.QueryEscape(Base64(a)) }, encodeForm)
	return b
}

// Fields returns form values from pairs of a name and a value.
func Fields(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return v
}

// FormPart is a part of a multipart body: a field with a value, or a file.
type FormPart struct {
	Name        string
	Value       string
	File        *Attachment
	FileName    string // default: the file's name
	ContentType string // default: none for a value, the file's for a file
	NoType      bool   // a file's part has no Content-Type
}

// Multipart returns a multipart/form-data body (RFC 7578) of parts in this
// order.
func Multipart(parts ...FormPart) *Body {
	boundary := rand.Text()
	b := &Body{ContentType: "multipart/form-data; boundary=" + boundary}
	for _, p := range parts {
		disposition := `form-data; name="` + quoted(p.Name) + `"`
		if p.File != nil {
			name := p.FileName
			if name == "" {
				name = p.File.Name
			}
			disposition += `; filename="` + quoted(name) + `"`
			if p.ContentType == "" && !p.NoType {
				p.ContentType = p.File.ContentType
			}
		}
		var head strings.Builder
		head.WriteString("--" + boundary + "\r\nContent-Disposition: " + disposition + "\r\n")
		if p.ContentType != "" {
			head.WriteString("Content-Type: " + singleLine(p.ContentType) + "\r\n")
		}
		head.WriteString("\r\n")
		if p.File == nil {
			head.WriteString(p.Value)
		}
		b.add([]byte(head.String()))
		if p.File != nil {
			b.addFile(p.File, encodeRaw)
		}
		b.add([]byte("\r\n"))
	}
	b.add([]byte("--" + boundary + "--\r\n"))
	return b
}

// quoted escapes s for a quoted string in the header of a part, as browsers do
// (WHATWG HTML, section 4.10.21.8, multipart form data).
func quoted(s string) string {
	return strings.NewReplacer("\r", "%0D", "\n", "%0A", `"`, "%22").Replace(s)
}

// singleLine returns s with spaces in place of line breaks.
func singleLine(s string) string {
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(s)
}

// sharedBodies holds equal bodies of one message once. A message with a long
// text may go to many destinations that get the same JSON.
type sharedBodies struct {
	seed maphash.Seed

	mu     sync.Mutex
	byHash map[uint64][]byte
}

func newSharedBodies() *sharedBodies {
	return &sharedBodies{seed: maphash.MakeSeed(), byHash: map[uint64][]byte{}}
}

// share replaces the long segments of b by equal ones of other bodies. A nil s
// shares nothing.
func (s *sharedBodies) share(b *Body) {
	if s == nil {
		return
	}
	for i := range b.segments {
		if data := b.segments[i].bytes; len(data) > memory.SmallText {
			b.segments[i].bytes = s.get(data)
		}
	}
}

func (s *sharedBodies) get(data []byte) []byte {
	hash := maphash.Bytes(s.seed, data)
	s.mu.Lock()
	defer s.mu.Unlock()
	if other, ok := s.byHash[hash]; ok && bytes.Equal(other, data) {
		return other
	}
	s.byHash[hash] = data
	return data
}
