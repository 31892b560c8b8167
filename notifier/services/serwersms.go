package services

import (
	"context"
	"errors"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[serwerSMS]()

// serwerSMS sends text messages, and files by MMS, through SerwerSMS.
type serwerSMS struct {
	sms
	groups                 []string
	user, password, sender string
}

func (x *serwerSMS) Describe(s *notifier.Schema) {
	s.Name, s.Site = "SerwerSMS", "https://dev.serwersms.pl/"
	s.Setup = "Create an API user in the SerwerSMS customer panel under Ustawienia interfejsów, " +
		"HTTPS API, Użytkownicy API; sender is a sender name of your account."
	s.Groups(notifier.GroupSMS, notifier.GroupRegional)
	s.Words("poland", "polska")
	s.URL("serwersms://{user}:{password}@{sender}/{targets...}")
	x.describe(s, serwerSMSTarget, notifier.Prefixed{Prefix: "#", Items: &x.groups, Doc: "ID of a group of contacts"})
	s.Attachments = true
	s.String(&x.user, "user", "", "user name of the API").Example("webapi_alice")
	s.Secret(&x.password, "password", "password of the API").Alias("pass").Example("pa55word")
	s.String(&x.sender, "sender", "", "name to send from").Alias("from").Match(`^[a-z0-9][a-z0-9 _-]{0,10}$`).Example("Alerts")
}

var serwerSMSGroup = lazyregexp.New(`^#[0-9]+$`)

func serwerSMSTarget(s string) (string, error) {
	if serwerSMSGroup.MatchString(s) {
		return s, nil
	}
	return smsPlus(s)
}

func (x *serwerSMS) Finish(s *notifier.Schema) error {
	if len(x.groups) > 0 {
		return nil
	}
	return x.sms.Finish(s)
}

func (x *serwerSMS) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	to := func(name string) func(context.Context, string) error {
		return func(ctx context.Context, value string) error { return x.post(ctx, c, m, name, value) }
	}
	return errors.Join(c.Steps.Each(ctx, x.targets, to("phone")), c.Steps.Each(ctx, x.groups, to("group_id")))
}

func (x *serwerSMS) post(ctx context.Context, c *notifier.Client, m *notifier.Message, name, value string) error {
	payload := map[string]any{"username": x.user, "password": x.password, "text": m.Body, "sender": x.sender, name: value}
	if smsUnicode(m.Body) {
		payload["utf"] = true
	}
	q := &notifier.Request{URL: "https://api2.serwersms.pl/messages/send_sms", Body: notifier.JSON(payload)}
	if len(m.Attachments) > 0 {
		parts := []notifier.FormPart{
			{Name: "username", Value: x.user},
			{Name: "password", Value: x.password},
			{Name: "text", Value: m.Body},
			{Name: "sender", Value: x.sender},
			{Name: name, Value: value},
		}
		for _, a := range m.Attachments {
			parts = append(parts, notifier.FormPart{Name: "file", File: a})
		}
		q.URL, q.Body = "https://api2.serwersms.pl/messages/send_mms", notifier.Multipart(parts...)
	}
	var answer struct {
		Success bool
		Error   struct{ Message string }
	}
	err := smsAsk(ctx, c, q, &answer)
	if err == nil && !answer.Success {
		err = smsRefused(answer.Error.Message)
	}
	return err
}
