package irc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

var _ = notifier.Register[service]()

// service sends to channels and users of an IRC network (RFC 2812).
type service struct {
	notifier.Server
	wire.Persistent[*connection]
	targets []string // #channel, #channel:key or @user
	nick    string
	name    string
	mode    string // the parameter
	signIn  string // the mode in use
	join    bool
}

// The ways to sign in.
const (
	modeServer   = "server"
	modeNickServ = "nickserv"
	modeZNC      = "znc"
	modeNone     = "none"
)

func (i *service) Describe(s *notifier.Schema) {
	s.Name, s.Site = "IRC", "https://modern.ircdocs.horse/"
	s.Setup = "Most networks need no account; if yours does, user and password are " +
		"those that you registered with NickServ or with the server (parameter mode)."
	s.Groups(notifier.GroupChat)
	s.NoWeb()
	s.Words("libera", "libera.chat", "oftc", "freenode", "efnet")
	s.URL("irc[s]://[{user}[:{password}]@]{host|targets}[:{port}][/{targets...}]")
	s.Limits = markup.Limits{Body: 380}
	s.Server(&i.Server)
	s.Param("host").Example("irc.example.com")
	s.List(&i.targets, "targets", "#channel, #channel:key and @user").Alias("to").Normalize(parseTarget).SecretPart(splitKey).Example("#ops")
	s.String(&i.nick, "nick", "", "nickname; default: the user, or a random one")
	s.String(&i.name, "name", "", "real name")
	s.Bool(&i.join, "join", true, "join a channel before sending to it")
	s.Choice(&i.mode, "mode", "", []string{modeZNC, modeServer, modeNickServ, modeNone}, "what the password is for; default: the server")
}

var (
	channelPattern = lazyregexp.New(`^[#&][^\x00-\x20\x7f,:@]+(:[^\x00-\x20\x7f,]+)?$`)
	userPattern    = lazyregexp.New(`^[^\x00-\x20\x7f,:@#&!*?$.+~%][^\x00-\x20\x7f,:@#&!*?]*$`)
)

func parseTarget(text string) (string, error) {
	if channelPattern.MatchString(text) {
		return text, nil
	}
	if text = strings.TrimPrefix(text, "@"); userPattern.MatchString(text) {
		return "@" + text, nil
	}
	return "", errors.New("must be a #channel or a @user")
}

// splitKey returns a target up to the key of a channel, and the key.
func splitKey(target string) (public, key string) {
	name, key, ok := strings.Cut(target, ":")
	if ok {
		name += ":"
	}
	return name, key
}

// nickServNetworks are networks with TLS and accounts at NickServ.
var nickServNetworks = lazyregexp.New(`(?i)\.(libera\.chat|synirc\.net)$`)

func (i *service) Finish(*notifier.Schema) error {
	i.signIn = modeServer
	if nickServNetworks.MatchString(i.Host) && i.Port == 0 {
		i.Secure, i.signIn = true, modeNickServ
	}
	if i.mode != "" {
		i.signIn = i.mode
	}
	if i.Port == 0 {
		i.Port = 6667
		if i.Secure {
			i.Port = 6697
		}
	}
	switch {
	case len(i.targets) == 0:
		return errors.New("the URL has no targets; write channels and users after the host, as in irc://irc.example.com/#ops/@bob")
	case i.signIn == modeZNC && (i.User == "" || i.Password == ""):
		return errors.New("mode=znc signs in with a user and a password; write both before the host")
	case strings.ContainsAny(i.User+i.Password+i.nick+i.name, "\x00\r\n"):
		return errors.New("user, password, nick and name cannot contain a line break")
	case strings.Contains(i.nick, " "):
		return errors.New("nick cannot contain a space")
	}
	return nil
}

func (i *service) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	open := func(ctx context.Context) (*connection, error) { return i.open(ctx, c, m.Identity) }
	return i.Do(ctx, wire.IdleTimeout, open, func(ctx context.Context, conn *connection) error {
		conn.conn.ResetReadLimit()
		var errs []error
		for n, target := range i.targets {
			err := i.deliver(ctx, c, conn, target, m.Body)
			if errors.Is(err, wire.ErrBroken) {
				return err
			}
			errs = append(errs, notifier.TargetError(n, len(i.targets), err))
		}
		return errors.Join(errs...)
	})
}

// deliver sends the body to one target, line by line. Each line waits until the
// server has handled the one before, so that it does not disconnect us for
// flooding.
func (i *service) deliver(ctx context.Context, c *notifier.Client, conn *connection, target, body string) error {
	name, key, _ := strings.Cut(target, ":")
	if user, ok := strings.CutPrefix(name, "@"); ok {
		name = user
	} else if i.join || key != "" {
		if err := conn.join(ctx, c, name, key); err != nil {
			return err
		}
	}
	for n, line := range splitLines(body, maxText-len(name)) {
		err := c.Steps.Once(fmt.Sprint(target, " ", n), func() error {
			return conn.exchange(ctx, c.AnswerTimeout(), "the message", "PRIVMSG "+name+" :"+line)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
