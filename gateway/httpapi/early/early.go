// Package early answers errors before the body of a request has arrived.
package early

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// timeout bounds how long the server reads what is left of a body after an error was
// answered. A client that is still sending gets the answer more surely if the server reads
// meanwhile than if it closes the connection at once.
const timeout = 5 * time.Second

// writer answers errors before the body of a request has arrived. Before net/http
// writes the answer to an HTTP/1 request, it reads what is left of the body, unless the
// connection is closed after the answer. So a client that sends no body, or sends it
// slowly, would get its 401 only when a timeout of the server passes.
type writer struct {
	http.ResponseWriter
	body *trackedBody
}

// Writer returns a writer for the answer to r that does not wait for the body if it is
// an error. It replaces the body of r.
func Writer(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	if r.ProtoMajor != 1 || r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return w // HTTP/2 and 3 do not wait
	}
	body := &trackedBody{ReadCloser: r.Body}
	r.Body = body
	return &writer{w, body}
}

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	if status >= http.StatusBadRequest && !w.body.ended.Load() {
		w.Header().Set("Connection", "close")
		refuseBody(w.ResponseWriter)
		// A connection that does not support this has the server's timeouts.
		_ = http.NewResponseController(w.ResponseWriter).SetReadDeadline(time.Now().Add(timeout))
	}
	w.ResponseWriter.WriteHeader(status)
}

// refuseBody makes net/http treat the body of a request as one that is too large. A client
// that is still sending then has time to read the answer before the connection is reset.
// Only the writer of net/http itself, which others wrap, can be told so, and only by a
// body that exceeds its limit.
func refuseBody(w http.ResponseWriter) {
	for {
		wrapped, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		w = wrapped.Unwrap()
	}
	_, _ = http.MaxBytesReader(w, io.NopCloser(strings.NewReader("x")), 0).Read(make([]byte, 1))
}

// Unwrap returns the writer for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// trackedBody is a body that knows whether it was read to its end.
type trackedBody struct {
	io.ReadCloser
	ended atomic.Bool
}

// Read implements io.Reader.
func (b *trackedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.ended.Store(true)
	}
	return n, err
}
