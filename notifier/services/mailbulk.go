package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

// mailBulk is [mailAPI] for the providers that take several targets, and
// headers of the user's, in one message.
type mailBulk struct {
	mailAPI
	batch  bool
	header map[string]string
}

// describe binds what such providers take; their URLs begin with the sender.
func (m *mailBulk) describe(s *notifier.Schema, scheme string) {
	m.describeUserFirst(s, scheme)
	m.describeName(s)
	s.Bool(&m.batch, "batch", false, "send one message to all targets")
	s.Map(&m.header, "+", "headers", "header of the e-mail to add")
}

// eachBatch is [mailAPI.each] with most targets at a time, or one if the URL
// does not say batch.
func (m *mailBulk) eachBatch(ctx context.Context, c *notifier.Client, most int, send func(context.Context, mail.Letter) error) error {
	if !m.batch {
		most = 1
	}
	return m.each(ctx, c, most, send)
}

// mailRegion binds where the account is kept, for [mailHost].
func mailRegion(s *notifier.Schema, v *string) {
	s.Choice(v, "region", "us", []string{"us", "eu"}, "where the account is kept")
}

// mailHost is the address of a provider's API in a region.
func mailHost(region, domain string) string {
	if region == "eu" {
		return "https://api.eu." + domain
	}
	return "https://api." + domain
}
