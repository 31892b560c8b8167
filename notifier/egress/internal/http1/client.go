// Package http1 sends short requests over HTTP/1.1 without TLS. It costs less than
// [http.Transport], because it needs no goroutine other than that of the caller.
//
// [CanSend] reports whether a [Client] can send a request. http.Transport must send
// all others. A Client writes the same bytes as http.Transport, accepts the same
// answers and returns errors with the same text.
package http1

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// MaxHead is the maximum length of an answer before its body, in bytes,
// including answers with a status of 1xx.
const MaxHead = 64 << 10

// Client sends requests and keeps connections open for the next ones. It
// implements [http.RoundTripper] for requests that [CanSend] accepts. Its fields
// must not change after the first request.
type Client struct {
	// Dial opens a connection to address, which is a host and a port. The
	// connection must implement [syscall.Conn] to be used for several requests.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	MaxIdle     int           // how many connections stay open without a request
	IdleTimeout time.Duration // after this time without a request, a connection is closed

	idle idleConns
}

// CloseIdle closes the connections without a request. The others are closed when
// their request ends, unless a new request begins first.
func (c *Client) CloseIdle() { c.idle.closeAll() }

// RoundTrip sends r and returns the answer, as [http.RoundTripper] says. The body
// of the answer must be read to its end and closed, or else the connection is not
// used again.
//
// A server may close an idle connection at the moment when it is used. RoundTrip
// then repeats the request on a new connection if nothing of it was written, or if
// it is idempotent: its method is GET, HEAD, OPTIONS or TRACE, or its header has the
// key Idempotency-Key or X-Idempotency-Key, even without a value.
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	if ctx.Err() != nil {
		closeBody(r)
		return nil, context.Cause(ctx)
	}
	message := messages.Get().(*bytes.Buffer)
	defer putMessage(message)
	unzip, err := write(message, r)
	if err != nil {
		return nil, err
	}
	if old := c.idle.get(r.URL.Host); old != nil {
		resp, progress, err := old.roundTrip(r, message.Bytes(), unzip)
		repeat := progress == nothingWritten || progress == nothingRead && isIdempotent(r)
		if err == nil || !repeat || ctx.Err() != nil {
			return resp, err
		}
	}
	nc, err := c.Dial(ctx, "tcp", address(r.URL))
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	resp, _, err := c.newConn(nc, r.URL.Host).roundTrip(r, message.Bytes(), unzip)
	return resp, err
}

// address returns the host and the port of u.
func address(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// messages holds buffers for requests.
var messages = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// putMessage keeps a buffer for another request, unless it is large.
func putMessage(b *bytes.Buffer) {
	if b.Cap() <= 2*maxBody {
		b.Reset()
		messages.Put(b)
	}
}
