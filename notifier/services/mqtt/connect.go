package mqtt

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"io"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

// keepAlive is after how many seconds of silence a server may close the
// connection. It is longer than [wire.IdleTimeout].
const keepAlive = 120

// open connects and signs in.
func (q *service) open(ctx context.Context, c *notifier.Client) (*connection, error) {
	var config *tls.Config
	if q.Secure {
		config = wire.TLSConfig(c, q.Host)
	}
	raw, err := wire.Dial(ctx, c, q.Host, q.Port, config)
	if err != nil {
		return nil, err
	}
	conn := &connection{conn: raw, r: bufio.NewReader(raw), codec: codecV3{byte(q.version)}}
	if q.version == version5 {
		conn.codec = codecV5{}
	}
	hello := &connectOptions{clientID: q.clientID, user: q.User, password: q.Password, cleanSession: !q.session || q.clientID == ""}
	if hello.clientID == "" {
		hello.clientID = "caddy-" + rand.Text()[:16] // version 3.1 allows 23 characters
	}
	a, err := conn.exchange(ctx, c.AnswerTimeout(), connack, 0, func(w io.Writer) error { return conn.codec.connect(w, hello) })
	if err == nil && a.err != "" {
		err = a.refusal("the connection")
	}
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	conn.resumed = a.resumed
	return conn, nil
}
