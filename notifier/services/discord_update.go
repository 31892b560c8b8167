package services

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/shown"
)

// show tells m by changing the message that shows its incident. Messages of a
// webhook cannot answer another one, so that a short message follows instead of a
// reply. See https://docs.discord.com/developers/resources/webhook#edit-webhook-message.
func (d *discordHook) show(ctx context.Context, c *notifier.Client, m *notifier.Message, address string) error {
	query := url.Values{}
	if d.thread != "" {
		query.Set("thread_id", d.thread)
	}
	post := func(ctx context.Context, m *notifier.Message) (r shown.Ref, err error) {
		q := &notifier.Request{URL: address, Body: notifier.JSON(d.textPayloads(m)[0]), Query: url.Values{"wait": {"true"}}}
		if d.thread != "" {
			q.Query.Set("thread_id", d.thread)
		}
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
			for _, name := range []string{"content", "embeds", "allowed_mentions"} {
				if v, ok := first[name]; ok {
					change[name] = v
				}
			}
			_, err := c.Do(ctx, &notifier.Request{
				Method: http.MethodPatch, URL: address + "/messages" + notifier.Path(r.ID), Query: query, Body: notifier.JSON(change),
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
