// Package smtpd is a mail server (RFC 5321) that passes each mail on as a message. It handles
// connections, limits, TLS, accounts and the answers of the protocol. A [Gateway] knows the keys
// and sends the messages.
package smtpd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/internal/smtp"
)

// Config configures a [Server].
type Config struct {
	Hostname       string // in the greeting
	MaxSize        int64  // bytes of a mail
	MaxRecipients  int    // of a mail
	MaxConnections int
	Timeout        time.Duration // for a command, and for a whole mail
	Delivery       time.Duration // the longest time of Gateway.Deliver

	// TLS is the configuration for STARTTLS and for implicit TLS; nil for no TLS.
	TLS *tls.Config

	// Accounts are the accounts by user name. Passwords checks their passwords; it may
	// be nil if there are no accounts.
	Accounts  map[string]*Account
	Passwords *Passwords

	// Trusted has the clients that need no account. Local reports whether clients
	// on the same machine need none.
	Trusted []netip.Prefix
	Local   bool

	Log *zap.Logger
}

// Gateway connects the server to the rest of the program. Its functions may be called concurrently.
type Gateway struct {
	// Check returns an error if no mail can be sent to a recipient: [ErrNoKey] for an unknown key,
	// [ErrUnnamed], or an [*api.Error]. Any other error is logged and answered as an internal one.
	Check func(r Recipient) error

	// Deliver reads a mail and sends it to all recipients, of which there is at least one. It
	// returns when every destination has answered or a queue has the message. The error is as in
	// Check, or an error of reading the mail.
	Deliver func(mail io.Reader, to []Recipient) (*Outcome, error)

	// Refused records that a client got an error and nothing was sent.
	Refused func(r Refusal)
}

// ErrNoKey is returned by [Gateway.Check] for an unknown key.
var ErrNoKey = errors.New("there is no such key")

// ErrUnnamed is returned by [Gateway.Check] for a key that takes mails only from accounts that name
// it. It is also returned for an unknown key if a client must not learn which keys exist.
var ErrUnnamed = errors.New("no account names the key")

// Refusal describes a command or a mail that was refused.
type Refusal struct {
	Client netip.Addr // zero for a Unix socket
	Key    string     // "" if the key may not exist
	Code   int        // code of the answer
	Text   string     // text of the answer
	Status int        // the equivalent HTTP status, by which refusals are counted
	Err    error      // the reason, or nil
	Mail   bool       // a mail was refused rather than a command
}

// Server receives mails.
type Server struct {
	config  Config
	gateway Gateway
	conns   conns
	smtp    *smtp.Server
}

const (
	writeTimeout = 30 * time.Second // of an answer
	maxLine      = 64 << 10         // bytes of a command or a line of a mail; many programs exceed the 1000 bytes of RFC 5321
)

// New returns a server. It receives nothing before [Server.Serve].
func New(c Config, g Gateway) *Server {
	s := &Server{
		config: c, gateway: g,
		conns: conns{max: c.MaxConnections, open: map[*conn]bool{}, byAddress: map[netip.Addr]int{}},
	}
	s.smtp = smtp.NewServer()
	s.smtp.NewSession = s.newSession
	s.smtp.Domain, s.smtp.TLSConfig = c.Hostname, c.TLS
	s.smtp.MaxMessageBytes, s.smtp.MaxRecipients = c.MaxSize, c.MaxRecipients
	s.smtp.ReadTimeout, s.smtp.WriteTimeout = c.Timeout, min(c.Timeout, writeTimeout)
	s.smtp.MaxLineLength = maxLine
	s.smtp.ErrorLog = s.logError
	s.smtp.Refused = s.refusedByProtocol
	return s
}

// refusedByProtocol records a command that package smtp has refused.
func (s *Server) refusedByProtocol(c *smtp.Conn, code int, text string) {
	status := http.StatusBadRequest
	switch code {
	case 421: // the client has gone, or sends nothing
		return
	case 452:
		status = http.StatusServiceUnavailable
	case 552:
		status = http.StatusRequestEntityTooLarge
	}
	s.gateway.Refused(Refusal{Client: connOf(c).client, Code: code, Text: oneLine(text), Status: status})
}

