package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[flowtriq]()

// flowtriq posts to a webhook of Flowtriq.
type flowtriq struct {
	notifier.Server
	apikey string
	path   []string
}

func (f *flowtriq) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Flowtriq", "https://flowtriq.com/docs"
	s.Setup = "Host and path are those of your Flowtriq webhook URL, and apikey is the API key for it (see the documentation of Flowtriq)."
	s.Groups(notifier.GroupIncident)
	s.Words("ddos", "network monitoring")
	s.URL("flowtriq[s]://{apikey}@{host}[:{port}]/{path...}")
	s.Server(&f.Server)
	s.Secret(&f.apikey, "apikey", "API key").Match(`\S`).Example("0123456789abcdef")
	s.Path(&f.path, "path", "path of the webhook").Example("hooks", "alerts")
	s.Param("host").Example("flowtriq.example.com")
}

func (f *flowtriq) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	severity := string(m.Type)
	if m.Type == notifier.Failure {
		severity = "critical"
	}
	return c.PostJSON(ctx, f.URL(f.path...), map[string]string{
		"title": m.Title, "body": m.Body, "type": string(m.Type), "severity": severity, "source": "apprise",
	}, "X-API-Key", f.apikey)
}
