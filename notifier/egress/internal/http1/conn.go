package http1

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"
)

// conn is a connection to a server. It has one request at a time.
type conn struct {
	client *Client
	host   string // host and port, as in URLs
	nc     net.Conn
	close  func()          // closes nc
	raw    syscall.RawConn // of nc; nil if the connection cannot be used again
	check  func(fd uintptr) bool
	quiet  bool // result of check

	// While the connection has a request:
	reader *bufio.Reader // reads from the conn
	limit  int64         // how many more bytes are read from nc

	// While the connection is idle, guarded by client.idle.mu:
	since        time.Time
	older, newer *conn // of all connections
	below, above *conn // of those with the same host, with the oldest at the bottom
}

func (c *Client) newConn(nc net.Conn, host string) *conn {
	cn := &conn{client: c, host: host, nc: nc}
	cn.close = func() { _ = nc.Close() }
	if sc, ok := nc.(syscall.Conn); ok {
		cn.raw, _ = sc.SyscallConn()
	}
	cn.check = cn.readNothing
	return cn
}

// isQuiet reports whether the connection is open and the server has sent nothing.
func (c *conn) isQuiet() bool {
	return c.raw.Read(c.check) == nil && c.quiet
}

// readers holds readers for connections that are not idle.
var readers = sync.Pool{New: func() any { return bufio.NewReader(nil) }}

// Read reads at most c.limit bytes from the connection.
func (c *conn) Read(p []byte) (int, error) {
	if c.limit <= 0 {
		return 0, errors.New("limit reached")
	}
	if int64(len(p)) > c.limit {
		p = p[:c.limit]
	}
	n, err := c.nc.Read(p)
	c.limit -= int64(n)
	return n, err
}

// progress is how far a failed request got.
type progress int

const (
	nothingWritten progress = iota // the server has got nothing
	nothingRead                    // the server may have got the request
	partlyRead                     // the server has begun to answer
)

// roundTrip writes message, the bytes of r, and reads the answer up to its body. It
// closes the connection if it returns an error.
func (c *conn) roundTrip(r *http.Request, message []byte, unzip bool) (*http.Response, progress, error) {
	ctx := r.Context()
	stop := func() bool { return true }
	if ctx.Done() != nil {
		stop = context.AfterFunc(ctx, c.close)
	}
	resp, progress, err := c.exchange(r, message)
	if err != nil {
		stop()
		c.close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, progress, err
	}
	reusable := !resp.Close && resp.StatusCode >= 200
	if resp.Body == http.NoBody {
		c.done(reusable, stop)
		return resp, progress, nil
	}
	c.limit = math.MaxInt64
	b := &body{ReadCloser: resp.Body, conn: c, ctx: ctx, stop: stop, reusable: reusable}
	resp.Body = b
	if unzip && strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		resp.Body = &gzipBody{body: b}
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		resp.ContentLength = -1
		resp.Uncompressed = true
	}
	return resp, progress, nil
}

// exchange writes message and reads the answer up to its body. It skips answers
// with a status of 1xx, except 101, which ends the connection.
func (c *conn) exchange(r *http.Request, message []byte) (*http.Response, progress, error) {
	n, writeErr := c.nc.Write(message)
	c.limit = MaxHead
	c.reader = readers.Get().(*bufio.Reader)
	c.reader.Reset(c)
	// After an error as well: a server may answer and close the connection before
	// it has read the request.
	_, err := c.reader.Peek(1)
	switch {
	case err == nil:
	case writeErr == nil:
		return nil, nothingRead, err
	case n == 0:
		return nil, nothingWritten, writeErr
	default:
		return nil, nothingRead, broken(writeErr)
	}
	for {
		resp, err := http.ReadResponse(c.reader, r)
		switch {
		case err != nil && c.limit <= 0:
			return nil, partlyRead, broken(fmt.Errorf("net/http: server response headers exceeded %d bytes; aborted", MaxHead))
		case err != nil:
			return nil, partlyRead, broken(err)
		case resp.StatusCode >= 200 || resp.StatusCode < 100 || resp.StatusCode == http.StatusSwitchingProtocols:
			resp.Close = resp.Close || writeErr != nil
			return resp, partlyRead, nil
		}
	}
}

// broken returns err with the prefix of net/http.
func broken(err error) error {
	return fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", err)
}

// done ends a request. It makes the connection idle, or closes it if it cannot be
// used again. stop is that of [context.AfterFunc] for the context of the request.
func (c *conn) done(reusable bool, stop func() bool) {
	// If stop returns false, c.close has been called.
	if !stop() || !reusable || c.raw == nil || c.reader.Buffered() > 0 {
		c.close()
		return
	}
	c.reader.Reset(nil)
	readers.Put(c.reader)
	c.reader = nil
	c.client.idle.put(c)
}
