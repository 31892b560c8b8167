package services

import (
	"cmp"
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[spike]()

// spike opens an incident at Spike.
type spike struct{ token string }

func (k *spike) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Spike.sh", "https://docs.spike.sh/"
	s.Setup = "Create a webhook integration for a service in Spike and copy the token in its webhook URL."
	s.URL("spike://{token}")
	s.Native("https://api.spike.sh/v1/alerts/{token}")
	s.Secret(&k.token, "token", "key of the integration").Match(`^[a-z0-9]{32}$`).Example("1234567890abcdef1234567890abcdef")
}

func (k *spike) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return c.PostJSON(ctx, "https://api.spike.sh/v1/alerts"+notifier.Path(k.token),
		map[string]string{"message": cmp.Or(m.Title, m.Body), "description": m.Body})
}
