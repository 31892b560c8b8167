package early

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// The bounds of reading from connections that are closed.
const (
	maxClosing  = 256              // connections at a time; net/http closes others
	idleTimeout = 3 * time.Second  // without a byte
	maxTime     = 20 * time.Second // in all
	maxRead     = 64 << 20         // bytes per connection
	bufferSize  = 16 << 10
)

// Closing closes connections on which the body of an already answered request is still arriving. An
// operating system resets a connection that is closed with unread bytes, and the client may lose
// the answer with it. So when the server closes the connection, Closing keeps it, reads for a
// while, and then closes it. The zero value is ready for use.
type Closing struct {
	mu      sync.Mutex
	kept    map[*kept]struct{}
	stopped bool
	reading sync.WaitGroup
}

// kept is a separate connection to the socket of a connection that the server closes.
type kept struct {
	net.Conn
	forget func() bool // before the answer is complete: do not read at all
}

type connKey struct{}

// ConnContext returns ctx with a connection, which [Closing] can then close. It is for
// http.Server.ConnContext.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if ctx.Value(connKey{}) != nil {
		return ctx // another handler of the server has done so
	}
	return context.WithValue(ctx, connKey{}, c)
}

// keep keeps the connection of r, which the server closes after the answer, and reports whether it
// could. c may be nil.
func (c *Closing) keep(r *http.Request) bool {
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	if c == nil || conn == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped || len(c.kept) >= maxClosing {
		return false
	}
	same, err := duplicate(conn)
	if err != nil {
		return false
	}
	k := &kept{Conn: same}
	if c.kept == nil {
		c.kept = map[*kept]struct{}{}
	}
	c.kept[k] = struct{}{}
	c.reading.Add(1)
	k.forget = context.AfterFunc(r.Context(), func() { // net/http writes the rest of the answer now
		k.read()
		c.leave(k)
	})
	return true
}

// leave closes a connection.
func (c *Closing) leave(k *kept) {
	_ = k.Close()
	c.mu.Lock()
	delete(c.kept, k)
	c.mu.Unlock()
	c.reading.Done()
}

// Stop closes all connections at once. Those that would be kept later are closed by the server. c
// may be nil.
func (c *Closing) Stop() {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.stopped = true
	var unread []*kept
	for k := range c.kept {
		if k.forget() {
			unread = append(unread, k)
		} else {
			_ = k.Close()
		}
	}
	c.mu.Unlock()
	for _, k := range unread {
		c.leave(k)
	}
	c.reading.Wait()
}

// read reads until the client closes the connection or a bound is reached. TLS records need not be
// decrypted.
func (k *kept) read() {
	end := time.Now().Add(maxTime)
	buf := make([]byte, bufferSize)
	for n := 0; n < maxRead; {
		deadline := time.Now().Add(idleTimeout)
		if deadline.After(end) {
			deadline = end
		}
		if k.SetReadDeadline(deadline) != nil {
			return
		}
		m, err := k.Read(buf)
		if err != nil {
			return
		}
		n += m
	}
}

// duplicate returns a separate connection to the socket of c, which stays open when c is closed.
func duplicate(c net.Conn) (net.Conn, error) {
	for {
		switch x := c.(type) {
		case interface{ File() (*os.File, error) }:
			f, err := x.File()
			if err != nil {
				return nil, err
			}
			defer f.Close()
			return net.FileConn(f)
		case interface{ NetConn() net.Conn }: // TLS
			c = x.NetConn()
		case interface{ Raw() net.Conn }: // the PROXY protocol
			c = x.Raw()
		default:
			return nil, errors.ErrUnsupported
		}
	}
}
