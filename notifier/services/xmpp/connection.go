package xmpp

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"sync"
	"time"

	"mellium.im/xmlstream"
	mellium "mellium.im/xmpp"
	"mellium.im/xmpp/stanza"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

// connection is a session with a server. A goroutine reads stanzas until the
// connection is closed.
type connection struct {
	conn    *wire.Conn
	session *mellium.Session
	nick    string
	done    chan struct{} // closed when the goroutine has ended
	err     error         // why it has ended

	mu      sync.Mutex
	waiting map[*waiter]struct{}
	rooms   map[string]string // our nickname by room
}

// waiter is an exchange that waits for a stanza.
type waiter struct {
	match func(*incomingStanza) bool
	found chan *incomingStanza
}

// exchange sends stanzas and waits for one that matches. A timeout of 0 means
// no timeout.
func (conn *connection) exchange(
	ctx context.Context, timeout time.Duration, match func(*incomingStanza) bool, send ...xml.TokenReader,
) (*incomingStanza, error) {
	ctx, cancel := wire.WithAnswerTimeout(ctx, timeout)
	defer cancel()
	w := &waiter{match, make(chan *incomingStanza, 1)}
	conn.mu.Lock()
	conn.waiting[w] = struct{}{}
	conn.mu.Unlock()
	defer func() {
		conn.mu.Lock()
		delete(conn.waiting, w)
		conn.mu.Unlock()
	}()
	if err := conn.send(ctx, send); err != nil {
		return nil, wire.Broken(errs.ContextError(ctx, err))
	}
	select {
	case s := <-w.found:
		return s, nil
	case <-conn.done:
		err := errors.New("the XMPP server closed the connection")
		if conn.err != nil {
			err = fmt.Errorf("the XMPP connection ended: %w", conn.err)
		}
		return nil, wire.Broken(errs.ContextError(ctx, err))
	case <-ctx.Done():
		return nil, wire.Broken(context.Cause(ctx))
	}
}

func (conn *connection) send(ctx context.Context, stanzas []xml.TokenReader) error {
	defer wire.InterruptOnDone(ctx, conn.conn)()
	for _, r := range stanzas {
		if err := conn.session.Send(context.WithoutCancel(ctx), r); err != nil {
			return err
		}
	}
	return nil
}

// HandleXMPP passes a stanza on to the exchanges that wait for it.
func (conn *connection) HandleXMPP(r xmlstream.TokenReadEncoder, start *xml.StartElement) error {
	s := new(incomingStanza)
	if err := xml.NewTokenDecoder(xmlstream.MultiReader(xmlstream.Token(*start), r)).Decode(s); err != nil {
		return err
	}
	s.XMLName = start.Name
	conn.mu.Lock()
	defer conn.mu.Unlock()
	if s.XMLName.Local == "presence" && s.Type == "unavailable" && s.isSelf() {
		room, _ := splitOccupant(s.From)
		delete(conn.rooms, room)
	}
	for w := range conn.waiting {
		if w.match(s) {
			delete(conn.waiting, w)
			w.found <- s
		}
	}
	return nil
}

// Ping returns when the server has answered a ping (XEP-0199). Any answer
// counts, because not every server supports pings.
func (conn *connection) Ping(ctx context.Context) error {
	conn.conn.ResetReadLimit()
	id := newID()
	_, err := conn.exchange(ctx, 0, func(s *incomingStanza) bool { return s.ID == id }, conn.pingStanza(id))
	return err
}

// pingStanza returns a ping to the server.
func (conn *connection) pingStanza(id string) xml.TokenReader {
	return stanza.IQ{ID: id, To: conn.session.LocalAddr().Domain(), Type: stanza.GetIQ}.Wrap(xmlstream.Wrap(nil,
		element("urn:xmpp:ping", "ping")))
}

// Close ends the session and waits for the goroutine to end.
func (conn *connection) Close() error {
	_ = conn.conn.SetDeadline(time.Now().Add(time.Second))
	_ = conn.session.Close()
	err := conn.conn.Close()
	<-conn.done
	return err
}
