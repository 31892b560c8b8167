package services

import (
	"context"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[pushed]()

// pushed pushes to the subscribers of a Pushed app or of its channels, or to
// single users.
type pushed struct {
	key, secret string
	targets     []string // #channel, @user, or channel
}

func (p *pushed) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Pushed", "https://about.pushed.co/docs/api"
	s.Setup = "Create an app in Pushed's developer panel and copy its app key and app secret."
	s.Groups(notifier.GroupPhone)
	s.Words("iphone", "android")
	s.URL("pushed://{app_key}/{app_secret}[/{targets...}]")
	s.Limits.Title, s.Limits.Body = 0, 160
	s.Secret(&p.key, "app_key", "key of the app").Example("AbCdEf0123456789GhIj")
	s.Secret(&p.secret, "app_secret", "secret of the app").Example("AbCdEf0123456789GhIjKlMnOpQrStUvAbCdEf0123456789GhIjKlMnOpQrStUv")
	s.List(&p.targets, "targets", "#channels and @users; default: all subscribers of the app").Alias("to").Match("^[#@]?[a-z0-9]+$")
}

func (p *pushed) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	targets := p.targets
	if len(targets) == 0 {
		targets = []string{""}
	}
	return c.Steps.Each(ctx, targets, func(ctx context.Context, target string) error {
		payload := map[string]string{
			"app_key": p.key, "app_secret": p.secret, "content": m.Body, "target_type": "app",
		}
		if user, ok := strings.CutPrefix(target, "@"); ok {
			payload["target_type"], payload["pushed_id"] = "pushed_id", user
		} else if target != "" {
			payload["target_type"], payload["target_alias"] = "channel", strings.TrimPrefix(target, "#")
		}
		return c.PostJSON(ctx, "https://api.pushed.co/1/push", payload)
	})
}
