package services

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

var _ = notifier.Register[sparkpost]()

// sparkpost sends e-mail through SparkPost.
type sparkpost struct {
	mailBulk
	region string
	tokens map[string]string
}

// sparkpostBatch is the maximum number of targets of a transmission.
const sparkpostBatch = 2000

func (k *sparkpost) Describe(s *notifier.Schema) {
	s.Name, s.Site = "SparkPost", "https://developers.sparkpost.com/api/transmissions/"
	s.Setup = "Create an API key with the permission Transmissions: " +
		"Read/Write in SparkPost, and verify the sender's domain as a sending domain."
	s.Groups(notifier.GroupMail)
	s.Words("bird email")
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved) // a thread
	k.describe(s, "sparkpost")
	s.Hints(
		notifier.Hint{Text: `(?<apikey>[0-9a-f]{40})`, Is: "an API key", Guess: true},
	)
	mailRegion(s, &k.region)
	s.Map(&k.tokens, ":", "tokens", "value for {{name}} in the text")
	s.Param("apikey").Example("0123456789abcdef0123456789abcdef01234567")
}

func (k *sparkpost) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return k.eachBatch(ctx, c, sparkpostBatch, func(ctx context.Context, rcpt mail.Recipients) error {
		tokens := k.tokens
		if tokens == nil {
			tokens = map[string]string{}
		}
		resp, err := c.Do(ctx, &notifier.Request{
			URL:    mailHost(k.region, "sparkpost.com") + "/api/v1/transmissions/",
			Header: map[string]string{"Authorization": k.apikey},
			Body: notifier.JSON(map[string]any{
				"options":           map[string]bool{"open_tracking": false, "click_tracking": false},
				"content":           k.content(m, rcpt),
				"recipients":        sparkpostRecipients(rcpt),
				"substitution_data": tokens,
			}, m.Attachments...),
		})
		if err != nil {
			return err
		}
		var answer struct {
			Results struct {
				Accepted int `json:"total_accepted_recipients"`
				Rejected int `json:"total_rejected_recipients"`
			} `json:"results"`
		}
		if resp.JSON(&answer) == nil && answer.Results.Accepted == 0 && answer.Results.Rejected > 0 {
			return errors.New("the service rejected all recipients")
		}
		return nil
	})
}

func (k *sparkpost) content(m *notifier.Message, rcpt mail.Recipients) map[string]any {
	sender := k.sender
	if sender.Name == "" {
		sender.Name = m.Identity.Description
	}
	content := map[string]any{"from": mailObject(sender), "reply_to": k.sender.Header(), "subject": m.Title}
	if strings.TrimSpace(m.Title) == "" {
		content["subject"] = "." // the service refuses an empty subject
	}
	if m.Format == notifier.HTML {
		content["html"] = m.Body
	} else {
		content["text"] = m.Body
	}
	header := maps.Clone(k.threadHeader(m, k.header))
	if len(rcpt.CC) > 0 {
		if header == nil {
			header = map[string]string{}
		}
		header["CC"] = strings.Join(mail.Addresses(rcpt.CC), ",")
	}
	if len(header) > 0 {
		content["headers"] = header
	}
	if files := mailFilesAs(m.Attachments, "name", "type", "data"); files != nil {
		content["attachments"] = files
	}
	return content
}

// sparkpostRecipients returns all recipients. For copies, header_to is the address in
// the To header.
func sparkpostRecipients(rcpt mail.Recipients) (out []map[string]any) {
	for _, list := range []struct {
		addresses     []mail.Address
		copies, names bool
	}{{rcpt.To, false, true}, {rcpt.CC, true, true}, {rcpt.BCC, true, false}} {
		for _, b := range list.addresses {
			address := map[string]string{"email": b.Address}
			if list.names && b.Name != "" {
				address["name"] = b.Name
			}
			if list.copies {
				address["header_to"] = rcpt.To[0].Address
			}
			out = append(out, map[string]any{"address": address})
		}
	}
	return out
}
