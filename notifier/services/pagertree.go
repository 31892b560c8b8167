package services

import (
	"cmp"
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
	s.Groups(notifier.GroupIncident)
	s.Words("on-call")
	s.URL("pagertree://{integration}")
	s.Hints(
		notifier.Hint{Text: `(?<integration>int_\w{6,})`, Is: "the ID of an integration"},
	)
	s.Incidents(notifier.Open, notifier.Acknowledged, notifier.Resolved)
	s.Secret(&p.integration, "integration", "integration ID").Match(`^[a-z0-9_-]+$`).Alias("id").Example("int_AbCdEf0123")
	s.Choice(&p.action, "action", "", []string{"create", "acknowledge", "resolve"},
		"what to do with the alert; default: by the incident, else create").Lenient()
	s.String(&p.thirdparty, "thirdparty", "", "ID of the alert; default: by the incident, else one for each message").Alias("tid")
	s.Choice(&p.urgency, "urgency", "", []string{"silent", "low", "medium", "high", "critical"}, "urgency of the alert").Lenient()
	s.List(&p.tags, "tags", "tags of the alert")
	s.Headers(&p.header, "headers", "HTTP header to add")
	s.Map(&p.extra, ":", "payload_extras", "field to add to the request")
	s.Map(&p.meta, "-", "meta_extras", "field to add to the alert's metadata")
}

func (p *pagertree) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	id, action := "", "create"
	if a := pagertreeActions[m.Incident.State]; a != "" && m.Incident.ID != "" {
		id, action = m.Incident.ID, a
	}
	action = cmp.Or(p.action, action)
	if id = cmp.Or(p.thirdparty, id); id == "" {
		id = uuid.NewString()
	}
	payload := map[string]any{"id": id, "event_type": action}
	if action == "create" {
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

// pagertreeActions are the actions for the states of an incident. There is none
// that adds to an alert.
var pagertreeActions = map[notifier.IncidentState]string{
	notifier.Open: "create", notifier.Acknowledged: "acknowledge", notifier.Resolved: "resolve",
}
