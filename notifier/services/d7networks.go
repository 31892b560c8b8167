package services

import (
	"context"
	"errors"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[d7Networks]()

// d7Networks sends text messages through D7 Networks.
type d7Networks struct {
	sms
	token, rest, from string
	unicode           bool
}

func (d *d7Networks) Describe(s *notifier.Schema) {
	s.Name, s.Site = "D7 Networks", "https://d7networks.com/docs/Messages/Send_Message/"
	s.Setup = "Create an application in the D7 control panel and generate its token there; the control panel shows the token only once."
	s.Groups(notifier.GroupSMS)
	s.URL("d7sms://[{token}[:{password}]@]{targets...}")
	d.describe(s, notifier.FullPhone)
	d.describeBatch(s)
	s.Secret(&d.token, "token", "API token").Example("eyJhbGciOiJIUzI1NiJ9.eyJhcHAiOiJkNyJ9.c2lnbmF0dXJl")
	s.Secret(&d.rest, "password", "part of the API token after a colon").Alias("pass")
	s.String(&d.from, "source", "", "number or name to send from").Alias("from")
	s.Bool(&d.unicode, "unicode", false, "always send as Unicode; otherwise D7 chooses the encoding")
}

func (d *d7Networks) Finish(s *notifier.Schema) error {
	if d.rest != "" {
		// The token contains a colon, after which the URL has a password.
		d.token, d.rest = d.token+":"+d.rest, ""
	}
	if d.token == "" {
		return errors.New("the API token is missing; write it before the @, as in d7sms://token@15551234567")
	}
	return d.sms.Finish(s)
}

func (d *d7Networks) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	globals := map[string]string{"channel": "sms"}
	if d.from != "" {
		globals["originator"] = d.from
	}
	coding := "auto"
	if d.unicode {
		coding = "unicode"
	}
	return d.each(ctx, c, d.targets, len(d.targets), func(ctx context.Context, numbers []string) error {
		return c.PostJSON(ctx, "https://api.d7networks.com/messages/v1/send", map[string]any{
			"message_globals": globals,
			"messages":        []any{map[string]any{"recipients": numbers, "content": m.Body, "data_coding": coding}},
		}, "Accept", "application/json", "Authorization", "Bearer "+d.token)
	})
}