// Serve receives mails until [Server.Stop] closes the listener. With implicit,
// TLS begins at once (RFC 8314).
func (s *Server) Serve(l net.Listener, implicit bool) {
	config := s.config.TLS
	if !implicit {
		config = nil
	}
	if err := s.smtp.Serve(&listener{l, s, config}); err != nil {
		s.config.Log.Error("the mail server no longer takes connections", zap.String("address", l.Addr().String()), zap.Error(err))
	}
}

// How long a stopping server continues to read.
const (
	reloadTime = 20 * time.Second // commands after a reload
	exitTime   = 5 * time.Second  // mails when the program ends
)

// Stop closes the listeners. If another server replaces this one, open connections accept commands
// for 20 seconds, and a mail under way is finished. Otherwise Stop returns when all mails under way
// are answered, including mails of servers replaced before, or after a timeout.
func (s *Server) Stop(r *Replaced, replaced bool) {
	servers := r.stopping(s, replaced)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if replaced {
		s.endAt(time.Now().Add(reloadTime), false)
		cancel() // Shutdown closes the listeners and does not wait for connections
	} else {
		for _, server := range servers {
			server.endAt(time.Now(), false)
		}
		timer := time.AfterFunc(exitTime, func() {
			for _, server := range servers {
				server.endAt(time.Now(), true)
			}
		})
		defer timer.Stop()
		limit := time.AfterFunc(exitTime+s.config.Delivery, cancel)
		defer limit.Stop()
	}
	err := s.smtp.Shutdown(ctx)
	if replaced {
		return
	}
	for _, server := range servers {
		err = errors.Join(err, server.conns.wait(ctx))
	}
	if err != nil {
		s.config.Log.Error("mails were not answered before Caddy stopped", zap.Error(err))
	}
}

// endAt sets the deadline t for commands on all open connections and, if all is set,
// for mails, too.
func (s *Server) endAt(t time.Time, all bool) {
	for _, c := range s.conns.all() {
		c.endAt(t, all)
	}
}

// Replaced are the replaced servers that still have connections. The zero value is ready for use.
type Replaced struct {
	mu      sync.Mutex
	servers []*Server
}

// stopping returns the stopping server s and the replaced servers that still have connections. If s
// is replaced, stopping adds it to them.
func (r *Replaced) stopping(s *Server, replaced bool) []*Server {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.servers = slices.DeleteFunc(r.servers, func(s *Server) bool { return len(s.conns.all()) == 0 })
	all := append(slices.Clone(r.servers), s)
	if replaced {
		r.servers = all
	}
	return all
}

// listener accepts connections of mail clients.
type listener struct {
	net.Listener
	server *Server
	tls    *tls.Config // nil if TLS does not begin at once
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: accepted}
		c.client, c.trusted = l.server.config.client(accepted.RemoteAddr())
		if !l.server.conns.add(c) {
			l.reject(c)
			continue
		}
		if l.tls != nil {
			return tls.Server(c, l.tls), nil
		}
		return c, nil
	}
}

// reject closes a connection that exceeds a limit of conns.
func (l *listener) reject(c *conn) {
	_ = l.server.refuse(Refusal{Client: c.client, Status: http.StatusServiceUnavailable}, errBusy)
	if l.tls == nil {
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = fmt.Fprintf(c.Conn, "421 4.3.2 %s\r\n", errBusy.Message) // the client may have gone
	}
	_ = c.Conn.Close()
}

// client returns the address of a client and reports whether the client needs no
// account.
func (c *Config) client(a net.Addr) (client netip.Addr, trusted bool) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}, c.Local // a Unix socket
	}
	client = tcp.AddrPort().Addr().Unmap().WithZone("")
	return client, c.Local && client.IsLoopback() || slices.ContainsFunc(c.Trusted, func(p netip.Prefix) bool { return p.Contains(client) })
}

// logError logs an error of package smtp. A panic has the level error. Other errors have the level
// debug, because they come from clients that closed the connection or failed to begin TLS.
func (s *Server) logError(format string, v ...any) {
	level := zap.DebugLevel
	if strings.HasPrefix(format, "panic") {
		level = zap.ErrorLevel
	}
	s.config.Log.Log(level, fmt.Sprintf(format, v...))
}
