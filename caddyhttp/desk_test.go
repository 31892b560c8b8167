package caddyhttp

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[pageDesk]()

// pageDesk is a service that shows the incidents of messages.
type pageDesk struct{ server notifier.Server }

func (d *pageDesk) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Page desk", "https://example.com/"
	s.URL("pagedesk://{host}[:{port}]")
	s.Server(&d.server)
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
}

func (d *pageDesk) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return c.PostJSON(ctx, d.server.URL("/"), paged{m.Body, m.Type, m.Incident})
}

// paged is a message at a pageDesk.
type paged struct {
	Body     string
	Type     notifier.Type
	Incident notifier.Incident
}
