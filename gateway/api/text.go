package api

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/internal/charset"
	"github.com/caddy-notify/caddy-notify/notifier/memory"
)

// textReader reads the texts of a request and counts the memory that they take.
type textReader struct {
	limits  *message.Limits
	size    int64 // of all texts
	counted int64 // part of them that limits.Memory counts
	doubt   charset.Doubt
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

// readText reads the body of r, which must have at most MaxBody bytes, as UTF-8. The caller
// returns the buffer with putBuffer.
func (t *textReader) readText(w http.ResponseWriter, r *http.Request) (*bytes.Buffer, error) {
	b, err := t.readBytes(w, r)
	if err != nil {
		return nil, err
	}
	return t.decode(b, charset.OfType(r.Header.Get("Content-Type")))
}

// decode converts a text from the charset that its sender has declared to UTF-8. If the result is
// not b, decode returns b with putBuffer.
func (t *textReader) decode(b *bytes.Buffer, declared string) (*bytes.Buffer, error) {
	text, doubt := charset.Decode(b.Bytes(), declared)
	if doubt.Guessed && !charset.IsText(b.Bytes(), declared) {
		putBuffer(b)
		return nil, errNoText
	}
	t.note(doubt)
	if more := len(text) - b.Len(); more > 0 {
		if err := t.countText(more); err != nil {
			putBuffer(b)
			return nil, err
		}
	}
	if len(text) == b.Len() && (len(text) == 0 || &text[0] == &b.Bytes()[0]) {
		return b, nil
	}
	decoded := bytes.NewBuffer(bytes.Clone(text)) // a text without its byte order mark is a part of b
	putBuffer(b)
	return decoded, nil
}

// errNoText is returned for content other than text, such as a picture.
var errNoText = badRequest("the text is a file; send a file as a part of a multipart form, or in base64 as attach")

// header returns the text of a header.
func (t *textReader) header(value string) string {
	text, doubt := charset.DecodeHeader(value)
	t.note(doubt)
	return strings.TrimSpace(text)
}

// note records a doubt about the charset of a text, for a warning.
func (t *textReader) note(d charset.Doubt) { t.doubt = t.doubt.Or(d) }

// readBytes reads the body of r, which must have at most MaxBody bytes. The
// caller returns the buffer with putBuffer.
func (t *textReader) readBytes(w http.ResponseWriter, r *http.Request) (*bytes.Buffer, error) {
	max := t.limits.MaxBody
	if r.ContentLength > max {
		return nil, BodyError(&http.MaxBytesError{Limit: max})
	}
	body, size := io.Reader(r.Body), r.ContentLength // at which the server ends the body
	if size < 0 {
		body, size = http.MaxBytesReader(w, r.Body, max), max
	}
	b, err := t.readBuffer(body, size)
	if err != nil {
		if _, ok := errors.AsType[*Error](err); ok {
			return nil, err
		}
		return nil, BodyError(err)
	}
	_ = r.Body.Close() // it has ended; so net/http does not look for the rest of it
	return b, nil
}

// readBuffer reads r to its end, which is expected within max bytes. The error is from r, or an
// [*Error] if there is no memory for the text. The caller returns the buffer with putBuffer.
func (t *textReader) readBuffer(r io.Reader, max int64) (*bytes.Buffer, error) {
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
		if e := t.countText(n); e != nil {
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

// bufferSize returns the size of the buffer that replaces a full one of n bytes, for a text of up
// to limit bytes. Memory for a long text is only allocated as the text arrives, because
// Content-Length is only the client's claim.
func bufferSize(n, limit int64) int64 {
	size := max(2*n, memory.SmallText)
	// Reading up to io.EOF needs room for one more read.
	return min(size, max(limit, n)+bytes.MinRead)
}

// countText counts n bytes of text that have arrived.
func (t *textReader) countText(n int) error {
	t.size += int64(n)
	more := message.TextCopies*max(t.size-memory.SmallText, 0) - t.counted
	if more <= 0 {
		return nil
	}
	if !t.limits.Memory.Take(more) {
		return errNoMemory(t.limits.Memory.Max())
	}
	t.counted += more
	return nil
}
