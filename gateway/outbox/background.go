package outbox

import (
	"cmp"
	"context"
	"errors"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// ErrQueueFull is returned when the background queue is full.
var ErrQueueFull = errors.New("too many messages wait to be sent")

// errNoTarget is returned when no destination of a key has the tag, which a device may
// have had.
var errNoTarget = errors.New("no destination of the key has the tag now")

// Post sends a message to targets of a key of the app in the background. If log is false,
// the deliveries leave no log entries. done, if it is not nil, is called with
// the report, unless the queue takes the message.
func (a *Engine) Post(k *site.Key, targets []notifier.Target, m *notifier.Message, source string, log bool, done func(*notifier.Report)) error {
	if len(targets) == 0 && k.Inbox == 0 {
		_, err := k.Choose(notifier.TagExpr{})
		return cmp.Or(err, errNoTarget)
	}
	d := dispatch.NewDelivery(a.Resolved, source, "", m, &api.Selection{Targets: targets}).ToKey(k)
	if !log {
		d.Logger = nil
	}
	ok := a.Shared.Background.Add(func() {
		if a.enqueue(k, d) {
			return
		}
		report := a.Shared.Send(context.Background(), d)
		if done != nil {
			done(report)
		}
	})
	if !ok {
		return ErrQueueFull
	}
	return nil
}
