package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

var _ = notifier.Register[kumulos]()

// kumulos pushes to all devices that have the app, through Kumulos.
type kumulos struct {
	apiKey    string
	serverKey string
}

func (k *kumulos) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Kumulos", "https://docs.kumulos.com/"
	s.Setup = "API key and server key are on the dashboard of your app in the Kumulos console."
	s.Groups(notifier.GroupPhone)
	s.Words("optimove")
	s.URL("kumulos://{apikey}/{serverkey}")
	s.Limits = markup.Limits{Title: 64, Body: 240}
	s.Secret(&k.apiKey, "apikey", "API key").Match(uuid4).Example("8b799edf-6f98-4d3a-9be7-2862fb4e5752")
	s.Secret(&k.serverKey, "serverkey", "server key").Match(`^[A-Z0-9+]{36}$`).Example("0123456789abcdef0123456789abcdef0123")
}

func (k *kumulos) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	_, err := c.Do(ctx, &notifier.Request{
		URL:      "https://messages.kumulos.com/v2/notifications",
		User:     k.apiKey,
		Password: k.serverKey,
		Body: notifier.JSON(map[string]any{
			"target":  map[string]bool{"broadcast": true},
			"content": map[string]string{"title": m.Title, "message": m.Body},
		}),
	})
	return err
}
