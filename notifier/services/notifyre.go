package services

import (
	"context"
	"encoding/base64"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[notifyre]()

// notifyre sends text messages, or the message and its files by fax, through
// Notifyre.
type notifyre struct {
	sms
	key, mode, from, campaign string
	template, ref, header     string // of a fax
	hq                        bool   // of a fax
}

func (n *notifyre) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Notifyre", "https://docs.notifyre.com/"
	s.Setup = "Create an API token under Developer in the Notifyre dashboard, with a role other than Developer, and use it as the API key."
	s.Groups(notifier.GroupSMS)
	s.Words("fax", "australia")
	s.URL("notifyre://{apikey}/{targets...}")
	n.describe(s, smsPlus)
	s.Attachments = true
	s.Secret(&n.key, "apikey", "API key").Example("AbCdEf0123456789GhIjKlMnOpQrStUv")
	s.Choice(&n.mode, "mode", "sms", []string{"sms", "fax"}, "text message or fax")
	s.String(&n.from, "from", "", "telephone number to send from").Normalize(smsPlus).Example("+15557654321")
	s.String(&n.campaign, "campaign", "", "name of the campaign; default: the sender's name")
	s.String(&n.template, "template", "", "name of the template of a fax")
	s.String(&n.ref, "ref", "", "your reference of a fax")
	s.Bool(&n.hq, "hq", true, "send a fax in high quality")
	s.String(&n.header, "header", "", "header of a fax")
}

func (n *notifyre) Finish(s *notifier.Schema) error {
	if n.mode == "fax" {
		s.Limits.Body = 32768
	} else {
		s.Attachments = false
	}
	return n.sms.Finish(s)
}

func (n *notifyre) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	campaign := n.campaign
	if campaign == "" {
		campaign = m.Identity.Name
	}
	kind := "mobile_number"
	payload := map[string]any{"body": m.Body, "from": n.from, "campaignName": campaign}
	if n.mode == "fax" {
		kind = "fax_number"
		payload = map[string]any{
			"templateName": n.template, "sendFrom": n.from, "isHighQuality": n.hq, "clientReference": n.ref,
			"documents": notifyreDocuments(m), "header": n.header, "subject": m.Body, "campaignName": campaign,
			"scheduledDate": nil,
		}
	}
	recipients := make([]map[string]string, len(n.targets))
	for i, number := range n.targets {
		recipients[i] = map[string]string{"type": kind, "value": number}
	}
	payload["recipients"] = recipients
	var answer struct {
		Success *bool
		Message string
	}
	err := smsAsk(ctx, c, &notifier.Request{
		URL:    "https://api.notifyre.com/20220711/" + n.mode + "/send",
		Header: map[string]string{"x-api-token": n.key},
		Body:   notifier.JSON(payload, m.Attachments...),
	}, &answer)
	if err == nil && answer.Success != nil && !*answer.Success {
		err = smsRefused(answer.Message)
	}
	return err
}

// notifyreDocuments returns the documents of a fax: the text, then the files.
func notifyreDocuments(m *notifier.Message) []map[string]string {
	var out []map[string]string
	if m.Body != "" {
		out = append(out, map[string]string{
			"base64Str": base64.StdEncoding.EncodeToString([]byte(m.Body)), "contentType": "text/plain",
		})
	}
	for _, a := range m.Attachments {
		out = append(out, map[string]string{"base64Str": notifier.Base64(a), "contentType": a.ContentType})
	}
	return out
}
