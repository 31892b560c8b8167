package services

import (
	"context"
	"encoding/json"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[seven]()

// seven sends text messages through seven.io.
type seven struct {
	sms
	key, from, label string
	flash            bool
}

func (x *seven) Describe(s *notifier.Schema) {
	s.Name, s.Site = "seven", "https://docs.seven.io/en/rest-api/endpoints/sms"
	s.Setup = "Create an API key in the developer settings of seven's web app."
	s.Groups(notifier.GroupSMS)
	s.Words("sms77", "germany")
	s.URL("seven://{apikey}/{targets...}")
	x.describe(s, smsPlus)
	s.Secret(&x.key, "apikey", "API key").Example("AbCdEf0123456789GhIjKlMnOpQrStUv")
	s.String(&x.from, "source", "", "number or name to send from").Alias("from")
	s.Bool(&x.flash, "flash", false, "show the message at once on the phone's display")
	s.String(&x.label, "label", "", "label for the statistics of the account")
}

func (x *seven) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return c.Steps.Each(ctx, x.targets, func(ctx context.Context, number string) error {
		payload := map[string]any{"to": number, "text": m.Body}
		if x.from != "" {
			payload["from"] = x.from
		}
		if x.flash {
			payload["flash"] = true
		}
		if x.label != "" {
			payload["label"] = x.label
		}
		var answer struct {
			Success  json.Number
			Messages []struct {
				ErrorText string `json:"error_text"`
			}
		}
		reply, err := c.Do(ctx, &notifier.Request{
			URL: "https://gateway.seven.io/api/sms",
			Header: map[string]string{
				"Accept": "application/json", "X-Api-Key": x.key,
				// The service counts messages by client program. It knows
				// this name for URLs of this form.
				"SentWith": "Apprise",
			},
			Body: notifier.JSON(payload),
		})
		if err != nil {
			return err
		}
		// Some refusals are JSON objects, others only the code.
		if reply.JSON(&answer) != nil {
			_ = reply.JSON(&answer.Success)
		}
		if answer.Success != "" && answer.Success != "100" {
			text := "code " + answer.Success.String()
			for _, r := range answer.Messages {
				if r.ErrorText != "" {
					text = r.ErrorText
				}
			}
			return smsRefused(text)
		}
		return nil
	})
}
