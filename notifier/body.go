package notifier

import (
	"bytes"
	"crypto/rand"
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
	b64   bool
}

func (b *Body) add(data []byte) {
	b.size += int64(len(data))
	b.segments = append(b.segments, segment{bytes: data})
}

func (b *Body) addFile(a *Attachment, b64 bool) {
	if b64 {
		b.size += base64Size(a.Size)
	} else {
		b.size += a.Size
	}
	b.segments = append(b.segments, segment{file: a, b64: b64})
}

// Size is the length of the body in bytes.
func (b *Body) Size() int64 { return b.size }

func (b *Body) open() io.ReadCloser {
	if len(b.segments) == 1 && b.segments[0].file == nil {
		return io.NopCloser(bytes.NewReader(b.segments[0].bytes))
	}
	readers := make([]io.Reader, len(b.segments))
	for i, s := range b.segments {
		switch {
		case s.file == nil:
			readers[i] = bytes.NewReader(s.bytes)
		case s.b64:
			readers[i] = &base64Reader{r: s.file.Open()}
		default:
			readers[i] = s.file.Open()
		}
	}
	return io.NopCloser(io.MultiReader(readers...))
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
	b.addFile(a, false)
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

// Base64 stands for the base64 encoding of a file in a body that [JSON] or
// [Splice] makes.
func Base64(a *Attachment) string { return fmt.Sprintf("\uE000base64:%p\uE001", a) }

// Splice is a body of text in which the encoding of each of the files stands
// in the place of its [Base64].
func Splice(contentType string, text []byte, files ...*Attachment) *Body {
	b := &Body{ContentType: contentType}
	for len(files) > 0 {
		at, found, mark := len(text), (*Attachment)(nil), ""
		for _, f := range files {
			m := Base64(f)
			if i := bytes.Index(text, []byte(m)); i >= 0 && i < at {
				at, found, mark = i, f, m
			}
		}
		if found == nil {
			break
		}
		b.add(text[:at])
		b.addFile(found, true)
		text = text[at+len(mark):]
	}
	b.add(text)
	return b
}

// Form is an application/x-www-form-urlencoded body.
func Form(v url.Values) *Body {
	return Bytes("application/x-www-form-urlencoded", []byte(v.Encode()))
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
			b.addFile(p.File, false)
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
