package services

import (
	"context"
	"errors"
	"net/http"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/shown"
)

// show shows m by changing the message with its incident. Messages of a webhook cannot answer
// another one, so that a short message follows instead of a reply. See
// https://docs.discord.com/developers/resources/webhook#edit-webhook-message.
func (d *discordHook) show(ctx context.Context, c *notifier.Client, m *notifier.Message, address string) error {
	post := func(ctx context.Context, m *notifier.Message) (r shown.Ref, err error) {
		first := d.textPayloads(m)[0]
		q := &notifier.Request{URL: address, Body: notifier.JSON(first), Query: d.query(first)}
		q.Query.Set("wait", "true")
		var answer struct {
			ID string `json:"id"`
		}
		err = c.DoJSON(ctx, q, &answer)
		return shown.Ref{ID: answer.ID}, err
	}
	_, err := d.shown.Tell(ctx, c, m, shown.Chat{
		Post: post,
		Edit: func(ctx context.Context, r shown.Ref, m *notifier.Message) error {
			first := d.textPayloads(m)[0]
			change := map[string]any{}
			for _, name := range []string{"content", "embeds", "allowed_mentions", "components"} {
				if v, ok := first[name]; ok {
					change[name] = v
				}
			}
			if r.Button && change["components"] == nil {
				change["components"] = []any{}
			}
			_, err := c.Do(ctx, &notifier.Request{
				Method: http.MethodPatch, URL: address + "/messages" + notifier.Path(r.ID), Query: d.query(change), Body: notifier.JSON(change),
			})
			if status, ok := errors.AsType[*notifier.StatusError](err); ok && status.Code == http.StatusNotFound {
				return shown.ErrGone // if the webhook is gone, too, a new message fails
			}
			return err
		},
		Reply: func(ctx context.Context, _ shown.Ref, m *notifier.Message) error {
			_, err := post(ctx, m)
			return err
		},
	})
	return err
}
