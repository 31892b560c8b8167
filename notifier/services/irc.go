package services

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

var _ = notifier.Register[irc]()

// irc writes to channels and users of an IRC network.
type irc struct {
	notifier.Server
	kept[*ircConn]
	targets []string // #channel, #channel:key or @user
	nick    string
	name    string
	mode    string // as the URL has it
	signIn  string // as it is done
	join    bool
}

// The ways to sign in.
const (
	ircServer   = "server"
	ircNickServ = "nickserv"
	ircZNC      = "znc"
	ircNone     = "none"
)

func (i *irc) Describe(s *notifier.Schema) {
	s.Name, s.Site = "IRC", "https://modern.ircdocs.horse/"
	s.URL("irc[s]://[{user}[:{password}]@]{host|targets}[:{port}][/{targets...}]")
	s.Limits = markup.Limits{Body: 380}
	s.Server(&i.Server)
	s.List(&i.targets, "targets", "#channel, #channel:key and @user").Alias("to").Item(ircTarget).SecretAfter(":").DropInvalid().Example("#ops")
	s.String(&i.nick, "nick", "", "nickname; by default the user, or one made up")
	s.String(&i.name, "name", "", "real name")
	s.Bool(&i.join, "join", true, "enter a channel before writing to it")
	s.Choice(&i.mode, "mode", "", []string{ircZNC, ircServer, ircNickServ, ircNone}, "what the password is for; by default the server")
}

var (
	ircChannel = regexp.MustCompile(`^[#&][^\x00-\x20\x7f,:@]+(:[^\x00-\x20\x7f,]+)?$`)
	ircUser    = regexp.MustCompile(`^[^\x00-\x20\x7f,:@#&!*?$.+~%][^\x00-\x20\x7f,:@#&!*?]*$`)
)

func ircTarget(text string) (string, error) {
	if ircChannel.MatchString(text) {
		return text, nil
	}
	if text = strings.TrimPrefix(text, "@"); ircUser.MatchString(text) {
		return "@" + text, nil
	}
	return "", errors.New("is neither #channel nor @user")
}

// ircNetworks are known to speak TLS and to have accounts at NickServ.
var ircNetworks = regexp.MustCompile(`(?i)\.(libera\.chat|synirc\.net)$`)

func (i *irc) Finish(*notifier.Schema) error {
	i.signIn = ircServer
	if ircNetworks.MatchString(i.Host) && i.Port == 0 {
		i.Secure, i.signIn = true, ircNickServ
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
		return errors.New("names nobody to write to; write channels and users behind the host, as in irc://irc.example.com/#ops/@bob")
	case i.signIn == ircZNC && (i.User == "" || i.Password == ""):
		return errors.New("mode=znc signs in with a user and a password; write both before the host")
	case strings.ContainsAny(i.User+i.Password+i.nick+i.name, "\x00\r\n"):
		return errors.New("user, password, nick and name cannot hold a line break")
	case strings.Contains(i.nick, " "):
		return errors.New("nick cannot hold a space")
	}
	return nil
}

func (i *irc) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	open := func(ctx context.Context) (*ircConn, error) { return i.open(ctx, c, m.Identity) }
	return i.with(ctx, idleTime, open, func(ctx context.Context, conn *ircConn) error {
		conn.limited.renew()
		var errs []error
		for n, target := range i.targets {
			err := i.deliver(ctx, c, conn, target, m.Body)
			if errors.Is(err, errBroken) {
				return err
			}
			if err != nil && len(i.targets) > 1 {
				err = fmt.Errorf("target %d of %d: %w", n+1, len(i.targets), err)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

// deliver writes the body to one target. Each line waits for the server to
// have taken the one before, so that it need not throw us out for flooding.
func (i *irc) deliver(ctx context.Context, c *notifier.Client, conn *ircConn, target, body string) error {
	name, key, _ := strings.Cut(target, ":")
	if user, ok := strings.CutPrefix(name, "@"); ok {
		name = user
	} else if i.join || key != "" {
		if err := conn.join(ctx, c, name, key); err != nil {
			return err
		}
	}
	for n, line := range ircLines(body, ircMaxText-len(name)) {
		err := c.Once(fmt.Sprint(target, " ", n), func() error {
			return conn.exchange(ctx, c.AnswerTimeout(), "the message", "PRIVMSG "+name+" :"+line)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
