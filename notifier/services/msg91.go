package services

import (
	"context"
	"maps"
	"slices"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[msg91]()

// msg91 sends text messages through MSG91, with a template stored there.
type msg91 struct {
	sms
	template, key string
	short         bool
	fields        map[string]string
}

func (x *msg91) Describe(s *notifier.Schema) {
	s.Name, s.Site = "MSG91", "https://docs.msg91.com/sms/send-sms"
	s.Setup = "Create an authkey in the MSG91 panel and whitelist the gateway's IP address for it, " +
		"or turn the IP security of the key off; template is the ID of an SMS template there."
	s.Groups(notifier.GroupSMS, notifier.GroupRegional)
	s.Words("india")
	s.URL("msg91://{template}@{authkey}/{targets...}")
	x.describe(s, notifier.FullPhone)
	s.Secret(&x.template, "template", "ID of the template").Match(`^[a-z0-9 _-]+$`).Example("6512a0b1c2d3e4f5a6b7c8d9")
	s.Secret(&x.key, "authkey", "authentication key").Match(`^[a-z0-9]+$`).Example("012345A6bCdEf0123456P1")
	s.Bool(&x.short, "short_url", false, "shorten addresses in the text")
	s.Map(&x.fields, ":", "template_mapping", "variable to add, or new name for body or type").Public("body", "type")
}

// variables returns the variables of the template: body and type of the message,
// renamed as the URL says, and the variables that the URL adds.
func (x *msg91) variables(m *notifier.Message) map[string]string {
	own := map[string]string{"body": m.Body, "type": string(m.Type)}
	out := maps.Clone(own)
	for name := range x.fields {
		delete(out, name)
	}
	for _, name := range slices.Sorted(maps.Keys(x.fields)) {
		if part, ok := own[name]; !ok {
			out[name] = x.fields[name]
		} else if x.fields[name] != "" {
			out[x.fields[name]] = part
		}
	}
	return out
}

func (x *msg91) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	recipients := make([]map[string]string, len(x.targets))
	for i, number := range x.targets {
		recipients[i] = x.variables(m)
		recipients[i]["mobiles"] = number
	}
	return checkedDo(ctx, c, &notifier.Request{
		URL:    "https://control.msg91.com/api/v5/flow/",
		Header: map[string]string{"authkey": x.key},
		Body:   notifier.JSON(map[string]any{"template_id": x.template, "short_url": map[bool]int{true: 1}[x.short], "recipients": recipients}),
	}, "type", "message")
}
