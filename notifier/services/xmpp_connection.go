package services

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
)

// xmppConn is a session with a server. A goroutine reads what comes until the
// connection closes.
type xmppConn struct {
	limited *limitedConn
	session *mellium.Session
	nick    string
	done    chan struct{} // closed when reading has ended
	ended   error         // why, once it has

	mu      sync.Mutex
	waiting map[*xmppWait]struct{}
	rooms   map[string]string // the nickname that we have, by room
}

// xmppWait is somebody who waits for a stanza.
type xmppWait struct {
	match func(*xmppStanza) bool
	found chan *xmppStanza
}

// exchange sends and waits for the stanza that matches.
func (conn *xmppConn) exchange(ctx context.Context, patience time.Duration, match func(*xmppStanza) bool, send ...xml.TokenReader) (*xmppStanza, error) {
	ctx, cancel := patient(ctx, patience)
	defer cancel()
	w := &xmppWait{match, make(chan *xmppStanza, 1)}
	conn.mu.Lock()
	conn.waiting[w] = struct{}{}
	conn.mu.Unlock()
	defer func() {
		conn.mu.Lock()
		delete(conn.waiting, w)
		conn.mu.Unlock()
	}()
	if err := conn.send(ctx, send); err != nil {
		return nil, broken(because(ctx, err))
	}
	select {
	case s := <-w.found:
		return s, nil
	case <-conn.done:
		err := errors.New("the XMPP server closed the connection")
		if conn.ended != nil {
			err = fmt.Errorf("the XMPP connection ended: %w", conn.ended)
		}
		return nil, broken(because(ctx, err))
	case <-ctx.Done():
		return nil, broken(context.Cause(ctx))
	}
}

func (conn *xmppConn) send(ctx context.Context, stanzas []xml.TokenReader) error {
	defer during(ctx, conn.limited)()
	for _, r := range stanzas {
		if err := conn.session.Send(context.WithoutCancel(ctx), r); err != nil {
			return err
		}
	}
	return nil
}

// HandleXMPP takes a stanza that has come to whoever waits for it.
func (conn *xmppConn) HandleXMPP(r xmlstream.TokenReadEncoder, start *xml.StartElement) error {
	s := new(xmppStanza)
	if err := xml.NewTokenDecoder(xmlstream.MultiReader(xmlstream.Token(*start), r)).Decode(s); err != nil {
		return err
	}
	s.XMLName = start.Name
	conn.mu.Lock()
	defer conn.mu.Unlock()
	if s.XMLName.Local == "presence" && s.Type == "unavailable" && s.self() {
		room, _ := xmppOccupant(s.From)
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

// ping asks the server for an answer, of any kind (XEP-0199).
func (conn *xmppConn) ping(ctx context.Context) error {
	conn.limited.renew()
	id := xmppID()
	_, err := conn.exchange(ctx, 0, func(s *xmppStanza) bool { return s.ID == id }, conn.pinging(id))
	return err
}

func (conn *xmppConn) pinging(id string) xml.TokenReader {
	return stanza.IQ{ID: id, To: conn.session.LocalAddr().Domain(), Type: stanza.GetIQ}.Wrap(xmlstream.Wrap(nil, xmppElement("urn:xmpp:ping", "ping")))
}

// Close ends the session, and the reading with it.
func (conn *xmppConn) Close() error {
	_ = conn.limited.SetDeadline(time.Now().Add(time.Second))
	_ = conn.session.Close()
	err := conn.limited.Close()
	<-conn.done
	return err
}
