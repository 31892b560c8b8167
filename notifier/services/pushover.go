package services

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[pushover]()

// pushover notifies the devices of a user or of a group.
type pushover struct {
	user, token string
	devices     []string
	groups      []string
	priority    int
	sound       string
	link        string
	linkTitle   string
	interval    int
	expire      int
	key         string
	e2ee        bool
}

const (
	pushoverEmergency = 2
	pushoverText      = 1024    // max characters of a message, including HTML
	pushoverImage     = 5 << 20 // max bytes of a picture
)

func (p *pushover) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Pushover", "https://pushover.net/api"
	s.Setup = "The user key is on the start page of pushover.net after the login, " +
		"and Create an Application/API Token below it gives the token."
	s.Groups(notifier.GroupPhone)
	s.Words("push", "phone", "iphone", "ios", "android", "apple", "apple watch")
	s.URL("pover://{user_key}@{token}[/{targets...}]")
	s.Hints(
		notifier.Hint{Text: `(?<user_key>u[a-z0-9]{29})`, Is: "a user key"},
		notifier.Hint{Text: `(?<token>a[a-z0-9]{29})`, Is: "the API token of an application"},
		notifier.Hint{Text: `(?<user_key>g[a-z0-9]{29})`, Is: "the key of a group"},
	)
	s.Attachments = true
	s.Limits.Body = pushoverText
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
	s.Acknowledge = notifier.AcknowledgeByLink
	s.Secret(&p.user, "user_key", "user key").Example("uQiRzpo4DXghDmr9QzzfQu27cmVRsG")
	s.Secret(&p.token, "token", "API token of the application").Example("azGDORePK8gMaC0QOYAMyEEuzJnyUi")
	s.List(&p.devices, "targets", "devices and #keys of groups; default: all devices",
		notifier.Prefixed{Prefix: "#", Items: &p.groups, Doc: "key of a group"}).Alias("to").
		Match(`^(#[a-z0-9]+|[a-z0-9_-]{1,25})$`)
	s.Enum(&p.priority, "priority", "normal", pushPriorities, "priority of the message").Lenient()
	s.String(&p.sound, "sound", "pushover", "name of a sound of Pushover or of a custom sound").
		Normalize(func(s string) (string, error) { return strings.ToLower(s), nil })
	s.String(&p.link, "url", "", "address to show with the message")
	s.String(&p.linkTitle, "url_title", "", "title of that address")
	s.Int(&p.interval, "interval", 900, "seconds between two alarms of an emergency, at least 30").Lenient()
	s.Int(&p.expire, "expire", 3600, "seconds until the alarms of an emergency end, at most 10800").Lenient()
	s.Secret(&p.key, "key", "key for end-to-end encryption").Match(`^[0-9a-f]{64}$`).Example(strings.Repeat("b", 64))
	s.Bool(&p.e2ee, "e2ee", true, "encrypt if there is a key")
}

func (p *pushover) Finish(s *notifier.Schema) error {
	if p.link != "" || p.linkTitle != "" {
		s.Acknowledge = notifier.AcknowledgeInText // a message has one address
	}
	switch {
	case p.priority == pushoverEmergency && p.interval < 30:
		return errors.New("interval must be at least 30 seconds")
	case p.priority == pushoverEmergency && (p.expire < 0 || p.expire > 10800):
		return errors.New("expire must be from 0 to 10800 seconds")
	}
	return nil
}

func (p *pushover) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	pictures := pushoverPictures(c, m.Attachments)
	if m.Title == "" && m.Body == "" {
		pictures = slices.DeleteFunc(pictures, func(f *notifier.Attachment) bool { return f == nil })
		if len(pictures) == 0 {
			// The refusal makes the message say what the file is.
			return notifier.Refused(errors.New("Pushover accepts only text and pictures of up to 5 MiB"))
		}
	}
	var targets []string
	if len(p.devices) > 0 || len(p.groups) == 0 {
		targets = append(targets, "")
	}
	err := c.Steps.Each(ctx, append(targets, p.groups...), func(ctx context.Context, group string) error {
		first, rest := (*notifier.Attachment)(nil), pictures
		if len(rest) > 0 {
			first, rest = rest[0], rest[1:]
		}
		if err := p.post(ctx, c, m, group, 0, first); err != nil {
			return err
		}
		for i, f := range rest {
			if f == nil {
				continue
			}
			if err := p.post(ctx, c, &notifier.Message{Identity: m.Identity, Incident: m.Incident}, group, i+1, f); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || !p.endsAlarm(m) {
		return err
	}
	// The alarms of an emergency repeat until somebody acknowledges one.
	return c.Steps.Once("cancel", func() error { return p.cancel(ctx, c, m.Incident.ID) })
}

// endsAlarm reports whether the alarms of the incident of m end.
func (p *pushover) endsAlarm(m *notifier.Message) bool {
	return p.priority == pushoverEmergency && m.Incident.ID != "" &&
		(m.Incident.State == notifier.Resolved || m.Incident.State == notifier.Acknowledged)
}

// cancel ends the alarms of the emergencies with a tag.
// See https://pushover.net/api/receipts#cancel_by_tag.
func (p *pushover) cancel(ctx context.Context, c *notifier.Client, tag string) error {
	_, err := c.Do(ctx, &notifier.Request{
		URL: "https://api.pushover.net/1/receipts/cancel_by_tag" + notifier.Path(tag) + ".json", User: p.token,
		Body: notifier.Form(url.Values{"token": {p.token}}),
	})
	return err
}

// post sends one message with at most one picture. A message without text has
// the name of the picture as its text. Messages after the first, which has n = 0,
// make no sound.
func (p *pushover) post(ctx context.Context, c *notifier.Client, m *notifier.Message, group string, n int, f *notifier.Attachment) error {
	fields, err := p.fields(m, group, n > 0, f)
	if err != nil {
		return err
	}
	var body *notifier.Body
	if f == nil {
		form := url.Values{}
		for _, x := range fields {
			form.Set(x.Name, x.Value)
		}
		body = notifier.Form(form)
	} else {
		body = notifier.Multipart(append(fields, notifier.FormPart{Name: "attachment", File: f, NoType: true})...)
	}
	return c.Steps.Once(fmt.Sprint("message ", n, " to ", group), func() error {
		var answer struct {
			Status *int     `json:"status"`
			Errors []string `json:"errors"`
		}
		err := c.DoJSON(ctx, &notifier.Request{URL: "https://api.pushover.net/1/messages.json", User: p.token, Body: body}, &answer)
		if err == nil && answer.Status != nil && *answer.Status != 1 {
			err = textError("Pushover answered: " + strings.Join(answer.Errors, "; "))
		}
		return err
	})
}
