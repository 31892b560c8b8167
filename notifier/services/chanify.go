package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[chanify]()

// chanify pushes to the devices of a Chanify account.
type chanify struct{ token string }

func (h *chanify) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Chanify", "https://github.com/chanify/chanify#http-api"
	s.Setup = "Copy the token from the details of the channel in the Chanify app."
	s.Groups(notifier.GroupPhone)
	s.Words("iphone", "ios", "apple")
	s.URL("chanify://{token}")
	s.Limits.Title = 0
	s.Secret(&h.token, "token", "token of the channel").Match(`^[A-Z0-9._-]+$`).Example("CICz3JoGEiJBQkNERUY.mQ7x.kR2d9")
}

func (h *chanify) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return c.PostForm(ctx, "https://api.chanify.net/v1/sender"+notifier.Path(h.token)+"/", notifier.Fields("text", m.Body))
}
