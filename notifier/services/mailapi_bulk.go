package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

// mailBulk is [mailAPI] for providers that accept several targets and additional
// headers in one message.
type mailBulk struct {
	mailAPI
	batch  bool
	header map[string]string
}

// describe binds the parameters of such providers. Their URLs begin with the
// sender.
func (m *mailBulk) describe(s *notifier.Schema, scheme string) {
	m.describeUserFirst(s, scheme)
	m.describeName(s)
	s.Bool(&m.batch, "batch", false, "send one message to all targets")
	s.Map(&m.header, "+", "headers", "header of the e-mail to add")
}

// eachBatch is [mailAPI.each] with at most max targets at a time if the URL has
// batch=yes, else with one.
func (m *mailBulk) eachBatch(ctx context.Context, c *notifier.Client, max int, send func(context.Context, mail.Recipients) error) error {
	if !m.batch {
		max = 1
	}
	return m.each(ctx, c, max, send)
}

// mailRegion binds the region of the account, for [mailHost].
func mailRegion(s *notifier.Schema, v *string) {
	s.Choice(v, "region", "us", []string{"us", "eu"}, "region of the account")
}

// mailHost returns the address of a provider's API in a region.
func mailHost(region, domain string) string {
	if region == "eu" {
		return "https://api.eu." + domain
	}
	return "https://api." + domain
}
