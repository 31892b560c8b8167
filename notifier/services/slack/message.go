package slack

import (
	"fmt"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// How many answers to a question have a button each.
const (
	maxActions = 5 // of an attachment
	maxButtons = 6
)

// payload returns the message without a channel. body is what mrkdwn returns.
func (k *service) payload(m *notifier.Message, body string) map[string]any {
	p := map[string]any{}
	if k.botname != "" {
		p["username"] = k.botname
	}
	icon := ""
	if k.image {
		icon = m.Icon(72)
	}
	attachment := map[string]any{"color": m.Type.Color()}
	p["attachments"] = []any{attachment}
	if k.blocks {
		attachment["blocks"] = k.layout(m, body, icon)
		if k.footer && icon != "" {
			p["icon_url"] = icon
		}
		return p
	}
	if m.Format == notifier.Markdown && m.Source == notifier.Text && m.Dialect == "" && !m.Foreign {
		body = escape(body)
	}
	p["mrkdwn"] = m.Format == notifier.Markdown
	attachment["title"], attachment["text"] = escaper.Replace(m.Title), body
	if m.Link.URL != "" {
		// A link button of an attachment needs no answer of an app.
		// See https://api.slack.com/legacy/interactive-message-field-guide#action_fields.
		attachment["fallback"] = m.Text("\n") + "\n" + m.Link.URL
		var actions []any
		for _, l := range m.Buttons(maxActions) {
			actions = append(actions, map[string]string{"type": "button", "text": l.Label, "url": l.URL})
		}
		attachment["actions"] = actions
	}
	if icon != "" {
		p["icon_url"] = icon
	}
	if k.footer {
		attachment["footer"] = m.Identity.Name
		if icon != "" {
			attachment["footer_icon"] = icon
		}
		if k.timestamp {
			attachment["ts"] = m.Time.Unix()
		}
	}
	return p
}

// The maximum length of a header and of a section block, in characters.
const (
	maxHeader  = 150
	maxSection = 3000
)

// layout returns the blocks of a message.
// See https://api.slack.com/reference/block-kit/blocks.
func (k *service) layout(m *notifier.Message, body, icon string) (blocks []any) {
	type object = map[string]any
	textType := "plain_text"
	if m.Format == notifier.Markdown {
		textType = "mrkdwn"
	}
	if title := headline(m); title != "" {
		blocks = append(blocks, object{"type": "header", "text": object{"type": "plain_text", "text": title, "emoji": true}})
	}
	if body != "" {
		blocks = append(blocks, object{"type": "section", "text": object{"type": textType, "text": body}})
	}
	if m.Link.URL != "" {
		var buttons []any
		for i, l := range m.Buttons(maxButtons) {
			id := "acknowledge"
			if m.Asks() {
				id = fmt.Sprint("answer", i)
			}
			buttons = append(buttons, object{"type": "button", "text": object{"type": "plain_text", "text": l.Label}, "url": l.URL, "action_id": id})
		}
		blocks = append(blocks, object{"type": "actions", "elements": buttons})
	}
	if k.footer {
		elements := []any{object{"type": textType, "text": m.Identity.Name}}
		if icon != "" {
			elements = append([]any{object{"type": "image", "image_url": icon, "alt_text": string(m.Type)}}, elements...)
		}
		blocks = append(blocks, object{"type": "context", "elements": elements})
	}
	return blocks
}
