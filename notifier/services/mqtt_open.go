package services

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// mqttKeepAlive is for how many seconds a server is to bear our silence. It
// is longer than [idleTime].
const mqttKeepAlive = 120

// open connects and signs in.
func (q *mqtt) open(ctx context.Context, c *notifier.Client) (*mqttConn, error) {
	var config *tls.Config
	if q.Secure {
		config = tlsConfig(c, q.Host)
	}
	raw, err := dialServer(ctx, c, q.Host, q.Port, config)
	if err != nil {
		return nil, err
	}
	conn := &mqttConn{limited: raw, r: bufio.NewReader(raw), wire: mqttV3{byte(q.version)}}
	if q.version == mqtt5 {
		conn.wire = mqttV5{}
	}
	hello := &mqttHello{id: q.clientID, user: q.User, password: q.Password, fresh: !q.session || q.clientID == ""}
	if hello.id == "" {
		hello.id = "caddy-" + rand.Text()[:16] // at most 23 characters, as v3.1 wants it
	}
	a, err := conn.exchange(ctx, c.AnswerTimeout(), mqttConnack, 0, func(w io.Writer) error { return conn.wire.connect(w, hello) })
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
