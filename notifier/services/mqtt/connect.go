package mqtt

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

// keepAlive is for how many seconds a server is to bear our silence. It
// is longer than [wire.IdleTimeout].
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
	hello := &connectOptions{id: q.clientID, user: q.User, password: q.Password, fresh: !q.session || q.clientID == ""}
	if hello.id == "" {
		hello.id = "caddy-" + rand.Text()[:16] // at most 23 characters, as v3.1 wants it
	}
	a, err := conn.exchange(ctx, c.AnswerTimeout(), connack, 0, func(w io.Writer) error { return conn.codec.connect(w, hello) })
	if err == nil && a.refusal != "" {
		err = errors.New("the MQTT server refused the connection: " + a.refusal)
	}
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	conn.resumed = a.resumed
	return conn, nil
}
