package services

import (
	"context"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[ryver]()

// ryver posts to a webhook of a Ryver team.
type ryver struct {
	org, token, bot, mode string
	image                 bool
}

func (r *ryver) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Ryver", "https://support.ryver.com/hc/en-us/articles/360060494313-Inbound-Webhooks"
	s.Setup = "Create an incoming webhook under Integrations in Ryver and copy its URL, whose last part is the token."
	s.Groups(notifier.GroupChat)
	s.URL("ryver://[{botname}@]{organization}/{token}")
	s.Native("https://{organization}.ryver.com/application/webhook/{token}")
	s.Limits.Body = 1000
	s.Foreign = &notifier.ForeignText{Title: true, Escape: chattext.AsIs, Mentions: chattext.BreakAll}
	s.String(&r.org, "organization", "", "organization: the first part of its host name").Match(`^[a-z0-9_-]{3,32}$`).Example("example")
	s.Secret(&r.token, "token", "token of the webhook").Match(`^[a-z0-9]{15}$`).Example("ckhrjW8w672m6HG")
	s.String(&r.bot, "botname", "", "name to post under")
	s.Choice(&r.mode, "mode", "ryver", []string{"slack", "ryver"}, "kind of webhook")
	s.Bool(&r.image, "image", true, "show the icon of the message's type")
}

// ryverSlackText escapes characters that a Slack-compatible webhook reads as
// markup.
var ryverSlackText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func (r *ryver) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	text := m.Body
	if m.Title != "" {
		text = "**" + m.Title + "**\r\n" + text
	}
	if r.mode == "slack" {
		text = ryverSlackText.Replace(text)
	}
	source := map[string]any{"displayName": nil, "avatar": nil}
	if r.bot != "" {
		source["displayName"] = r.bot
	}
	if icon := m.Icon(72); r.image && icon != "" {
		source["avatar"] = icon
	}
	return c.PostJSON(ctx, "https://"+r.org+".ryver.com/application/webhook"+notifier.Path(r.token),
		map[string]any{"body": text, "createSource": source})
}
