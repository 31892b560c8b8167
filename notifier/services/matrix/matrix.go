package matrix

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/signin"
)

var _ = notifier.Register[service]()

// service writes into Matrix rooms, as a user of a server or through a webhook
// bridge.
type service struct {
	notifier.Server
	token, mode, path, version, msgtype, format string
	targets                                     []string
	image, discovery, homeOnIDs                 bool
	session                                     signin.Session[*session]
	events                                      atomic.Int64 // those that were numbered
}

func (x *service) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Matrix", "https://spec.matrix.org/latest/client-server-api/"
	s.URL("matrix[s]://{host}[:{port}][/{targets...}]",
		"matrix[s]://{user}:{token}@{host}[:{port}][/{targets...}]",
		"matrix[s]://{token}@{host}[:{port}][/{targets...}]",
		"matrix[s]://[{user}@]{token}")
	s.Native("https://webhooks.t2bot.io/api/v1/matrix/hook/{token}?mode=t2bot")
	s.Attachments = true
	s.Host(&x.Host, "host", "name or address of the server")
	s.Int(&x.Port, "port", 0, "port of the server").Range(1, 65535).NoDefault().Example("8080")
	s.String(&x.User, "user", "", "user name; of a webhook the name that is shown")
	s.Secret(&x.token, "token", "password; or an access token, or a webhook's token").Alias("password", "pass").
		Example("t2bothookt2bothookt2bothookt2bothookt2bothookt2bothookt2bothook1")
	s.List(&x.targets, "targets", "#aliases, !ids and @users; all joined rooms if none").Alias("to").
		Normalize(parseTarget).Example("#room")
	s.Choice(&x.mode, "mode", "", []string{"off", "matrix", "slack", "t2bot", "hookshot"}, "kind of webhook; off to be a user")
	s.String(&x.path, "path", "/webhook", "path of hookshot's webhooks")
	s.Choice(&x.version, "version", "3", []string{"2", "3"}, "version of the server's API").Alias("v")
	s.Choice(&x.msgtype, "msgtype", "text", []string{"text", "notice"}, "whether the message is a notice of a program")
	s.Choice(&x.format, "format", "text", []string{"text", "markdown", "html"}, "what the message is converted to").Lenient()
	s.Bool(&x.image, "image", false, "show a picture for the type; t2bot and version 2 only")
	s.Bool(&x.discovery, "discovery", true, "ask a matrixs:// server for the address of its API")
	s.Bool(&x.homeOnIDs, "hsreq", true, "complete a room's id with the user's server")
}

var (
	t2botToken    = regexp.MustCompile(`(?i)^[a-z0-9]{64}$`)
	targetPattern = regexp.MustCompile(`^(#|!|@|&#33;|%21|%23|%40)?([^\s:#!@]+)(:[A-Za-z0-9.-]+(:[0-9]+)?)?$`)
	sigilReplacer = strings.NewReplacer("&#33;", "!", "%21", "!", "%23", "#", "%40", "@", "%3A", ":", "%3a", ":")
)

// parseTarget checks a target and writes it as the API wants it, though
// perhaps still without a server.
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

// Finish finds out the mode and its limits.
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
		return errors.New("name a room behind the server, or mode=off for all rooms; " +
			"what stands alone is the token of a webhook at t2bot.io, which has 64 letters and digits")
	case x.mode == "matrix" || x.mode == "slack" || x.mode == "hookshot":
		if x.Host == "" || x.token == "" {
			return errors.New("a webhook needs the server and the token, as in matrixs://name:token@example.com")
		}
	case x.mode != "t2bot":
		// Events have 64 KiB; with markup the text is in them twice.
		if s.Limits.Body = 60000; s.Format != notifier.Text {
			s.Limits.Body = 29000
		}
		return nil
	}
	s.Attachments = false
	return nil
}

func (x *service) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	if x.mode != "" && x.mode != "off" {
		return x.hook(ctx, c, m)
	}
	signIn := func(ctx context.Context) (*session, time.Duration, error) {
		s, err := x.signIn(ctx, c, m.Identity.Name)
		return s, 0, err
	}
	return x.session.Do(ctx, c, signIn, func(s *session) error {
		return s.send(ctx, c, x, m)
	})
}
