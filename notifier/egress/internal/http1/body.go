package http1

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

var errClosed = errors.New("http: read on closed response body")

// body is the body of an answer. At its end, its connection becomes idle.
type body struct {
	io.ReadCloser // of http.ReadResponse
	conn          *conn
	ctx           context.Context // of the request
	stop          func() bool     // of context.AfterFunc for ctx
	reusable      bool            // the connection can be used again after the body
	ended         atomic.Bool     // the connection has become idle or has been closed
	closed        atomic.Bool
}

func (b *body) Read(p []byte) (int, error) {
	if b.closed.Load() {
		return 0, errClosed
	}
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil:
		return n, nil
	case err != io.EOF && b.ctx.Err() != nil:
		err = context.Cause(b.ctx)
	}
	if b.ended.CompareAndSwap(false, true) {
		b.conn.done(b.reusable && err == io.EOF, b.stop)
	}
	return n, err
}

// Close closes the connection unless the body has been read to its end. It may be
// called while Read waits for the server.
func (b *body) Close() error {
	b.closed.Store(true)
	if b.ended.CompareAndSwap(false, true) {
		b.stop()
		b.conn.close()
	}
	return nil
}

// gzipBody is a body that is uncompressed while it is read.
type gzipBody struct {
	*body
	reader *gzip.Reader
	err    error // of the last Read
}

// gzipReaders holds readers, which are large.
var gzipReaders = sync.Pool{New: func() any { return new(gzip.Reader) }}

func (b *gzipBody) Read(p []byte) (n int, err error) {
	if b.closed.Load() {
		return 0, errClosed
	}
	if b.err != nil {
		return 0, b.err
	}
	if b.reader == nil {
		reader := gzipReaders.Get().(*gzip.Reader)
		if b.err = reader.Reset(b.body); b.err != nil {
			return 0, b.err
		}
		b.reader = reader
	}
	if n, b.err = b.reader.Read(p); b.err != nil {
		gzipReaders.Put(b.reader)
		b.reader = nil
	}
	return n, b.err
}
