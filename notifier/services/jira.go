package services

import "github.com/caddy-notify/caddy-notify/notifier"

var _ = notifier.Register[jira]()

// jira creates alerts in Jira Service Management, the successor of Opsgenie.
type jira struct{ jsm }

func (j *jira) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Jira", "https://developer.atlassian.com/cloud/jira/service-desk-ops/rest/v1/api-group-integration-events/"
	s.Setup = "Add an API integration in Jira Service Management and copy its API key (not an API token of an Atlassian account)."
	s.Groups(notifier.GroupIncident)
	s.Words("jira service management", "atlassian", "ticket")
	j.describe(s, "jira")
	s.Hints(
		notifier.Hint{Text: `(?<apikey>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})`, Is: "an API key", Guess: true},
		notifier.Hint{
			Text: `ATATT[\w=-]+`, Is: "an API token of an Atlassian account",
			Note: "Jira Service Management needs the key of an API integration and not a token of an account",
		},
	)
	s.Ignore("region", "Jira has one address for all regions", "us", "eu")
	j.base = "https://api.atlassian.com/jsm/ops/integration/v2/alerts"
	j.header = map[string]string{"Accepts": "application/json"}
}
