package xmpp

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"mellium.im/xmlstream"
	mellium "mellium.im/xmpp"
	"mellium.im/xmpp/stanza"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

// open connects, signs in and becomes visible.
func (x *service) open(ctx context.Context, c *notifier.Client) (*connection, error) {
	raw, err := wire.Dial(ctx, c, cmp.Or(x.server, x.Host), x.Port, nil)
	if err != nil {
		return nil, err
	}
	ctx, cancel := wire.WithAnswerTimeout(ctx, c.AnswerTimeout())
	defer cancel()
	defer wire.InterruptOnDone(ctx, raw)()
	session, err := x.negotiate(ctx, c, raw)
	if err != nil {
		_ = raw.Close()
		return nil, errs.ContextError(ctx, err)
	}
	conn := &connection{
		conn: raw, session: session, nick: cmp.Or(x.name, x.account.Localpart()),
		done: make(chan struct{}), waiting: map[*waiter]struct{}{}, rooms: map[string]string{},
	}
	go func() {
		defer close(conn.done)
		conn.ended = session.Serve(conn)
	}()
	if err := x.announce(ctx, c, conn); err != nil {
		_ = conn.Close()
		return nil, errs.ContextError(ctx, err)
	}
	return conn, nil
}

// announce makes the session one that others see. With a negative priority,
// messages to the account do not come to us but wait for whom they are meant
// (RFC 6121, section 4.7.2.3).
func (x *service) announce(ctx context.Context, c *notifier.Client, conn *connection) error {
	if x.roster {
		query := stanza.IQ{ID: newID(), Type: stanza.GetIQ}
		_, err := conn.exchange(ctx, c.AnswerTimeout(), func(s *incomingStanza) bool { return s.ID == query.ID },
			query.Wrap(xmlstream.Wrap(nil, element("jabber:iq:roster", "query"))))
		if err != nil {
			return err
		}
	}
	return conn.send(ctx, []xml.TokenReader{stanza.Presence{}.Wrap(textElement("priority", "-1"))})
}

// negotiate goes from the first byte to a session (RFC 6120, section 4.3).
func (x *service) negotiate(ctx context.Context, c *notifier.Client, raw *wire.Conn) (*mellium.Session, error) {
	// What has to fit the certificate is the domain of the account, whatever
	// machine serves it (RFC 6120, section 13.7.2.1).
	config := wire.TLSConfig(c, x.account.Domainpart())
	features := []mellium.StreamFeature{mellium.BindResource(), x.signIn()}
	var rw io.ReadWriter = raw
	switch x.security {
	case securityStartTLS:
		features = append(features, mellium.StartTLS(config))
	case securityTLS:
		config.NextProtos = []string{"xmpp-client"} // XEP-0368
		secure := tls.Client(raw, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		rw = secure
	}
	// The library forgets deadlines when its context ends, so it gets one
	// that does not; the connection has ours.
	session, err := mellium.NewClientSession(context.WithoutCancel(ctx), x.account, rw, features...)
	const noSignIn = "the XMPP server offers no way to sign in; it may demand TLS, which xmpps:// and mode=tls have"
	switch {
	case isClosed(err):
		return nil, errors.New("the XMPP server closed the connection without a reason")
	case err != nil && strings.Contains(err.Error(), "features advertised out of order"): // one that the library does not export
		return nil, errors.New(noSignIn)
	case err != nil:
		return nil, err
	case session.State()&mellium.Authn == 0:
		return nil, errors.New(noSignIn)
	}
	return session, nil
}

// isClosed says whether the other side has closed the connection, perhaps
// in the middle of a stream.
func isClosed(err error) bool {
	syntax, ok := errors.AsType[*xml.SyntaxError](err)
	return errors.Is(err, io.EOF) || ok && syntax.Msg == "unexpected EOF"
}
