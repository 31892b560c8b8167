package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[misskey]()

// misskey posts a note on a Misskey server.
type misskey struct {
	notifier.Server
	token, visibility string
}

func (k *misskey) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Misskey", "https://misskey-hub.net/en/docs/for-developers/api/"
	s.Setup = "Generate an access token in the settings of Misskey and allow it to compose or delete notes."
	s.Groups(notifier.GroupSocial)
	s.Words("fediverse", "calckey", "firefish", "sharkey", "iceshrimp", "foundkey")
	s.URL("misskey[s]://{token}@{host}[:{port}]")
	s.Limits = markup.Limits{Body: 512}
	s.Foreign = &notifier.ForeignText{Escape: chattext.AsIs, Mentions: chattext.BreakAll}
	s.Server(&k.Server)
	s.Secret(&k.token, "token", "access token").Example("AbCdEf0123456789GhIjKlMnOpQrStUv")
	s.Choice(&k.visibility, "visibility", "public", []string{"public", "home", "followers", "specified"}, "who can read the note")
	s.Param("host").Example("misskey.example.com")
}

func (k *misskey) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return c.PostJSON(ctx, k.URL("api", "notes", "create"), map[string]string{
		"i": k.token, "text": m.Body, "visibility": k.visibility,
	})
}
