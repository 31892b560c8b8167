package services

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[pagerduty]()

// pagerduty triggers events in PagerDuty.
type pagerduty struct {
	key, apikey                           string
	source, component, group, class, link string
	region, severity                      string
	image                                 bool
	details                               map[string]string
}

// pagerdutySummary is the max number of characters of a summary. PagerDuty
// refuses an event with a longer one.
const pagerdutySummary = 1024

func (p *pagerduty) Describe(s *notifier.Schema) {
	s.Name, s.Site = "PagerDuty", "https://developer.pagerduty.com/docs/send-alert-event"
	s.Setup = "In PagerDuty open Services, the service, its tab Integrations, add Events API " +
		"V2 and copy the integration key; apikey is an API access key from the menu Integrations."
	s.Groups(notifier.GroupIncident)
	s.Words("pager", "on-call")
	s.URL("pagerduty://{integrationkey}@{apikey}[/{source}[/{component}]]")
	s.Hints(
		notifier.Hint{Text: `(?<integrationkey>R[0-9A-Z]{31})`, Is: "an integration key"},
		notifier.Hint{Text: `(?<integrationkey>[0-9a-f]{32})`, Is: "an integration key", Guess: true},
		notifier.Hint{
			Text: `https://events\.(?:eu\.)?pagerduty\.com/(?:integration/)?(?<integrationkey>[0-9a-f]{32}|R[0-9A-Z]{31})(?:/enqueue)?`,
			Is:   "the address of an integration",
		},
	)
	s.Limits.Title = 0
	s.Acknowledge = notifier.AcknowledgeByLink
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
	s.Secret(&p.key, "integrationkey", "integration key of the service").Match(`\S`).Example("0123456789abcdef0123456789abcdef")
	s.Secret(&p.apikey, "apikey", "API key").Match(`\S`).Example("u-AbCdEf0123456789xY")
	s.String(&p.source, "source", "Apprise", "affected system, for example the name of a host").Match(`\S`)
	s.String(&p.component, "component", "Notification", "affected component of the source").Match(`\S`)
	s.String(&p.group, "group", "", "group of components, for example a cluster")
	s.String(&p.class, "class", "", "type of the event, for example disk")
	s.String(&p.link, "click", "", "address to link in the event")
	s.Choice(&p.region, "region", "us", []string{"us", "eu"}, "region of the account")
	s.Choice(&p.severity, "severity", "", []string{"info", "warning", "critical", "error"}, "severity; default: by the message's type")
	s.Bool(&p.image, "image", true, "show the icon of the message's type")
	s.Map(&p.details, "+", "details", "detail to add to the event")
}

func (p *pagerduty) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	summary, details := m.Body, p.details
	if utf8.RuneCountInString(summary) > pagerdutySummary {
		// The whole text goes into the details. A second event would page again.
		summary, details = pagerdutyCut(m.Body), map[string]string{}
		maps.Copy(details, p.details)
		details["message"] = m.Body
	}
	payload := omitEmpty(map[string]any{
		"summary": summary, "severity": cmp.Or(p.severity, pagerdutySeverities[m.Type]), "source": p.source,
		"component": p.component, "group": p.group, "class": p.class, "custom_details": details,
	})
	event := map[string]any{"routing_key": p.key, "event_action": "trigger", "client": m.Identity.Name, "payload": payload}
	if i := m.Incident; i.ID != "" {
		event["event_action"], event["dedup_key"] = pagerdutyActions[i.State], i.ID
		payload["timestamp"] = m.Time.Format(time.RFC3339)
	}
	var links []map[string]string
	if p.link != "" {
		links = append(links, map[string]string{"href": p.link})
	}
	if m.Link.URL != "" {
		links = append(links, map[string]string{"href": m.Link.URL, "text": m.Link.Label})
	}
	if links != nil {
		event["links"] = links
	}
	if icon := m.Icon(128); p.image && icon != "" {
		event["images"] = []map[string]string{{"src": icon, "alt": string(m.Type)}}
	}
	address := "https://events.pagerduty.com/v2/enqueue"
	if p.region == "eu" {
		address = "https://events.eu.pagerduty.com/v2/enqueue"
	}
	return c.PostJSON(ctx, address, event, "Authorization", "Token token="+p.apikey)
}

// pagerdutyCut shortens a text that is too long for a summary.
func pagerdutyCut(text string) string {
	text = string([]rune(text)[:pagerdutySummary-1])
	if i := strings.LastIndexFunc(text, unicode.IsSpace); i > len(text)/2 {
		text = strings.TrimSpace(text[:i])
	}
	return text + "…"
}

// pagerdutyActions are the actions for the states of an incident. A trigger adds
// to the alert with the key, or opens one if none is open.
var pagerdutyActions = map[notifier.IncidentState]string{
	notifier.Open: "trigger", notifier.Updated: "trigger", notifier.Acknowledged: "acknowledge", notifier.Resolved: "resolve",
}

var pagerdutySeverities = map[notifier.Type]string{
	notifier.Info: "info", notifier.Success: "info", notifier.Warning: "warning", notifier.Failure: "critical",
}
