package services

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[whatsApp]()

// whatsApp sends messages through WhatsApp's Cloud API, as text or with a template
// that is stored there.
type whatsApp struct {
	sms
	groups                          []string
	token, from, template, language string
	mapping                         map[string]string
	components                      []whatsAppComponent
}

// whatsAppComponent is the value for {{index}} in a template: a text, or the
// message's body or type.
type whatsAppComponent struct {
	index      int
	text, part string
}

func (w *whatsApp) Describe(s *notifier.Schema) {
	s.Name, s.Site = "WhatsApp", "https://developers.facebook.com/docs/whatsapp/cloud-api"
	s.Setup = "The page API Setup of WhatsApp in the Meta app dashboard shows the phone number " +
		"ID and a temporary access token; a system user of the business can have a permanent one."
	s.Groups(notifier.GroupChat, notifier.GroupPhone)
	s.Words("whatsapp business", "meta", "facebook")
	s.URL(
		"whatsapp://{token}@{from_phone_id}/{targets...}",
		"whatsapp://{template}:{token}@{from_phone_id}/{targets...}",
	)
	s.Way(1, "with a text of your own")
	s.Way(2, "with a template of WhatsApp")
	s.Hints(
		notifier.Hint{Text: `(?<token>EAA[A-Za-z0-9]{40,})`, Is: "an access token"},
	)
	w.describe(s, whatsAppTarget, notifier.Prefixed{Prefix: "#", Items: &w.groups, Doc: "ID of a group"})
	s.Limits.Body = 1024
	s.Secret(&w.token, "token", "access token").Match(`^[a-z0-9]+$`).Example("EAAB0123456789abcdef")
	s.Secret(&w.from, "from_phone_id", "ID of the number to send from").Alias("from", "source").Match(`^[0-9]+$`).
		Example("10123456789")
	s.String(&w.template, "template", "", "name of the template to use").Match(`^\S+$`).Example("alert")
	s.String(&w.language, "language", "en_US", "language of the template").Alias("lang").Match(`^[^0-9\s]+$`)
	s.Map(&w.mapping, ":", "template_mapping", "value in the template: number=text, body=number or type=number").Example("1=text")
}

var whatsAppGroup = lazyregexp.New(`(?i)^#?([0-9]{16,})(@g\.us)?$`)

// whatsAppTarget reads a number, or the ID of a group.
func whatsAppTarget(s string) (string, error) {
	if m := whatsAppGroup.FindStringSubmatch(s); m != nil {
		return "#" + m[1], nil
	}
	return smsPlus(s)
}

func (w *whatsApp) Finish(s *notifier.Schema) error {
	w.components = nil
	for key, value := range w.mapping {
		place := whatsAppComponent{text: value}
		number := key
		if part := strings.ToLower(key); part == "body" || part == "type" {
			place, number = whatsAppComponent{part: part}, value
		}
		index, err := strconv.Atoi(number)
		if err != nil || index < 1 {
			return errors.New("a value for the template is malformed; write :1=text, :body=2 or :type=3")
		}
		if place.index = index; slices.ContainsFunc(w.components, func(c whatsAppComponent) bool { return c.index == index }) {
			return errors.New("two values for the template have the same number; use each number once")
		}
		w.components = append(w.components, place)
	}
	slices.SortFunc(w.components, func(a, b whatsAppComponent) int { return cmp.Compare(a.index, b.index) })
	if len(w.groups) > 0 {
		return nil
	}
	return w.sms.Finish(s)
}

func (w *whatsApp) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	post := func(kind, suffix string) func(context.Context, string) error {
		return func(ctx context.Context, to string) error {
			payload := map[string]any{"messaging_product": "whatsapp", "recipient_type": kind, "to": to + suffix}
			if w.template == "" {
				payload["type"], payload["text"] = "text", map[string]string{"body": m.Body}
			} else {
				payload["type"], payload["template"] = "template", w.fill(m)
			}
			return c.PostJSON(ctx, "https://graph.facebook.com"+notifier.Path("v21.0", w.from, "messages"), payload,
				"Accept", "application/json", "Authorization", "Bearer "+w.token)
		}
	}
	return errors.Join(c.Steps.Each(ctx, w.targets, post("individual", "")), c.Steps.Each(ctx, w.groups, post("group", "@g.us")))
}

// fill returns the template with its values.
func (w *whatsApp) fill(m *notifier.Message) map[string]any {
	out := map[string]any{"name": w.template, "language": map[string]string{"code": w.language}}
	var parameters []map[string]string
	for _, place := range w.components {
		text := place.text
		switch place.part {
		case "body":
			text = m.Body
		case "type":
			text = string(m.Type)
		}
		// WhatsApp refuses line breaks, tabs and more than four spaces here.
		text = strings.Join(strings.Fields(text), " ")
		parameters = append(parameters, map[string]string{"type": "text", "text": text})
	}
	if parameters != nil {
		out["components"] = []any{map[string]any{"type": "body", "parameters": parameters}}
	}
	return out
}
