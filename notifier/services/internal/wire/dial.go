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

// Dial opens a connection to a server that does not speak HTTP, with
// TLS where config is not nil. No operation on it lasts beyond ctx as long as
// [InterruptOnDone] watches.
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

// TLSConfig is for a server of this name.
func TLSConfig(c *notifier.Client, host string) *tls.Config {
	return &tls.Config{
		ServerName:         strings.Trim(host, "[]"),
		InsecureSkipVerify: !c.Verify(), //nolint:gosec // the URL says verify=no
		MinVersion:         tls.VersionTLS12,
	}
}

// InterruptOnDone ends what is done on conn when ctx ends. The function that it
// returns ends the watch.
func InterruptOnDone(ctx context.Context, conn net.Conn) (stop func()) {
	cancel := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	return func() { cancel() }
}

// WithAnswerTimeout is ctx with an end after patience, if that is not 0.
func WithAnswerTimeout(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
	if patience <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %s (rto)", patience))
}

// maxRead is how much a server may say to one message.
const maxRead = 4 << 20

// Conn reads no more than [maxRead] from one call of renew to the
// next, so that no server fills the memory.
type Conn struct {
	net.Conn
	left atomic.Int64
}

func (c *Conn) ResetReadLimit() { c.left.Store(maxRead) }

func (c *Conn) Read(b []byte) (int, error) {
	if c.left.Load() <= 0 {
		return 0, errors.New("the server says more than 4 MiB to one message")
	}
	n, err := c.Conn.Read(b)
	c.left.Add(-int64(n))
	return n, err
}
