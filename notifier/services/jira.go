package services

import "github.com/caddy-notify/caddy-notify/notifier"

var _ = notifier.Register[jira]()

// jira raises alerts in Jira Service Management, which Opsgenie has become.
type jira struct{ jsm }

func (j *jira) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Jira", "https://developer.atlassian.com/cloud/jira/service-desk-ops/rest/v1/api-group-integration-events/"
	j.describe(s, "jira")
	j.base = "https://api.atlassian.com/jsm/ops/integration/v2/alerts"
	j.header = map[string]string{"Accepts": "application/json"}
}
