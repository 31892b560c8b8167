package smtpd

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/api"
)

// conn is a connection of a mail client. It sets the read deadlines: package
// smtp sets one for each command but none for a mail, so a slow client could keep a
// server from stopping.
type conn struct {
	net.Conn
	client  netip.Addr // zero for a Unix socket
	trusted bool       // the client needs no account
	leave   func()     // removes the connection from conns

	closeOnce sync.Once

	late atomic.Bool // a deadline has passed; nothing more is read

	mu     sync.Mutex
	broken bool      // a mail was given up; no further one is accepted
	mail   time.Time // deadline for the mail under way; zero between mails
	end    time.Time // deadline for commands when the server stops; zero before
	endAll bool      // end is also a deadline for mails
}

// Read implements net.Conn. It reads nothing after a deadline: package smtp takes the beginning of
// a command for all of it, answers, and would wait for the next one with a new deadline.
func (c *conn) Read(b []byte) (int, error) {
	if c.late.Load() {
		return 0, os.ErrDeadlineExceeded
	}
	n, err := c.Conn.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.late.Store(true)
	}
	return n, err
}

// SetReadDeadline implements net.Conn. Package smtp calls it before it reads a
// command.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.setDeadline(t)
}

// setDeadline sets the read deadline: c.mail during a mail and otherwise t, or c.end
// if it applies and is earlier. The caller holds the lock.
func (c *conn) setDeadline(t time.Time) error {
	if !c.mail.IsZero() {
		t = c.mail
	}
	if !c.end.IsZero() && (c.mail.IsZero() || c.endAll) && (t.IsZero() || c.end.Before(t)) {
		t = c.end
	}
	return c.Conn.SetReadDeadline(t)
}

// beginMail sets the deadline for a mail, timeout from now.
func (c *conn) beginMail(timeout time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mail = time.Now().Add(timeout)
	_ = c.setDeadline(c.mail) // an error shows when the mail is read
}

// endMail records the end of a mail. Its deadline stays until the next command,
// because the server still reads the rest of a refused mail.
func (c *conn) endMail() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mail = time.Time{}
}

// endAt sets the deadline t for commands and, if all is set, for mails, too.
func (c *conn) endAt(t time.Time, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end, c.endAll = t, all
	if c.mail.IsZero() || all {
		_ = c.setDeadline(t) // the connection is closed if it fails
	}
}

// giveUp closes the connection because a mail is incomplete.
func (c *conn) giveUp() {
	c.mu.Lock()
	c.broken = true
	c.mu.Unlock()
	_ = c.Close()
}

// isBroken reports whether a mail was given up. Commands that the server has already read are still
// handled.
func (c *conn) isBroken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.closeOnce.Do(c.leave)
	return c.Conn.Close()
}

// conns counts the open connections. Clients that need an account may have half of the maximum, and
// each of their addresses an eighth, so that they cannot keep trusted clients out.
type conns struct {
	max int

	mu        sync.Mutex
	open      map[*conn]bool
	untrusted int                // connections of clients that need an account
	byAddress map[netip.Addr]int // the same by address
}

// add adds c and reports whether the limits allow it.
func (m *conns) add(c *conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	address := api.ClientNetwork(c.client)
	if len(m.open) >= m.max {
		return false
	}
	if !c.trusted {
		if m.untrusted >= max(m.max/2, 1) || m.byAddress[address] >= max(m.max/8, 1) {
			return false
		}
		m.untrusted++
		m.byAddress[address]++
	}
	m.open[c] = true
	c.leave = func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.open, c)
		if c.trusted {
			return
		}
		m.untrusted--
		if m.byAddress[address]--; m.byAddress[address] == 0 {
			delete(m.byAddress, address)
		}
	}
	return true
}

// all returns the open connections.
func (m *conns) all() []*conn {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*conn, 0, len(m.open))
	for c := range m.open {
		out = append(out, c)
	}
	return out
}

// wait waits until no connection is open, or returns the error of ctx.
func (m *conns) wait(ctx context.Context) error {
	for len(m.all()) > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}
