// Package failure keeps back the answers to requests that failed, so that somebody else can write
// them.
package failure

import "net/http"

// Writer is a writer that keeps back an answer with an error status: its status is in Status, and
// its body is dropped. Any other answer is written as it is.
type Writer struct {
	http.ResponseWriter
	Status int // 400 or more if the answer was kept back, or else 0

	written bool
}

// WriteHeader implements http.ResponseWriter.
func (w *Writer) WriteHeader(status int) {
	switch {
	case w.Status != 0:
	case status < http.StatusBadRequest || w.written:
		w.written = w.written || status >= http.StatusOK
		w.ResponseWriter.WriteHeader(status)
	default:
		w.Status = status
		for _, about := range bodyHeaders {
			w.Header().Del(about)
		}
	}
}

// bodyHeaders are about a body. What says what the client may do next stays: Allow, Retry-After,
// WWW-Authenticate, and Cache-Control.
var bodyHeaders = [...]string{"Content-Type", "Content-Length", "Content-Encoding", "Content-Security-Policy", "Etag", "Last-Modified"}

// Write implements http.ResponseWriter.
func (w *Writer) Write(p []byte) (int, error) {
	if w.Status != 0 {
		return len(p), nil
	}
	w.written = true
	return w.ResponseWriter.Write(p)
}

// FlushError flushes what was written, for http.ResponseController. It must not write the header of an
// answer that is kept back.
func (w *Writer) FlushError() error {
	if w.Status != 0 {
		return nil
	}
	w.written = true
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap returns the writer for http.ResponseController.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
