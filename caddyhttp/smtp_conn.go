package caddyhttp

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"
)

// mailConn is a connection of a mail client. It decides when reading ends: the
// deadlines of package smtp begin with each command, but not with a mail, and
// would let a client hold up a server that stops.
type mailConn struct {
	net.Conn
	client  netip.Addr // zero for a socket of the file system
	trusted bool       // it needs no account
	leave   func()     // ends what the connection counts for

	closeOnce sync.Once

	mu     sync.Mutex
	mail   time.Time // when reading the mail under way ends; zero outside of a mail
	end    time.Time // when reading commands ends, because the server stops; zero before
	endAll bool      // end holds for mails, too
}

// SetReadDeadline implements net.Conn. Package smtp calls it before it reads a
// command.
func (c *mailConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.setDeadline(t)
}

// setDeadline sets the deadline t or, if that is earlier, the one that the state
// of the connection asks for. The caller holds the lock.
func (c *mailConn) setDeadline(t time.Time) error {
	if !c.mail.IsZero() {
		t = c.mail
	}
	if !c.end.IsZero() && (c.mail.IsZero() || c.endAll) && (t.IsZero() || c.end.Before(t)) {
		t = c.end
	}
	return c.Conn.SetReadDeadline(t)
}

// beginMail gives the client the time for a mail.
func (c *mailConn) beginMail(timeout time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mail = time.Now().Add(timeout)
	_ = c.setDeadline(c.mail) // an error shows when the mail is read
}

// endMail ends the time for a mail. The deadline stays until the next command,
// because the rest of a mail that is refused is still read.
func (c *mailConn) endMail() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mail = time.Time{}
}

// endAt ends the reading of commands at t. all includes mails.
func (c *mailConn) endAt(t time.Time, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end, c.endAll = t, all
	if c.mail.IsZero() || all {
		_ = c.setDeadline(t) // the connection is closed if it fails
	}
}

// Close implements net.Conn.
func (c *mailConn) Close() error {
	c.closeOnce.Do(c.leave)
	return c.Conn.Close()
}

// mailConns counts the open connections. Clients that need an account have part
// of them, so that they cannot keep the others out.
type mailConns struct {
	max int

	mu        sync.Mutex
	open      map[*mailConn]bool
	outside   int // of clients that need an account
	byAddress map[netip.Addr]int
}

// add counts c in and reports true, unless there are too many connections.
func (m *mailConns) add(c *mailConn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	address := clientNetwork(c.client)
	if len(m.open) >= m.max {
		return false
	}
	if !c.trusted {
		if m.outside >= max(m.max/2, 1) || m.byAddress[address] >= max(m.max/8, 1) {
			return false
		}
		m.outside++
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
		m.outside--
		if m.byAddress[address]--; m.byAddress[address] == 0 {
			delete(m.byAddress, address)
		}
	}
	return true
}

// all returns the open connections.
func (m *mailConns) all() []*mailConn {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*mailConn, 0, len(m.open))
	for c := range m.open {
		out = append(out, c)
	}
	return out
}

// wait returns when no connection is open, or with the error of ctx.
func (m *mailConns) wait(ctx context.Context) error {
	for len(m.all()) > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}
