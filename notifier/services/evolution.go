package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[evolution]()

// evolution sends WhatsApp messages through a self-hosted Evolution API.
type evolution struct {
	sms
	notifier.Server
	key, instance string
}

func (e *evolution) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Evolution API", "https://doc.evolution-api.com/"
	s.Setup = "apikey is AUTHENTICATION_API_KEY of your Evolution API server or the " +
		"key of the instance, which you connect to WhatsApp by scanning a QR code."
	s.Groups(notifier.GroupChat, notifier.GroupPhone)
	s.Words("whatsapp web", "whatsapp gateway", "baileys")
	s.URL("evolution[s]://{apikey}@{host}[:{port}]/{instance}/{targets...}")
	s.Server(&e.Server)
	e.describe(s, notifier.FullPhone)
	s.Format = notifier.Markdown
	// WhatsApp has no titles. Send writes the title in bold above the body.
	s.Limits = markup.Limits{Title: 32768, Body: 32768, InBody: true}
	// WhatsApp's markup has no links, and only a field of the API mentions people.
	s.Foreign = &notifier.ForeignText{Escape: chattext.AsIs}
	s.Secret(&e.key, "apikey", "API key").Example("0123456789ABCDEF0123456789ABCDEF")
	s.String(&e.instance, "instance", "", "name of the instance").Example("alerts")
	s.Param("host").Example("evolution.example.com")
}

func (e *evolution) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	text := evolutionText(m)
	return c.Steps.Each(ctx, e.targets, func(ctx context.Context, number string) error {
		return c.PostJSON(ctx, e.URL("message", "sendText", e.instance),
			map[string]string{"number": number, "text": text}, "apikey", e.key)
	})
}
