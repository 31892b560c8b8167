package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// maxRead is the maximum number of bytes that a server may send in answer to
// one message.
const maxRead = 4 << 20

// Conn is a connection with a limit on what it reads, so that no server can
// fill the memory.
type Conn struct {
	net.Conn
	left atomic.Int64
}

// Dial connects to a server, with TLS if config is not nil. The host may be an
// IPv6 address in brackets. The TLS handshake may take as long as the client
// waits for an answer (the parameter rto).
func Dial(ctx context.Context, c *notifier.Client, host string, port int, config *tls.Config) (*Conn, error) {
	raw, err := c.Dial(ctx, "tcp", net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	conn := &Conn{Conn: raw}
	conn.ResetReadLimit()
	if config == nil {
		return conn, nil
	}
	ctx, cancel := WithAnswerTimeout(ctx, c.AnswerTimeout())
	defer cancel()
	secure := tls.Client(conn.Conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, errs.ContextError(ctx, err)
	}
	conn.Conn = secure
	return conn, nil
}

// ResetReadLimit allows another 4 MiB to be read. Call it before each message.
func (c *Conn) ResetReadLimit() { c.left.Store(maxRead) }

// Read reads up to the limit and returns an error beyond it.
func (c *Conn) Read(b []byte) (int, error) {
	if c.left.Load() <= 0 {
		return 0, errors.New("the server sends more than 4 MiB in answer to one message")
	}
	n, err := c.Conn.Read(b)
	c.left.Add(-int64(n))
	return n, err
}

// TLSConfig returns the configuration for a server of this name. The URL
// decides whether its certificate is verified (the parameter verify).
func TLSConfig(c *notifier.Client, host string) *tls.Config {
	return &tls.Config{
		ServerName:         strings.Trim(host, "[]"),
		InsecureSkipVerify: !c.Verify(), //nolint:gosec // the URL has verify=no
		MinVersion:         tls.VersionTLS12,
	}
}

// InterruptOnDone makes reads and writes of conn fail from the moment ctx is
// done. Call stop when conn is no longer used with ctx.
func InterruptOnDone(ctx context.Context, conn net.Conn) (stop func()) {
	cancel := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	return func() { cancel() }
}

// WithAnswerTimeout returns ctx with a timeout of d, the parameter rto of the
// URL, or without one if d is 0.
func WithAnswerTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("no answer within %s (rto)", d))
}
