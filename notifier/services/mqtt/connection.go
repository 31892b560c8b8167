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

// connection is a connection to a server that has let us in. Nothing is read
// from it but the answer to what was written last, so it needs no goroutine;
// and no pings while it waits, since that is shorter than its keep-alive time.
type connection struct {
	conn    *wire.Conn
	r       *bufio.Reader
	codec   codec
	resumed bool // the server has kept the session
}

// publish returns when the server has the message. Quality 0 knows no answer,
// but packets are handled in their order (MQTT 3.1.1, section 4.6), so one to
// a ping that follows says the same.
func (conn *connection) publish(ctx context.Context, c *notifier.Client, p *publication) error {
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

// exchange writes and waits for the answer of this kind, for as long as
// patience if that is not 0.
func (conn *connection) exchange(ctx context.Context, patience time.Duration, kind byte, id uint16, write func(io.Writer) error) (reply, error) {
	ctx, cancel := wire.WithAnswerTimeout(ctx, patience)
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
		case a.kind == disconnect:
			return a, wire.Broken(errors.New("the MQTT server closed the connection: " + a.refusal))
		case a.kind == kind && a.id == id:
			return a, nil
		}
	}
}

// maxPacket is how long a packet to us may be. We subscribe to nothing,
// but a session that is kept may have done so.
const maxPacket = 1 << 20

// read reads one packet, after a look at its length: the reader of the
// library takes the memory for it before the bytes are there.
func (conn *connection) read() (reply, error) {
	length := 0
	for i := 1; ; i++ {
		b, err := conn.r.Peek(i + 1)
		if err != nil {
			return reply{}, err
		}
		length |= int(b[i]&0x7f) << (7 * (i - 1))
		if length > maxPacket || i == 4 && b[i]&0x80 != 0 {
			return reply{}, fmt.Errorf("the MQTT server sent a packet of more than %d bytes, or none at all", maxPacket)
		}
		if b[i]&0x80 == 0 {
			return conn.codec.read(conn.r)
		}
	}
}

func (conn *connection) Ping(ctx context.Context) error {
	conn.conn.ResetReadLimit()
	_, err := conn.exchange(ctx, 0, pingresp, 0, conn.codec.ping)
	return err
}

func (conn *connection) Close() error {
	_ = conn.conn.SetDeadline(time.Now().Add(time.Second))
	_ = conn.codec.disconnect(conn.conn)
	return conn.conn.Close()
}
