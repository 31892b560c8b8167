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

// open connects, signs in and announces our presence.
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
		conn.err = session.Serve(conn)
	}()
	if err := x.announce(ctx, c, conn); err != nil {
		_ = conn.Close()
		return nil, errs.ContextError(ctx, err)
	}
	return conn, nil
}

// announce sends our presence. Its priority is negative, so that the server does
// not deliver messages for the account to us, but to its owner (RFC 6121,
// section 4.7.2.3).
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

// negotiate opens a session: TLS, sign-in and resource binding (RFC 6120, section
// 4.3).
func (x *service) negotiate(ctx context.Context, c *notifier.Client, raw *wire.Conn) (*mellium.Session, error) {
	// The certificate must be for the domain of the account, not for the name
	// of the server (RFC 6120, section 13.7.2.1).
	config := wire.TLSConfig(c, x.account.Domainpart())
	features := []mellium.StreamFeature{mellium.BindResource(), x.signIn(ctx, c)}
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
	// The library resets deadlines when its context ends. So it gets a context
	// that does not end, and the connection has the deadline.
	session, err := mellium.NewClientSession(context.WithoutCancel(ctx), x.account, rw, features...)
	const noSignIn = "the XMPP server offers no way to sign in; it may require TLS: use xmpps:// or mode=tls"
	switch {
	case isClosed(err):
		return nil, errors.New("the XMPP server closed the connection without a reason")
	case err != nil && strings.Contains(err.Error(), "features advertised out of order"): // the library does not export this error
		return nil, notifier.Denied(errors.New(noSignIn))
	case err != nil:
		return nil, err
	case session.State()&mellium.Authn == 0:
		return nil, notifier.Denied(errors.New(noSignIn))
	}
	return session, nil
}

// isClosed reports whether err means that the server closed the connection,
// perhaps in the middle of a stream.
func isClosed(err error) bool {
	syntax, ok := errors.AsType[*xml.SyntaxError](err)
	return errors.Is(err, io.EOF) || ok && syntax.Msg == "unexpected EOF"
}
