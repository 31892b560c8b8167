package services

import (
	"context"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

var _ = notifier.Register[zulip]()

// zulip posts to streams and users of a Zulip organization as a bot.
type zulip struct {
	bot, organization, token string
	targets                  []string
}

func (z *zulip) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Zulip", "https://zulip.com/api/send-message"
	s.URL("zulip://{botname}@{organization}/{token}[/{targets...}]")
	s.Limits = markup.Limits{Title: 60, Body: 10000}
	s.String(&z.bot, "botname", "", "name of the bot, with or without -bot").Match(`^[A-Z0-9_-]{1,32}$`).Example("alerts")
	s.String(&z.organization, "organization", "", "organization at zulipchat.com, or host").Match(`^[A-Z0-9_-]{1,32}(\.[A-Z0-9._-]+)?$`).Example("example")
	s.Secret(&z.token, "token", "API key of the bot").Match(`^[A-Z0-9]{32}$`).Example("abcdefghijklmnopqrstuvwxyz012345")
	s.List(&z.targets, "targets", "streams and users' addresses; the stream general if none").Alias("to").Split(zulipTargets)
}

// zulipTargets takes lists apart, where slashes and the # of a stream separate
// items, too.
func zulipTargets(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",; \t\r\n/\\#", r) })
}

// Finish takes off the ending that the service gives to the names of bots.
func (z *zulip) Finish(*notifier.Schema) error {
	z.bot = strings.TrimSuffix(z.bot, "-bot")
	return nil
}

func (z *zulip) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	host := z.organization
	if !strings.Contains(host, ".") {
		host += ".zulipchat.com"
	}
	targets := z.targets
	if len(targets) == 0 {
		targets = []string{"general"}
	}
	return c.Steps.Each(ctx, targets, func(ctx context.Context, target string) error {
		kind := "stream"
		if _, err := notifier.Email(target); err == nil {
			kind = "private"
		}
		return checkedDo(ctx, c, &notifier.Request{
			URL:  "https://" + host + "/api/v1/messages",
			User: z.bot + "-bot@" + host, Password: z.token,
			Body: notifier.Form(notifier.Fields("type", kind, "to", target, "subject", m.Title, "content", m.Body)),
		}, "result", "msg")
	})
}
