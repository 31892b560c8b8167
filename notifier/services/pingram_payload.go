package services

import (
	"cmp"
	"maps"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

// payload returns the request without the recipient.
func (p *pingram) payload(m *notifier.Message) map[string]any {
	payload := map[string]any{"type": cmp.Or(p.kind, "apprise")}
	if p.template {
		fields := map[string]string{
			"appBody": m.Body, "appTitle": m.Title, "appType": string(m.Type), "appColor": m.Type.Color(),
			"appId": m.Identity.Name, "appDescription": m.Identity.Description,
			"appImageUrl": m.Icon(72), "appUrl": m.Identity.URL,
		}
		all := map[string]string{}
		maps.Copy(all, p.tokens)
		maps.Copy(all, fields)
		payload["parameters"] = all
		return payload
	}
	title := cmp.Or(m.Title, m.Identity.Name)
	text := m.Body
	if m.Format == notifier.HTML {
		text = markup.Convert(m.Body, notifier.HTML, notifier.Text)
	}
	both := (&notifier.Message{Title: m.Title, Body: text}).Text("\n")
	for _, channel := range p.via {
		content := map[string]string{}
		switch channel {
		case "sms", "call":
			content["message"] = both
		case "slack":
			content["text"] = both
		case "email":
			content["subject"], content["html"] = title, markup.Convert(m.Body, m.Format, notifier.HTML)
			name, address := p.sender(m)
			if address != "" {
				content["senderEmail"] = address
			}
			if name != "" {
				content["senderName"] = name
			}
		case "inapp":
			content["title"] = title
			if icon := m.Icon(72); icon != "" {
				content["image"] = icon
			}
		case "web_push":
			content["title"], content["message"] = title, text
			if icon := m.Icon(72); icon != "" {
				content["icon"] = icon
			}
		case "mobile_push":
			content["title"], content["message"] = title, text
		}
		payload[channel] = content
	}
	return payload
}

// sender returns the name and the address in the parameter from. Both are empty
// without it; Pingram then uses the account's sender.
func (p *pingram) sender(m *notifier.Message) (name, address string) {
	if p.sent.Address == "" {
		return p.sent.Name, ""
	}
	return cmp.Or(p.sent.Name, m.Identity.Name), p.sent.Address
}

// options returns the options of an e-mail to the address to, which may be empty.
func (p *pingram) options(m *notifier.Message, to string) map[string]any {
	options := map[string]any{}
	if name, address := p.sender(m); address != "" {
		options["fromAddress"], options["fromName"] = address, name
	}
	rcpt := mail.NewRecipients([]mail.Address{{Address: to}}, mail.ParseList(p.cc), mail.ParseList(p.bcc))
	if len(rcpt.CC) > 0 {
		options["ccAddresses"] = mail.Addresses(rcpt.CC)
	}
	if len(rcpt.BCC) > 0 {
		options["bccAddresses"] = mail.Addresses(rcpt.BCC)
	}
	if len(p.reply) > 0 {
		options["replyToAddresses"] = mail.Addresses(mail.ParseList(p.reply))
	}
	return options
}
