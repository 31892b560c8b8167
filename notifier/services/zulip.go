package services

import (
	"context"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[zulip]()

// zulip posts to streams and users of a Zulip organization as a bot.
type zulip struct {
	bot, organization, token string
	targets                  []string
}

func (z *zulip) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Zulip", "https://zulip.com/api/send-message"
	s.Setup = "Add a bot under Personal settings, Bots in Zulip and copy its API key; botname is the part of its e-mail address before -bot@."
	s.Groups(notifier.GroupChat)
	s.URL("zulip://{botname}@{organization}/{token}[/{targets...}]")
	s.Hints(
		notifier.Hint{Text: `(?<botname>[\w.-]+)-bot@(?<organization>[\w-]+)\.zulipchat\.com`, Is: "the e-mail address of a bot"},
	)
	s.Limits = markup.Limits{Title: 60, Body: 10000}
	// Zulip's Markdown has no escapes.
	s.Foreign = &notifier.ForeignText{Escape: chattext.AsIs, Mentions: chattext.BreakAll}
	s.String(&z.bot, "botname", "", "name of the bot, with or without -bot").Match(`^[A-Z0-9_-]{1,32}$`).Example("alerts")
	s.String(&z.organization, "organization", "", "organization at zulipchat.com, or the host name of a server").
		Match(`^[A-Z0-9_-]{1,32}(\.[A-Z0-9._-]+)?$`).Example("example")
	s.Secret(&z.token, "token", "API key of the bot").Match(`^[A-Z0-9]{32}$`).Example("abcdefghijklmnopqrstuvwxyz012345")
	s.List(&z.targets, "targets", "streams and e-mail addresses of users; default: the stream general").Alias("to").Split(zulipTargets)
}

// zulipTargets splits a list of targets. Slashes and the # of a stream separate
// targets, too.
func zulipTargets(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",; \t\r\n/\\#", r) })
}

// Finish removes the suffix that Zulip adds to the names of bots.
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
