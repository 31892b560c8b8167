package services

import (
	"context"
	"net/http"
	"strconv"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[signalgrid]()

// signalgrid pushes to the phones that listen to a channel of Signalgrid.
type signalgrid struct {
	key      string
	channels []string
	critical bool
}

func (g *signalgrid) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Signalgrid", "https://web.signalgrid.co/"
	s.Setup = "The client key is on the dashboard of Signalgrid, and each channel there has its token."
	s.Groups(notifier.GroupPhone)
	s.Words("critical alert")
	s.URL("signalgrid://{client_key}/{targets...}")
	s.Secret(&g.key, "client_key", "client key of the account").Match(`\S`).Normalize(signalgridKey).Example("0123456789abcdef")
	s.List(&g.channels, "targets", "channels to send to").Alias("to").Example("4fa2c8e0b1d35679")
	s.Bool(&g.critical, "critical", false, "sound also on a phone that is set to silent")
}

var signalgridPort = lazyregexp.New(`:[0-9]{1,5}$`)

// signalgridKey returns a client key without the port that Apprise ignores.
func signalgridKey(s string) (string, error) { return signalgridPort.ReplaceAllString(s, ""), nil }

func (g *signalgrid) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return c.Steps.Each(ctx, g.channels, func(ctx context.Context, channel string) error {
		_, err := c.Do(ctx, &notifier.Request{
			URL: "https://api.signalgrid.co/v1/push",
			Body: notifier.Form(notifier.Fields("client_key", g.key, "channel", channel, "title", m.Title, "body", m.Body,
				"type", signalgridTypes[m.Type], "critical", strconv.FormatBool(g.critical))),
			Accept: func(code int) bool { return code == http.StatusOK },
		})
		return err
	})
}

var signalgridTypes = map[notifier.Type]string{
	notifier.Info: "INFO", notifier.Success: "SUCCESS", notifier.Warning: "WARN", notifier.Failure: "CRIT",
}
