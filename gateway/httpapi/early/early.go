// Package early answers before the body of a request has arrived.
package early

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// timeout bounds how long the server reads the rest of a body after an error was answered, if
// [Closing] cannot keep the connection.
const timeout = 5 * time.Second

// readByServer is the size up to which net/http reads the rest of a body so that the connection can
// be used again.
const readByServer = 256 << 10

// writer answers errors before the body of a request has arrived. Before net/http writes the answer
// to an HTTP/1 request, it reads the rest of the body, unless the connection is closed after the
// answer. So a client that sends its body slowly, or not at all, would get its 401 only when a
// timeout of the server passes.
type writer struct {
	http.ResponseWriter
	request *http.Request
	body    trackedBody // of the request
	closing *Closing
	done    bool // the header is written
}

// Writer returns a writer for the answer to r. If the answer is an error, it does not wait for the
// body. It replaces the body of r. c closes a connection on which a body is still arriving, so that
// the client gets the answer.
func Writer(w http.ResponseWriter, r *http.Request, c *Closing) http.ResponseWriter {
	if r.ProtoMajor != 1 || r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return w // HTTP/2 and 3 do not wait, and close streams
	}
	tracked := &writer{ResponseWriter: w, request: r, body: trackedBody{ReadCloser: r.Body}, closing: c}
	r.Body = &tracked.body
	return tracked
}

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	if status >= http.StatusOK && !w.done {
		w.done = true
		w.leaveBody(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (int, error) {
	if !w.done {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

// leaveBody makes the server close the connection after the answer if the body has not ended
// and the server will not read the rest.
func (w *writer) leaveBody(status int) {
	read := w.request.ContentLength >= 0 && w.request.ContentLength < readByServer
	if w.body.ended.Load() || status < http.StatusBadRequest && read {
		return
	}
	w.Header().Set("Connection", "close")
	refuseBody(w.ResponseWriter)
	deadline := time.Now()
	if !w.closing.keep(w.request) {
		deadline = deadline.Add(timeout)
	}
	// A connection that does not support deadlines keeps the server's timeouts.
	_ = http.NewResponseController(w.ResponseWriter).SetReadDeadline(deadline)
}

// refuseBody makes net/http treat the body of a request as too large, so that it first closes only
// its side of the connection, and the whole connection a moment later. Only net/http's own writer,
// which other writers wrap, can be told this, and only by a body that exceeds its limit.
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

// trackedBody is a body that records whether it was read to its end.
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
