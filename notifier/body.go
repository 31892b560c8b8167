package notifier

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
)

// Body is the body of a request: its type, and its bytes, which can be read
// again for a second try. Files within it are read from where they are, as
// the request is sent.
type Body struct {
	ContentType string

	size     int64
	segments []segment
	err      error // kept until the request is sent, so that building one stays an expression
}

// segment is a run of bytes, or a file.
type segment struct {
	bytes []byte
	file  *Attachment
	code  encoding
}

// encoding is how a file stands in a body.
type encoding int

const (
	asItIs     encoding = iota
	inBase64            // in one line
	inLines             // in base64, in lines of 76 characters (RFC 2045, section 6.8)
	inFormData          // in base64, escaped as in forms
)

func (s segment) open() io.Reader {
	if s.file == nil {
		return bytes.NewReader(s.bytes)
	}
	switch s.code {
	case inBase64:
		return &base64Reader{r: s.file.Open()}
	case inLines:
		return &lineReader{r: &base64Reader{r: s.file.Open()}}
	case inFormData:
		return &formReader{r: &base64Reader{r: s.file.Open()}}
	}
	return s.file.Open()
}

func (b *Body) add(data []byte) {
	b.size += int64(len(data))
	b.segments = append(b.segments, segment{bytes: data})
}

func (b *Body) addFile(a *Attachment, code encoding) {
	s := segment{file: a, code: code}
	size := a.Size
	switch code {
	case inBase64:
		size = base64Size(a.Size)
	case inLines:
		size = base64Size(a.Size)
		size += max(size-1, 0) / lineLength * 2
	case inFormData:
		// Only the content says how much of it has to be escaped.
		var err error
		if size, err = io.Copy(io.Discard, s.open()); err != nil {
			b.err = fmt.Errorf("reading attachment: %w", err)
		}
	}
	b.size += size
	b.segments = append(b.segments, s)
}

// Size is the length of the body in bytes.
func (b *Body) Size() int64 { return b.size }

func (b *Body) open() io.ReadCloser {
	if len(b.segments) == 1 && b.segments[0].file == nil {
		return io.NopCloser(bytes.NewReader(b.segments[0].bytes))
	}
	readers := make([]io.Reader, len(b.segments))
	for i, s := range b.segments {
		readers[i] = s.open()
	}
	return io.NopCloser(io.MultiReader(readers...))
}

// WriteTo writes the body as it goes over the wire, as often as it is called.
func (b *Body) WriteTo(w io.Writer) (int64, error) {
	if b.err != nil {
		return 0, b.err
	}
	return io.Copy(w, b.open())
}

// Bytes is a body of any type.
func Bytes(contentType string, data []byte) *Body {
	b := &Body{ContentType: contentType}
	b.add(data)
	return b
}

// File is a body that is the file itself. An empty content type stands for
// the file's.
func File(contentType string, a *Attachment) *Body {
	if contentType == "" {
		contentType = a.ContentType
	}
	b := &Body{ContentType: contentType}
	b.addFile(a, asItIs)
	return b
}

// JSON is v as JSON, with neither <, > nor & escaped. A value made by
// [Base64] within v becomes the file's encoding, provided that the file is
// among files.
func JSON(v any, files ...*Attachment) *Body {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return &Body{err: fmt.Errorf("writing JSON: %w", err)}
	}
	return Splice("application/json", bytes.TrimRight(buf.Bytes(), "\n"), files...)
}

// Base64 stands for the base64 encoding of a file in a body that [JSON],
// [Splice] or [Form] makes.
func Base64(a *Attachment) string { return fmt.Sprintf("\uE000base64:%p\uE001", a) }

// Splice is a body of text in which the encoding of each of the files stands
// in the place of its [Base64].
func Splice(contentType string, text []byte, files ...*Attachment) *Body {
	b := &Body{ContentType: contentType}
	b.splice(text, files, Base64, inBase64)
	return b
}

// MIME is a body of text in which each of the files stands in the place of
// its [Base64], which is itself in base64 there. It is for mails.
func MIME(text []byte, files ...*Attachment) *Body {
	b := &Body{ContentType: "message/rfc822"}
	mark := func(a *Attachment) string { return base64.StdEncoding.EncodeToString([]byte(Base64(a))) }
	b.splice(text, files, mark, inLines)
	return b
}

// splice adds text, and in the place of each mark in it the mark's file.
func (b *Body) splice(text []byte, files []*Attachment, markOf func(*Attachment) string, code encoding) {
	for len(files) > 0 {
		at, found, mark := len(text), (*Attachment)(nil), ""
		for _, f := range files {
			m := markOf(f)
			if i := bytes.Index(text, []byte(m)); i >= 0 && i < at {
				at, found, mark = i, f, m
			}
		}
		if found == nil {
			break
		}
		b.add(text[:at])
		b.addFile(found, code)
		text = text[at+len(mark):]
	}
	b.add(text)
}

// Form is an application/x-www-form-urlencoded body. A [Base64] within v
// becomes the file's encoding, provided that the file is among files.
func Form(v url.Values, files ...*Attachment) *Body {
	b := &Body{ContentType: "application/x-www-form-urlencoded"}
	mark := func(a *Attachment) string { return url.QueryEscape(Base64(a)) }
	b.splice([]byte(v.Encode()), files, mark, inFormData)
	return b
}

// Fields makes form values of pairs of a name and a value.
func Fields(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return v
}

// FormPart of a multipart body is a field with a value, or a file.
type FormPart struct {
	Name        string
	Value       string
	File        *Attachment
	FileName    string // default: the file's name
	ContentType string // default: none for a value, the file's for a file
	NoType      bool   // the part of a file states no content type
}

// Multipart is a multipart/form-data body (RFC 7578) of parts in their order.
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
			b.addFile(p.File, asItIs)
		}
		b.add([]byte("\r\n"))
	}
	b.add([]byte("--" + boundary + "--\r\n"))
	return b
}

// quoted makes a text safe within the quotes of a header, as browsers do
// (WHATWG HTML, multipart form data).
func quoted(s string) string {
	return strings.NewReplacer("\r", "%0D", "\n", "%0A", `"`, "%22").Replace(s)
}

func singleLine(s string) string {
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(s)
}
