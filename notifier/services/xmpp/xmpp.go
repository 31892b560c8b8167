package xmpp

import (
	"context"
	"errors"
	"time"

	"mellium.im/xmpp/jid"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

var _ = notifier.Register[service]()

// service sends to users and rooms from an account of an XMPP server.
type service struct {
	notifier.Server
	wire.Persistent[*connection]
	targets   []string
	server    string
	mode      string // the parameter
	security  string // the mode in use
	roster    bool
	subject   bool
	keepalive bool
	scramPlus bool
	name      string

	account jid.JID
}

// Whether and how the connection uses TLS.
const (
	securityStartTLS = "starttls"
	securityTLS      = "tls"
	securityNone     = "none"
)

func (x *service) Describe(s *notifier.Schema) {
	s.Name, s.Site = "XMPP", "https://xmpp.org/rfcs/rfc6121.html"
	s.Setup = "The user and password are those of an account (JID) on your XMPP server."
	s.Groups(notifier.GroupChat)
	s.NoWeb()
	s.Words("jabber", "ejabberd", "prosody", "snikket", "conversations", "openfire")
	s.URL("xmpp[s]://{user}:{password}@{host}[:{port}][/{targets...}]")
	s.Hints(
		notifier.Hint{Text: `(?<user>[^\s@:/?#]+)@(?<host>[\w-]*(?:xmpp|jabber)[\w.-]*\.[a-z]+)`, Is: "a JID"},
	)
	s.Limits = markup.Limits{Body: 32768}
	s.Server(&x.Server)
	s.Param("user").Example("alerts")
	s.Param("password").Example("pa55word")
	s.List(&x.targets, "targets", "user, user@host and #room@host; default: the user itself").
		Alias("to").Normalize(checkTarget).DropInvalid().Example("bob")
	s.Host(&x.server, "xmpp", "server to connect to, if it is not the host").Dialled()
	s.Choice(&x.mode, "mode", "", []string{securityStartTLS, securityTLS, securityNone},
		"encryption; default: none for xmpp, starttls for xmpps")
	s.Bool(&x.roster, "roster", false, "fetch the list of contacts first")
	s.Bool(&x.subject, "subject", false, "send the title as a subject")
	s.Bool(&x.keepalive, "keepalive", false, "keep the connection open for an hour, not a minute")
	s.Bool(&x.scramPlus, "scramplus", true, "bind the sign-in to the TLS connection if the server can")
	s.String(&x.name, "name", "", "nickname in rooms; default: the user").Match(`^[a-zA-Z0-9_]+$`).Lenient()
}

// addressPattern matches an address. The domain is optional.
var addressPattern = lazyregexp.New(`^(#?)([^@\s/]+)(?:@([^@\s/]+))?(?:/(\S+))?$`)

// parseJID reads an address (RFC 7622). Without a domain, it is on host. room
// reports whether it begins with #.
func parseJID(text, host string) (to jid.JID, room bool, err error) {
	m := addressPattern.FindStringSubmatch(text)
	if m == nil {
		return to, false, errors.New("is not an XMPP address")
	}
	if m[3] != "" {
		host = m[3]
	}
	if to, err = jid.New(m[2], host, m[4]); err != nil {
		return to, false, errors.New("is not an XMPP address")
	}
	return to, m[1] != "", nil
}

func checkTarget(text string) (string, error) {
	_, _, err := parseJID(text, "example.com")
	return text, err
}

func (x *service) Finish(s *notifier.Schema) (err error) {
	var room bool
	x.account, room, err = parseJID(x.User, x.Host)
	if err != nil || room {
		return errors.New("the user is not an XMPP address; write its name or, if its domain is not the host, name%40domain")
	}
	for _, target := range x.targets {
		if _, _, err := parseJID(target, x.Host); err != nil {
			return errors.New("the host cannot be the domain of an XMPP address")
		}
	}
	x.security = x.mode
	if x.Secure && x.mode != securityTLS {
		x.security = securityStartTLS
	} else if x.mode == "" {
		x.security = securityNone
	}
	if x.Port == 0 {
		x.Port = 5222
		if x.security == securityTLS {
			x.Port = 5223
		}
	}
	if x.subject {
		s.Limits.Title = 250
	}
	return nil
}

// keepaliveTimeout is the time after which a connection with keepalive is
// closed if it has no message.
const keepaliveTimeout = time.Hour

func (x *service) idleTimeout() time.Duration {
	if x.keepalive {
		return keepaliveTimeout
	}
	return wire.IdleTimeout
}

func (x *service) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	targets := x.targets
	if len(targets) == 0 {
		targets = []string{x.User}
	}
	open := func(ctx context.Context) (*connection, error) { return x.open(ctx, c) }
	return x.Do(ctx, x.idleTimeout(), open, func(ctx context.Context, conn *connection) error {
		conn.conn.ResetReadLimit()
		return c.Steps.Each(ctx, targets, func(ctx context.Context, target string) error {
			to, isRoom, err := x.address(target)
			switch {
			case err != nil:
				return err
			case isRoom:
				return conn.sendRoom(ctx, c, to, m)
			}
			return conn.sendUser(ctx, c, to, m)
		})
	})
}

// address returns the address of a target, and whether it is a room.
func (x *service) address(target string) (to jid.JID, isRoom bool, err error) {
	if len(x.targets) == 0 {
		return x.account.Bare(), false, nil // the user itself
	}
	return parseJID(target, x.Host)
}
