package services

import (
	"cmp"
	"context"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[splunk]()

// splunk raises alerts in Splunk On-Call, formerly VictorOps.
type splunk struct {
	apikey, route string
	entity        []string
	action        int
	mapping       map[string]string
	kinds         map[notifier.Type]string
}

var (
	splunkKinds = []string{"critical", "warning", "acknowledgement", "info", "recovery"}
	// Value 0 chooses the kind by the message's type. Other values are positions in
	// splunkKinds, from 1 on.
	splunkActions = []notifier.Choice{
		{Name: "map"},
		{Name: "info", Value: 4},
		{Name: "acknowledgement", Value: 3},
		{Name: "warning", Value: 2},
		{Name: "recovery", Value: 5},
		{Name: "resolve", Value: 5},
		{Name: "critical", Value: 1},
	}
)

func (p *splunk) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Splunk On-Call",
		"https://help.splunk.com/en/splunk-observability-cloud/splunk-on-call/integrations-for-splunk-on-call/rest-endpoint-integration-guide"
	s.Setup = "Open Integrations, 3rd Party Integrations, REST - Generic in Splunk On-Call, enable it, " +
		"and copy the key in its URL before $routing_key, which is the place of a routing key."
	s.Groups(notifier.GroupIncident)
	s.URL("splunk|victorops://{routing_key}@{apikey}[/{entity_id...}]")
	s.Native("https://alert.victorops.com/integrations/generic/20131114/alert/{apikey}/{routing_key}[/{entity_id...}]")
	s.Limits.Title, s.Limits.Body = 60, 400
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
	s.Secret(&p.apikey, "apikey", "API key of the REST integration").Match(`^[a-z0-9_-]+$`).Example("01234567-89ab-cdef-0123-456789abcdef")
	s.String(&p.route, "routing_key", "", "routing key").Match(`^[a-z0-9_-]+$`).Alias("route").Example("ops")
	s.Path(&p.entity, "entity_id", "ID of the incident; default: by the message, else one for a routing key")
	s.Enum(&p.action, "action", "map", splunkActions, "action of the alert; map chooses it by the message's type")
	s.Map(&p.mapping, ":", "mapping", "action for a type of message, as in :warning=critical").Example("warning=info").Public()
}

var splunkDefaults = map[notifier.Type]string{
	notifier.Info: "info", notifier.Success: "recovery", notifier.Warning: "warning", notifier.Failure: "critical",
}

func (p *splunk) Finish(*notifier.Schema) (err error) {
	p.kinds, err = mapTypes(splunkDefaults, p.mapping, splunkKinds)
	return err
}

func (p *splunk) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	kind := p.kinds[m.Type]
	switch {
	case p.action > 0:
		kind = splunkKinds[p.action-1]
	case m.Incident.State == notifier.Acknowledged && kind == splunkDefaults[m.Type]:
		kind = "acknowledgement"
	}
	entity, title := strings.Join(p.entity, "/"), m.Title
	entity = cmp.Or(entity, m.Incident.ID, m.Identity.Name+"/"+p.route)
	if title == "" {
		title = m.Identity.Description
	}
	resp, err := c.Do(ctx, &notifier.Request{
		URL: "https://alert.victorops.com/integrations/generic/20131114/alert" + notifier.Path(p.apikey, p.route),
		Body: notifier.JSON(map[string]string{
			"message_type": strings.ToUpper(kind), "entity_id": entity, "entity_display_name": title,
			"state_message": m.Body, "monitoring_tool": m.Identity.Name,
		}),
	})
	if err != nil {
		return err
	}
	var answer struct{ Result, Message, Messages string }
	if resp.JSON(&answer) == nil && answer.Result == "failure" {
		return textError("the service refused the alert: " + answer.Message + answer.Messages)
	}
	return nil
}
