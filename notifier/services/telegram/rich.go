package telegram

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/jsontemplate"
)

// rich sends the filled template as a rich message. See
// https://core.telegram.org/bots/api#sendrichmessage.
func (t delivery) rich(ctx context.Context) error {
	icon := ""
	if t.image {
		icon = t.m.Icon(256)
	}
	content, err := t.template.Fill(ctx, t.c, jsontemplate.Values(t.m, icon), checkTemplate)
	if err != nil {
		return err
	}
	return t.once("text", func() error {
		p := t.fields("rich_message", content)
		if !t.preview {
			p["link_preview_options"] = map[string]bool{"is_disabled": true}
		}
		if t.silent {
			p["disable_notification"] = true
		}
		_, err := t.call(ctx, t.c, "sendRichMessage", notifier.JSON(p))
		return err
	})
}

// checkTemplate returns an error if a template is not made of blocks.
func checkTemplate(t map[string]any) error { return jsontemplate.Objects(t, "blocks", "type") }
