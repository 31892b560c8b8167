package slack

import (
	"context"
	"slices"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/shown"
)

// show shows m to a target by changing the message with its incident. See
// https://docs.slack.dev/reference/methods/chat.update.
func (k *service) show(ctx context.Context, c *notifier.Client, m *notifier.Message, target string) (arrival, error) {
	ref, err := k.shown.Tell(ctx, c, m, shown.Chat{
		Place: target,
		Post: func(ctx context.Context, m *notifier.Message) (shown.Ref, error) {
			p := k.payload(m, mrkdwn(m))
			if err := k.address(ctx, c, target, p); err != nil {
				return shown.Ref{}, err
			}
			channel, ts, err := k.deliver(ctx, c, p)
			return shown.Ref{Channel: channel, ID: ts}, err
		},
		Edit: func(ctx context.Context, r shown.Ref, m *notifier.Message) error {
			p := k.payload(m, mrkdwn(m))
			p["channel"], p["ts"] = r.Channel, r.ID
			q := k.api("chat.update")
			q.Body = notifier.JSON(p)
			var answer response
			if err := c.DoJSON(ctx, q, &answer); err != nil {
				return err
			}
			if slices.Contains(goneErrors, answer.Error) {
				return shown.ErrGone
			}
			return answer.check()
		},
		Reply: func(ctx context.Context, r shown.Ref, m *notifier.Message) error {
			p := k.payload(m, mrkdwn(m))
			p["channel"], p["thread_ts"] = r.Channel, r.ID
			if thread := threadOf(target); thread != "" {
				p["thread_ts"] = thread
			}
			_, _, err := k.deliver(ctx, c, p)
			return err
		},
	})
	thread := threadOf(target)
	if thread == "" && ref.ID != "" {
		thread = ref.ID // files go to the message
	}
	return arrival{target, ref.Channel, thread}, err
}

// goneErrors are errors for a message that cannot be changed.
var goneErrors = []string{"message_not_found", "cant_update_message", "edit_window_closed"}
