package slack

import (
	"github.com/caddy-notify/caddy-notify/notifier"
)

// payload is the message without its channel; body is m's in the markup of
// Slack where that was HTML.
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
	if m.Format == notifier.Markdown && m.Source != notifier.HTML {
		body = escape(body)
	}
	p["mrkdwn"] = m.Format == notifier.Markdown
	attachment["title"], attachment["text"] = escaper.Replace(m.Title), body
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

// What the blocks of a message may hold, in characters.
const (
	maxHeader  = 150
	maxSection = 3000
)

// layout makes the blocks of a message.
// See https://api.slack.com/reference/block-kit/blocks.
func (k *service) layout(m *notifier.Message, body, icon string) (blocks []any) {
	type object = map[string]any
	kind := "plain_text"
	if m.Format == notifier.Markdown {
		kind = "mrkdwn"
	}
	if m.Title != "" {
		blocks = append(blocks, object{"type": "header", "text": object{"type": "plain_text", "text": m.Title, "emoji": true}})
	}
	if body != "" {
		blocks = append(blocks, object{"type": "section", "text": object{"type": kind, "text": body}})
	}
	if k.footer {
		elements := []any{object{"type": kind, "text": m.Identity.Name}}
		if icon != "" {
			elements = append([]any{object{"type": "image", "image_url": icon, "alt_text": string(m.Type)}}, elements...)
		}
		blocks = append(blocks, object{"type": "context", "elements": elements})
	}
	return blocks
}
