package services

import (
	"context"
	"errors"
	"html"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[flock]()

// flock posts to Flock through a webhook, or as a bot to users and groups.
type flock struct {
	token, bot string
	targets    []string
	image      bool
}

func (f *flock) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Flock", "https://docs.flock.com/display/flockos/Messages"
	s.Setup = "At dev.flock.com choose Webhooks, Add an Incoming Webhook, and copy the URL, " +
		"whose last part is the token; to send to users and groups, use the token of a bot."
	s.Groups(notifier.GroupChat)
	s.URL("flock://[{botname}@]{token}[/{targets...}]")
	s.Native("https://api.flock.com/hooks/sendMessage/{token}")
	// Send escapes texts. In HTML, <user> mentions somebody.
	s.Foreign = &notifier.ForeignText{Escape: chattext.AsIs}
	s.Secret(&f.token, "token", "token of the webhook or of the bot").Match(`^[a-z0-9-]+$`).Example("01234567-89ab-cdef-0123-456789abcdef")
	s.String(&f.bot, "botname", "", "name to post under")
	s.List(&f.targets, "targets", "users as @id or u:id, and groups as #id or g:id").Alias("to").Normalize(flockTarget)
	s.Bool(&f.image, "image", true, "show the icon of the message type")
}

var flockID = lazyregexp.New(`(?i)^([@#]|[ug]:)?([a-z0-9_]+)$`)

// flockTarget returns Flock's ID of a user (u:…) or a group (g:…).
func flockTarget(text string) (string, error) {
	m := flockID.FindStringSubmatch(text)
	switch {
	case m == nil:
		return "", errors.New("is not the ID of a user or a group")
	case m[1] == "#" || strings.EqualFold(m[1], "g:"):
		return "g:" + m[2], nil
	}
	return "u:" + m[2], nil
}

func (f *flock) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	title, body := m.Title, m.Body
	if title != "" {
		title = "<b>" + html.EscapeString(title) + "</b><br/>"
	}
	if m.Format != notifier.HTML {
		body = html.EscapeString(body)
	}
	as := map[string]any{"name": f.bot, "profileImage": nil}
	if f.bot == "" {
		as["name"] = m.Identity.Name
	}
	if icon := m.Icon(72); f.image && icon != "" {
		as["profileImage"] = icon
	}
	payload := func(to string) map[string]any {
		p := map[string]any{"token": f.token, "flockml": "<flockml>" + title + body + "</flockml>", "sendAs": as}
		if to != "" {
			p["to"] = to
		}
		return p
	}
	if len(f.targets) == 0 {
		return c.PostJSON(ctx, "https://api.flock.com/hooks/sendMessage"+notifier.Path(f.token), payload(""))
	}
	return c.Steps.Each(ctx, f.targets, func(ctx context.Context, to string) error {
		return c.PostJSON(ctx, "https://api.flock.co/v1/chat.sendMessage", payload(to))
	})
}
