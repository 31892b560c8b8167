package services

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// mqttConn is a connection to a server that has let us in. Nothing is read
// from it but the answer to what was written last, so it needs no goroutine;
// and no pings while it waits, since that is shorter than its keep-alive time.
type mqttConn struct {
	limited *limitedConn
	r       *bufio.Reader
	wire    mqttWire
	resumed bool // the server has kept the session
}

// publish returns when the server has the message. Quality 0 knows no answer,
// but packets are handled in their order (MQTT 3.1.1, section 4.6), so one to
// a ping that follows says the same.
func (conn *mqttConn) publish(ctx context.Context, c *notifier.Client, p *mqttPublication) error {
	exchange := func(kind byte, id uint16, write func(io.Writer) error) error {
		a, err := conn.exchange(ctx, c.AnswerTimeout(), kind, id, write)
		if err == nil && a.refusal != "" {
			err = errors.New("the MQTT server refused the message: " + a.refusal)
		}
		return err
	}
	if !conn.resumed && p.sent { // on a connection that broke, in a session that is gone
		p.sent, p.received = false, false
	}
	write := func(w io.Writer) error {
		err := conn.wire.publish(w, p)
		p.sent = true
		return err
	}
	switch p.qos {
	case 0:
		return exchange(mqttPingresp, 0, func(w io.Writer) error {
			return errors.Join(write(w), conn.wire.ping(w))
		})
	case 1:
		return exchange(mqttPuback, p.id, write)
	}
	if !p.received {
		if err := exchange(mqttPubrec, p.id, write); err != nil {
			return err
		}
		p.received = true
	}
	return exchange(mqttPubcomp, p.id, func(w io.Writer) error { return conn.wire.release(w, p.id) })
}

// exchange writes and waits for the answer of this kind, for as long as
// patience if that is not 0.
func (conn *mqttConn) exchange(ctx context.Context, patience time.Duration, kind byte, id uint16, write func(io.Writer) error) (mqttAnswer, error) {
	ctx, cancel := patient(ctx, patience)
	defer cancel()
	defer during(ctx, conn.limited)()
	if err := write(conn.limited); err != nil {
		return mqttAnswer{}, broken(because(ctx, err))
	}
	for {
		a, err := conn.read()
		switch {
		case errors.Is(err, io.EOF):
			return a, broken(because(ctx, errors.New("the MQTT server closed the connection without a reason")))
		case err != nil:
			return a, broken(because(ctx, err))
		case a.kind == mqttDisconnect:
			return a, broken(errors.New("the MQTT server closed the connection: " + a.refusal))
		case a.kind == kind && a.id == id:
			return a, nil
		}
	}
}

// mqttMaxPacket is how long a packet to us may be. We subscribe to nothing,
// but a session that is kept may have done so.
const mqttMaxPacket = 1 << 20

// read reads one packet, after a look at its length: the reader of the
// library takes the memory for it before the bytes are there.
func (conn *mqttConn) read() (mqttAnswer, error) {
	length := 0
	for i := 1; ; i++ {
		b, err := conn.r.Peek(i + 1)
		if err != nil {
			return mqttAnswer{}, err
		}
		length |= int(b[i]&0x7f) << (7 * (i - 1))
		if length > mqttMaxPacket || i == 4 && b[i]&0x80 != 0 {
			return mqttAnswer{}, fmt.Errorf("the MQTT server sent a packet of more than %d bytes, or none at all", mqttMaxPacket)
		}
		if b[i]&0x80 == 0 {
			return conn.wire.read(conn.r)
		}
	}
}

func (conn *mqttConn) ping(ctx context.Context) error {
	conn.limited.renew()
	_, err := conn.exchange(ctx, 0, mqttPingresp, 0, conn.wire.ping)
	return err
}

func (conn *mqttConn) Close() error {
	_ = conn.limited.SetDeadline(time.Now().Add(time.Second))
	_ = conn.wire.disconnect(conn.limited)
	return conn.limited.Close()
}
