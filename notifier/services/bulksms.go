package services

import (
	"context"
	"errors"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[bulkSMS]()

// bulkSMS sends text messages to telephone numbers and to contact groups of
// BulkSMS.
type bulkSMS struct {
	sms
	groups                      []string
	user, password, from, route string
	unicode                     bool
}

func (b *bulkSMS) Describe(s *notifier.Schema) {
	s.Name, s.Site = "BulkSMS", "https://www.bulksms.com/developer/json/v1/"
	s.Setup = "Create an API token in the developer settings of the BulkSMS web app: user is the token ID, and password is the token secret."
	s.Groups(notifier.GroupSMS)
	s.URL("bulksms://{user}:{password}@{targets...}")
	b.describe(s, bulkSMSTarget, notifier.Prefixed{Prefix: "@", Items: &b.groups, Doc: "contact group"})
	b.describeBatch(s)
	s.String(&b.user, "user", "", "token ID or user name").Example("alice")
	s.Secret(&b.password, "password", "token secret or password").Alias("pass").Example("pa55word")
	s.String(&b.from, "from", "", "telephone number to send from").Normalize(smsPlus).Example("+15557654321")
	s.Choice(&b.route, "route", "STANDARD", []string{"ECONOMY", "STANDARD", "PREMIUM"}, "routing group")
	s.Bool(&b.unicode, "unicode", true, "send characters outside the GSM alphabet")
}

var bulkSMSGroup = lazyregexp.New(`(?i)^@?([A-Z0-9_-]*[A-Z_-][A-Z0-9_-]*)$`)

// bulkSMSTarget returns a telephone number with a +, or the name of a group with
// an @.
func bulkSMSTarget(s string) (string, error) {
	if number, err := smsPlus(s); err == nil {
		return number, nil
	}
	if m := bulkSMSGroup.FindStringSubmatch(s); m != nil {
		return "@" + m[1], nil
	}
	return "", errors.New("is not a telephone number or a @group")
}

func (b *bulkSMS) Finish(s *notifier.Schema) error {
	if len(b.groups) > 0 {
		return nil
	}
	return b.sms.Finish(s)
}

func (b *bulkSMS) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	encoding := "TEXT"
	if b.unicode {
		encoding = "UNICODE"
	}
	post := func(ctx context.Context, to any) error {
		payload := map[string]any{
			"to": to, "body": m.Body, "routingGroup": b.route, "encoding": encoding, "deliveryReports": "ERRORS",
		}
		if b.from != "" {
			payload["from"] = b.from
		}
		_, err := c.Do(ctx, &notifier.Request{
			URL: "https://api.bulksms.com/v1/messages", User: b.user, Password: b.password, Body: notifier.JSON(payload),
		})
		return err
	}
	return errors.Join(
		b.each(ctx, c, b.targets, 4000, func(ctx context.Context, numbers []string) error {
			if b.batch {
				return post(ctx, numbers)
			}
			return post(ctx, strings.Join(numbers, ""))
		}),
		c.Steps.Each(ctx, b.groups, func(ctx context.Context, group string) error {
			return post(ctx, map[string]string{"type": "GROUP", "name": group})
		}),
	)
}
