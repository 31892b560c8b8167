package mqtt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

// connection is a connection to a server that has accepted our CONNECT. It is
// read only while we wait for an answer, so it needs no goroutine. It is closed
// before it has been idle for [keepAlive], so it needs no pings.
type connection struct {
	conn    *wire.Conn
	r       *bufio.Reader
	codec   codec
	resumed bool // the server has kept our session
}

// publish returns when the server has the message. With quality of service 0
// there is no acknowledgement. Then a ping follows: the server handles packets
// in order (MQTT 3.1.1, section 4.6), so its answer acknowledges both.
func (conn *connection) publish(ctx context.Context, c *notifier.Client, p *publication) error {
	exchange := func(packetType byte, id uint16, write func(io.Writer) error) error {
		a, err := conn.exchange(ctx, c.AnswerTimeout(), packetType, id, write)
		if err == nil && a.err != "" {
			err = a.refusal("the message")
		}
		return err
	}
	if !conn.resumed && p.sent { // in a session that the server has forgotten
		p.sent, p.received = false, false
	}
	write := func(w io.Writer) error {
		err := conn.codec.publish(w, p)
		p.sent = true
		return err
	}
	switch p.qos {
	case 0:
		return exchange(pingresp, 0, func(w io.Writer) error {
			return errors.Join(write(w), conn.codec.ping(w))
		})
	case 1:
		return exchange(puback, p.id, write)
	}
	if !p.received {
		if err := exchange(pubrec, p.id, write); err != nil {
			return err
		}
		p.received = true
	}
	return exchange(pubcomp, p.id, func(w io.Writer) error { return conn.codec.release(w, p.id) })
}

// exchange writes packets and waits for the reply of this type with this packet
// identifier. A timeout of 0 means no timeout.
func (conn *connection) exchange(
	ctx context.Context, timeout time.Duration, packetType byte, id uint16, write func(io.Writer) error,
) (reply, error) {
	ctx, cancel := wire.WithAnswerTimeout(ctx, timeout)
	defer cancel()
	defer wire.InterruptOnDone(ctx, conn.conn)()
	if err := write(conn.conn); err != nil {
		return reply{}, wire.Broken(errs.ContextError(ctx, err))
	}
	for {
		a, err := conn.read()
		switch {
		case errors.Is(err, io.EOF):
			return a, wire.Broken(errs.ContextError(ctx, errors.New("the MQTT server closed the connection without a reason")))
		case err != nil:
			return a, wire.Broken(errs.ContextError(ctx, err))
		case a.packetType == disconnect:
			return a, wire.Broken(errors.New("the MQTT server closed the connection: " + a.err))
		case a.packetType == packetType && a.id == id:
			return a, nil
		}
	}
}

// maxPacket is the maximum size of a packet from the server, in bytes. We do
// not subscribe to topics, but an earlier session with this client identifier
// may have subscriptions.
const maxPacket = 1 << 20

// read reads one packet. It checks the length first, because the library
// allocates memory for the packet before it reads it.
func (conn *connection) read() (reply, error) {
	length := 0
	for i := 1; ; i++ {
		b, err := conn.r.Peek(i + 1)
		if err != nil {
			return reply{}, err
		}
		length |= int(b[i]&0x7f) << (7 * (i - 1))
		if length > maxPacket || i == 4 && b[i]&0x80 != 0 {
			return reply{}, fmt.Errorf("the MQTT server sent a packet of more than %d bytes, or data that is not MQTT", maxPacket)
		}
		if b[i]&0x80 == 0 {
			return conn.codec.read(conn.r)
		}
	}
}

// Ping returns when the server has answered a PINGREQ.
func (conn *connection) Ping(ctx context.Context) error {
	conn.conn.ResetReadLimit()
	_, err := conn.exchange(ctx, 0, pingresp, 0, conn.codec.ping)
	return err
}

// Close disconnects and closes the connection.
func (conn *connection) Close() error {
	_ = conn.conn.SetDeadline(time.Now().Add(time.Second))
	_ = conn.codec.disconnect(conn.conn)
	return conn.conn.Close()
}
