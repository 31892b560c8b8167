package services

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

	"github.com/caddy-notify/caddy-notify/notifier"
)

// dialServer opens a connection to a server that does not speak HTTP, with
// TLS where config is not nil. No operation on it lasts beyond ctx as long as
// [during] watches.
func dialServer(ctx context.Context, c *notifier.Client, host string, port int, config *tls.Config) (*limitedConn, error) {
	raw, err := c.Dial(ctx, "tcp", net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	conn := &limitedConn{Conn: raw}
	conn.renew()
	if config == nil {
		return conn, nil
	}
	ctx, cancel := patient(ctx, c.AnswerTimeout())
	defer cancel()
	secure := tls.Client(conn.Conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, because(ctx, err)
	}
	conn.Conn = secure
	return conn, nil
}

// tlsConfig is for a server of this name.
func tlsConfig(c *notifier.Client, host string) *tls.Config {
	return &tls.Config{
		ServerName:         strings.Trim(host, "[]"),
		InsecureSkipVerify: !c.Verify(), //nolint:gosec // the URL says verify=no
		MinVersion:         tls.VersionTLS12,
	}
}

// during ends what is done on conn when ctx ends. The function that it
// returns ends the watch.
func during(ctx context.Context, conn net.Conn) (stop func()) {
	cancel := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	return func() { cancel() }
}

// patient is ctx with an end after patience, if that is not 0.
func patient(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
	if patience <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %s (rto)", patience))
}

// maxReplies is how much a server may say to one message.
const maxReplies = 4 << 20

// limitedConn reads no more than [maxReplies] from one call of renew to the
// next, so that no server fills the memory.
type limitedConn struct {
	net.Conn
	left atomic.Int64
}

func (c *limitedConn) renew() { c.left.Store(maxReplies) }

func (c *limitedConn) Read(b []byte) (int, error) {
	if c.left.Load() <= 0 {
		return 0, errors.New("the server says more than 4 MiB to one message")
	}
	n, err := c.Conn.Read(b)
	c.left.Add(-int64(n))
	return n, err
}
