package api

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/notifier/memory"
)

// textReader reads the texts of a request and counts the memory that they take.
type textReader struct {
	limits  *Limits
	size    int64 // of all texts
	counted int64 // the part of limits.Memory that they take
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
func (t *textReader) readText(w http.ResponseWriter, r *http.Request) (*bytes.Buffer, error) {
	b, err := t.readBytes(w, r)
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
func (t *textReader) readBytes(w http.ResponseWriter, r *http.Request) (*bytes.Buffer, error) {
	max := t.limits.MaxBody
	if r.ContentLength > max {
		return nil, BodyError(&http.MaxBytesError{Limit: max})
	}
	size := max
	if r.ContentLength > 0 {
		size = r.ContentLength
	}
	b, err := t.readBuffer(http.MaxBytesReader(w, r.Body, max), size)
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

// bufferSize returns the size of the buffer that replaces a full one of n bytes,
// for a text of up to limit bytes. Memory for a long text is only allocated as
// the text arrives, because the Content-Length is a claim of the client.
func bufferSize(n, limit int64) int64 {
	size := max(2*n, memory.SmallText)
	// Reading to the end needs room beyond it.
	return min(size, max(limit, n)+bytes.MinRead)
}

// textCopies is the number of copies of a text in memory: as it arrives,
// decoded, and, for the first delivery, as part of its request and while that
// is encoded.
const textCopies = 4

// countText counts n bytes of text that have arrived.
func (t *textReader) countText(n int) error {
	t.size += int64(n)
	more := textCopies*max(t.size-memory.SmallText, 0) - t.counted
	if more <= 0 {
		return nil
	}
	if !t.limits.Memory.Take(more) {
		return errNoMemory(t.limits.Memory.Max())
	}
	t.counted += more
	return nil
}
