package services

import (
	"context"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[pagertree]()

// pagertree creates and resolves alerts in PagerTree.
type pagertree struct {
	integration, action, thirdparty, urgency string
	tags                                     []string
	header, extra, meta                      map[string]string
}

func (p *pagertree) Describe(s *notifier.Schema) {
	s.Name, s.Site = "PagerTree", "https://pagertree.com/docs/integration-guides/webhook"
	s.Recipients = 1 // the list has tags
	s.Setup = "Create a Webhook integration in PagerTree and copy its Prefix ID (int_…) from the top of its page."
	s.URL("pagertree://{integration}")
	s.Secret(&p.integration, "integration", "integration ID").Match(`^[a-z0-9_-]+$`).Alias("id").Example("int_AbCdEf0123")
	s.Choice(&p.action, "action", "create", []string{"create", "acknowledge", "resolve"}, "what to do with the alert").Lenient()
	s.String(&p.thirdparty, "thirdparty", "", "ID of the alert; default: a new one for each message").Alias("tid")
	s.Choice(&p.urgency, "urgency", "", []string{"silent", "low", "medium", "high", "critical"}, "urgency of the alert").Lenient()
	s.List(&p.tags, "tags", "tags of the alert")
	s.Headers(&p.header, "headers", "HTTP header to add")
	s.Map(&p.extra, ":", "payload_extras", "field to add to the request")
	s.Map(&p.meta, "-", "meta_extras", "field to add to the alert's metadata")
}

func (p *pagertree) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	payload := map[string]any{"id": p.thirdparty, "event_type": p.action}
	if p.thirdparty == "" {
		payload["id"] = uuid.NewString()
	}
	if p.action == "create" {
		payload["title"], payload["description"] = m.Title, m.Body
		if m.Title == "" {
			payload["title"] = m.Identity.Description
		}
		payload["tags"], payload["meta"] = append([]string{}, p.tags...), p.meta
		if p.meta == nil {
			payload["meta"] = map[string]string{}
		}
		if p.urgency != "" {
			payload["urgency"] = p.urgency
		}
	}
	for name, value := range p.extra {
		payload[name] = value
	}
	return c.Post(ctx, "https://api.pagertree.com/integration"+notifier.Path(p.integration), notifier.JSON(payload), p.header)
}
