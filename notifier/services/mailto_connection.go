package services

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
)

// mailtoConn is a connection to a mail server, signed in.
type mailtoConn struct {
	wire   *mailtoWire
	client *smtp.Client
}

// dial connects and signs in.
func (m *mailto) dial(ctx context.Context, c *notifier.Client) (*mailtoConn, error) {
	conn, err := dialServer(ctx, c, m.account.host, m.account.port, nil)
	if err != nil {
		return nil, fmt.Errorf("connecting to the mail server: %w", err)
	}
	mc := &mailtoConn{wire: &mailtoWire{conn, c.AnswerTimeout()}}
	defer during(ctx, conn)()
	if err := m.greet(mc, c); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return mc, nil
}

// greet takes a connection from its first byte to where it takes mail.
func (m *mailto) greet(mc *mailtoConn, c *notifier.Client) (err error) {
	config := tlsConfig(c, m.account.host)
	var conn net.Conn = mc.wire
	if m.account.mode == mailtoTLS {
		conn = tls.Client(conn, config)
	}
	if mc.client, err = smtp.NewClient(conn, m.account.host); err != nil {
		var notTLS tls.RecordHeaderError
		if errors.As(err, &notTLS) {
			return errors.New("the mail server does not begin with TLS on this port; use mode=starttls, or another port")
		}
		return mailtoError("being greeted", err)
	}
	if err := mc.client.Hello(mailtoHello(mc.wire.LocalAddr())); err != nil {
		return mailtoError("EHLO", err)
	}
	if m.account.mode == mailtoStartTLS {
		if ok, _ := mc.client.Extension("STARTTLS"); !ok {
			return errors.New("the mail server offers no STARTTLS; use mode=ssl if it has a port for TLS, or mode=insecure if the network can be trusted")
		}
		if err := mc.client.StartTLS(config); err != nil {
			return mailtoError("STARTTLS", err)
		}
	}
	return m.signIn(mc, c)
}

// mailtoHello is how we call ourselves: by the machine's full name, or by its
// address where it has none (RFC 5321, section 4.1.4).
func mailtoHello(local net.Addr) string {
	if name, err := os.Hostname(); err == nil && strings.Contains(name, ".") && isASCII(name) && !strings.ContainsAny(name, " \t\r\n") {
		return name
	}
	if a, ok := local.(*net.TCPAddr); ok && a.IP.To4() != nil {
		return "[" + a.IP.String() + "]"
	} else if ok {
		return "[IPv6:" + a.IP.String() + "]"
	}
	return "localhost"
}

// Close ends the connection. The server's goodbye is not waited for.
func (mc *mailtoConn) Close() error {
	_ = mc.wire.SetDeadline(time.Now().Add(time.Second))
	_, _ = mc.client.Text.Cmd("QUIT")
	_ = mc.client.Text.Close()
	return mc.wire.Close()
}

// ping asks the server whether it is there.
func (mc *mailtoConn) ping(ctx context.Context) error {
	mc.wire.renew()
	defer during(ctx, mc.wire)()
	return mc.client.Noop()
}
