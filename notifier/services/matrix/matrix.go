package matrix

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/signin"
)

var _ = notifier.Register[service]()

// service sends to Matrix rooms, as a user of a homeserver or through a webhook
// bridge.
type service struct {
	notifier.Server
	token, mode, path, version, msgtype, format string
	targets                                     []string
	image, discovery, homeOnIDs                 bool
	e2ee                                        int
	session                                     signin.Session[*session]
	events                                      atomic.Int64 // counts events, for their transaction ids
}

func (x *service) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Matrix", "https://spec.matrix.org/latest/client-server-api/"
	s.Setup = "Use the name and the password of an account for this gateway, " +
		"or the access token that Element shows at the end of Settings, Help & About."
	s.Groups(notifier.GroupChat)
	s.Words("element", "synapse", "dendrite", "conduit", "beeper", "schildichat")
	s.URL("matrix[s]://{host}[:{port}][/{targets...}]",
		"matrix[s]://{user}:{token}@{host}[:{port}][/{targets...}]",
		"matrix[s]://{token}@{host}[:{port}][/{targets...}]",
		"matrix[s]://[{user}@]{token}")
	s.Way(3, "with an access token")
	s.Way(2, "with a user name and a password")
	s.Way(4, "with a webhook of t2bot.io")
	s.Way(1, "without an account, as a guest")
	s.Native("https://webhooks.t2bot.io/api/v1/matrix/hook/{token}?mode=t2bot")
	s.Hints(
		notifier.Hint{Text: `(?<token>(?:syt|mat|mct)_\w{10,})`, Is: "an access token"},
		notifier.Hint{Text: `@(?<user>[\w.=/+-]+):(?<host>[\w.-]+\.[a-z]+)`, Is: "the ID of a user"},
		notifier.Hint{Text: `(?<targets>[#!][^\s:]+:(?<host>[\w.-]+\.[a-z]+))`, Is: "the name of a room"},
		notifier.Hint{Text: `https://matrix\.to/#/(?<targets>[#!][^\s:]+:(?<host>[\w.-]+\.[a-z]+))(?:\?.*)?`, Is: "a link to a room"},
		notifier.Hint{Text: `https://matrix\.to/#/@(?<user>[^\s:]+):(?<host>[\w.-]+\.[a-z]+)`, Is: "a link to a user"},
		notifier.Hint{Text: `(?<address>)/_matrix\S*`, Is: "the address of a server"},
	)
	s.Attachments = true
	// Events say that they mention nobody; events of bridges cannot say that.
	s.Foreign = &notifier.ForeignText{}
	s.Host(&x.Host, "host", "name or address of the server").Dialled().Example("matrix.example.com")
	s.Int(&x.Port, "port", 0, "port of the server").Range(1, 65535).NoDefault()
	s.String(&x.User, "user", "", "user name; for a webhook the name to show").Example("alerts")
	s.Secret(&x.token, "token", "password, access token or token of a webhook").Alias("password", "pass").
		Example("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
	s.List(&x.targets, "targets", "#aliases, !ids and @users; all joined rooms if none").Alias("to").
		Normalize(parseTarget).Example("#ops")
	s.Choice(&x.mode, "mode", "", []string{"off", "matrix", "slack", "t2bot", "hookshot"}, "kind of webhook; off: send as a user")
	s.String(&x.path, "path", "/webhook", "path of the webhooks of hookshot")
	s.Choice(&x.version, "version", "3", []string{"2", "3"}, "version of the server's API").Alias("v")
	s.Choice(&x.msgtype, "msgtype", "text", []string{"text", "notice"}, "type of message; a notice is from a program")
	s.Choice(&x.format, "format", "text", []string{"text", "markdown", "html"}, "format to convert the message to").Lenient()
	s.Bool(&x.image, "image", false, "show an icon for the type of the message; t2bot and version 2 only")
	s.Bool(&x.discovery, "discovery", true, "ask a matrixs:// server for the address of its API")
	s.Enum(&x.e2ee, "e2ee", "", notifier.YesNo(e2eeYes, e2eeNo), "encrypt for encrypted rooms; no: send in clear; default: yes").Lenient()
	s.Bool(&x.homeOnIDs, "hsreq", true, "add the user's server to the id of a room")
}

// The values of the parameter e2ee.
const (
	e2eeYes = 1
	e2eeNo  = 2
)

// protects reports whether a message to an encrypted room must be encrypted.
func (x *service) protects() bool { return x.e2ee != e2eeNo }

var (
	t2botToken    = lazyregexp.New(`(?i)^[a-z0-9]{64}$`)
	targetPattern = lazyregexp.New(`^(#|!|@|&#33;|%21|%23|%40)?([^\s:#!@]+)(:[A-Za-z0-9.-]+(:[0-9]+)?)?$`)
	sigilReplacer = strings.NewReplacer("&#33;", "!", "%21", "!", "%23", "#", "%40", "@", "%3A", ":", "%3a", ":")
)

// parseTarget returns a target in the form of the API. Its server may be
// missing.
func parseTarget(text string) (string, error) {
	text = sigilReplacer.Replace(text)
	m := targetPattern.FindStringSubmatch(text)
	if m == nil {
		return "", errors.New("must be #alias:server or !id:server of a room, or @user:server")
	}
	if m[1] == "" {
		text = "#" + text
	}
	return text, nil
}

// Finish sets the mode and its limits.
func (x *service) Finish(s *notifier.Schema) error {
	x.Secure = s.Scheme == "matrixs"
	if x.mode == "" && len(x.targets) == 0 && (x.User == "" || x.Host == "") {
		x.mode = "t2bot"
	}
	x.path = "/" + strings.Trim(strings.TrimSpace(x.path), "/")
	x.session.SignOut = func(ctx context.Context, c *notifier.Client, s *session) error { return s.logout(ctx, c) }
	s.Format = notifier.Format(x.format)
	s.Limits.Body = 65000
	switch {
	case x.mode == "t2bot" && !t2botToken.MatchString(x.token):
		return errors.New("add a room after the server, or mode=off for all rooms; " +
			"a single name is taken for the token of a webhook at t2bot.io, which has 64 letters and digits")
	case x.mode == "matrix" || x.mode == "slack" || x.mode == "hookshot":
		if x.Host == "" || x.token == "" {
			return errors.New("a webhook needs a server and a token, as in matrixs://name:token@example.com")
		}
	case x.mode != "t2bot":
		// An event has at most 64 KiB. With markup it has the text twice, and an
		// encrypted one is a third longer.
		if s.Limits.Body = 60000; s.Format != notifier.Text {
			s.Limits.Body = 29000
		}
		if x.protects() {
			s.Limits.Body = s.Limits.Body * 7 / 10
		}
		return nil
	}
	s.Attachments = false
	s.Foreign = bridged
	return nil
}

var bridged = &notifier.ForeignText{Title: true, Mentions: chattext.BreakMentions}

func (x *service) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	if x.mode != "" && x.mode != "off" {
		return x.postWebhook(ctx, c, m)
	}
	restored := false
	signIn := func(ctx context.Context) (*session, time.Duration, error) {
		s, err := x.signIn(ctx, c, m.Identity.Name)
		restored = s != nil && s.restored
		return s, 0, err
	}
	send := func(s *session) error { return s.send(ctx, c, x, m) }
	err := x.session.Do(ctx, c, signIn, send)
	if restored && signin.IsExpired(err) {
		// The server has ended the session since the last start: sign in.
		c.DropState(ctx, savedSession)
		err = x.session.Do(ctx, c, signIn, send)
	}
	return err
}
