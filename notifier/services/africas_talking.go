package services

import (
	"context"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[africasTalking]()

// africasTalking sends text messages through Africa's Talking.
type africasTalking struct {
	sms
	user, key, from, mode string
}

func (a *africasTalking) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Africas Talking", "https://developers.africastalking.com/docs/sms/sending/bulk"
	s.Setup = "The API key is in Africa's Talking's dashboard; appuser is the user " +
		"name of the app that the key belongs to, or sandbox for the sandbox app."
	s.Groups(notifier.GroupSMS, notifier.GroupRegional)
	s.Words("kenya", "nigeria")
	s.URL("atalk://{appuser}@{apikey|targets}[/{targets...}]")
	a.describe(s, smsAsWritten(10))
	a.describeBatch(s)
	s.String(&a.user, "appuser", "", "user name of the app").Match(`^[A-Z0-9_-]+$`).Alias("user").Example("sandbox")
	s.Secret(&a.key, "apikey", "API key").Match(`^[A-Z0-9_-]+$`).Example("atsk_0123456789abcdef")
	s.String(&a.from, "from", "AFRICASTKNG", "short code or name to send from")
	s.Choice(&a.mode, "mode", "bulksms", []string{"bulksms", "premium", "sandbox"}, "kind of account")
}

var africasTalkingHosts = map[string]string{"bulksms": "api", "premium": "content", "sandbox": "api.sandbox"}

func (a *africasTalking) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return a.each(ctx, c, a.targets, 50, func(ctx context.Context, group []string) error {
		var answer struct {
			SMSMessageData struct {
				Message    string
				Recipients []struct {
					StatusCode int
					Status     string
				}
			}
		}
		err := smsAsk(ctx, c, &notifier.Request{
			URL:    "https://" + africasTalkingHosts[a.mode] + ".africastalking.com/version1/messaging",
			Header: map[string]string{"Accept": "application/json", "apiKey": a.key},
			Body:   notifier.Form(notifier.Fields("username", a.user, "to", strings.Join(group, ","), "from", a.from, "message", m.Body)),
		}, &answer)
		if err != nil {
			return err
		}
		for _, r := range answer.SMSMessageData.Recipients {
			if r.StatusCode > 102 {
				return smsRefused(r.Status)
			}
		}
		if data := answer.SMSMessageData; data.Message != "" && len(data.Recipients) == 0 {
			return smsRefused(data.Message)
		}
		return nil
	})
}
