package mailto

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

// connection is a connection to a mail server that has accepted our sign-in.
type connection struct {
	conn   *timedConn
	client *smtp.Client
}

// dial connects and signs in.
func (m *service) dial(ctx context.Context, c *notifier.Client) (*connection, error) {
	a := m.findAccount()
	conn, err := wire.Dial(ctx, c, a.host, a.port, nil)
	if err != nil {
		return nil, fmt.Errorf("connecting to the mail server: %w", err)
	}
	mc := &connection{conn: &timedConn{conn, c.AnswerTimeout()}}
	defer wire.InterruptOnDone(ctx, conn)()
	if err := m.greet(mc, c, a); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return mc, nil
}

// greet starts the SMTP session: greeting, TLS and sign-in.
func (m *service) greet(mc *connection, c *notifier.Client, a account) (err error) {
	config := wire.TLSConfig(c, a.host)
	var conn net.Conn = mc.conn
	if a.mode == modeTLS {
		conn = tls.Client(conn, config)
	}
	if mc.client, err = smtp.NewClient(conn, a.host); err != nil {
		if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
			return errors.New("the mail server does not use TLS from the start on this port; use mode=starttls or another port")
		}
		return stepError("being greeted", err)
	}
	if err := mc.client.Hello(ehloName(mc.conn.LocalAddr())); err != nil {
		return stepError("EHLO", err)
	}
	if a.mode == modeStartTLS {
		if ok, _ := mc.client.Extension("STARTTLS"); !ok {
			return errors.New("the mail server offers no STARTTLS; " +
				"use mode=ssl if it has a port for TLS, or mode=insecure if the network can be trusted")
		}
		if err := mc.client.StartTLS(config); err != nil {
			return stepError("STARTTLS", err)
		}
	}
	return m.signIn(mc, c, a)
}

// ehloName returns our name for EHLO: the machine's full name or, if it has
// none, its address (RFC 5321, section 4.1.4).
func ehloName(local net.Addr) string {
	if name, err := os.Hostname(); err == nil && strings.Contains(name, ".") && mail.IsASCII(name) && !strings.ContainsAny(name, " \t\r\n") {
		return name
	}
	if a, ok := local.(*net.TCPAddr); ok && a.IP.To4() != nil {
		return "[" + a.IP.String() + "]"
	} else if ok {
		return "[IPv6:" + a.IP.String() + "]"
	}
	return "localhost"
}

// Close quits and closes the connection, without waiting for the server's reply.
func (mc *connection) Close() error {
	_ = mc.conn.SetDeadline(time.Now().Add(time.Second))
	_, _ = mc.client.Text.Cmd("QUIT")
	_ = mc.client.Text.Close()
	return mc.conn.Close()
}

// Ping returns when the server has answered a NOOP.
func (mc *connection) Ping(ctx context.Context) error {
	mc.conn.ResetReadLimit()
	defer wire.InterruptOnDone(ctx, mc.conn)()
	return mc.client.Noop()
}

// timedConn is a connection with a timeout for each read.
type timedConn struct {
	*wire.Conn
	timeout time.Duration // 0: none
}

func (w *timedConn) Read(p []byte) (int, error) {
	if w.timeout <= 0 {
		return w.Conn.Read(p)
	}
	if err := w.SetReadDeadline(time.Now().Add(w.timeout)); err != nil {
		return 0, err
	}
	n, err := w.Conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("no answer within %s (rto)", w.timeout)
	}
	return n, err
}
