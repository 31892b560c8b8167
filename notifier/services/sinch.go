package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[sinch]()

// sinch sends text messages through Sinch.
type sinch struct {
	sms
	plan, token, from, region string
}

func (x *sinch) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Sinch", "https://developers.sinch.com/docs/sms/api-reference/"
	s.Setup = "Service plan ID and API token are on the page of the SMS REST API in the Sinch dashboard."
	s.Groups(notifier.GroupSMS)
	s.URL("sinch://{service_plan_id}:{api_token}@{from_phone}[/{targets...}]")
	x.describe(s, smsPlus).DropInvalid()
	s.Secret(&x.plan, "service_plan_id", "ID of the service plan").Alias("spi").
		Match(`^[a-f0-9]+$`).Example("0123456789abcdef0123456789abcdef")
	s.Secret(&x.token, "api_token", "API token").Alias("token").Match(`^[a-f0-9]+$`).Example("fedcba9876543210fedcba9876543210")
	s.String(&x.from, "from_phone", "", "number or short code to send from").Alias("from", "source").
		Normalize(smsCode).Example("15557654321")
	s.Choice(&x.region, "region", "us", []string{"us", "eu"}, "region of the account")
}

func (x *sinch) Finish(s *notifier.Schema) error {
	// A short code cannot receive.
	if len(x.from) > 6 {
		x.toSelf = true
	}
	return x.sms.Finish(s)
}

func (x *sinch) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return c.Steps.Each(ctx, x.or(x.from), func(ctx context.Context, number string) error {
		return c.PostJSON(ctx, "https://"+x.region+".sms.api.sinch.com"+notifier.Path("xms", "v1", x.plan, "batches"),
			map[string]any{"body": m.Body, "from": x.from, "to": []string{number}}, "Authorization", "Bearer "+x.token)
	})
}
