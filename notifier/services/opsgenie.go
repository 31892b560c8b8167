package services

import "github.com/caddy-notify/caddy-notify/notifier"

var _ = notifier.Register[opsgenie]()

// opsgenie creates alerts in Opsgenie.
type opsgenie struct {
	jsm
	region string
}

func (o *opsgenie) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Opsgenie", "https://docs.opsgenie.com/docs/alert-api"
	s.Setup = "Add an API integration in Opsgenie and copy its API key."
	s.Groups(notifier.GroupIncident)
	s.Words("atlassian", "on-call")
	o.describe(s, "opsgenie")
	s.Hints(
		notifier.Hint{Text: `(?<apikey>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})`, Is: "an API key", Guess: true},
	)
	s.Choice(&o.region, "region", "us", []string{"us", "eu"}, "region of the account")
}

// Finish sets the server of the region.
func (o *opsgenie) Finish(s *notifier.Schema) error {
	o.base = "https://api.opsgenie.com/v2/alerts"
	if o.region == "eu" {
		o.base = "https://api.eu.opsgenie.com/v2/alerts"
	}
	return o.jsm.Finish(s)
}
