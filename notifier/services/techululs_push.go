package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[techulusPush]()

// techulusPush pushes to the devices of an account of Push by Techulus.
type techulusPush struct{ key string }

func (p *techulusPush) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Techulus Push", "https://docs.push.techulus.com/"
	s.Setup = "Copy the API key from your account at push.techulus.com."
	s.Groups(notifier.GroupPhone)
	s.Words("iphone", "android")
	s.URL("push://{apikey}")
	s.Limits.Body = 1000
	s.Secret(&p.key, "apikey", "API key").Match(uuid4).Example("8b799edf-6f98-4d3a-9be7-2862fb4e5752")
}

func (p *techulusPush) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return checkedDo(ctx, c, &notifier.Request{
		URL:    "https://push.techulus.com/api/v1/notify",
		Header: map[string]string{"X-Api-Key": p.key},
		Body:   notifier.JSON(map[string]string{"title": m.Title, "body": m.Body}),
	}, "success", "message")
}
