package caddyhttp

import (
	"cmp"
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// errQueueFull is returned when the background queue is full.
var errQueueFull = errors.New("too many messages wait to be sent")

// errNoTarget is returned when no destination of a key has the tag, which a device may
// have had.
var errNoTarget = errors.New("no destination of the key has the tag now")

// post sends a message to targets of a key of the app in the background. If log is false,
// the deliveries leave no log entries. done, if it is not nil, is called with
// the report, unless the queue takes the message.
func (a *engine) post(k *site.Key, targets []notifier.Target, m *notifier.Message, source string, log bool, done func(*notifier.Report)) error {
	if len(targets) == 0 && k.Inbox == 0 {
		_, err := k.Choose(notifier.TagExpr{})
		return cmp.Or(err, errNoTarget)
	}
	d := dispatch.NewDelivery(a.Resolved, source, "", m, &api.Selection{Targets: targets}).ToKey(k)
	if !log {
		d.Logger = nil
	}
	ok := a.shared.Background.Add(func() {
		if a.enqueue(k, d) {
			return
		}
		report := a.shared.Send(context.Background(), d)
		if done != nil {
			done(report)
		}
	})
	if !ok {
		return errQueueFull
	}
	return nil
}

// finish sends what the log writers have collected and waits for all messages
// in the background, unless another configuration replaces this app.
func (a *App) finish() {
	if a.shared.process.apps.newest() != a {
		return
	}
	a.shared.process.logs.flush()
	if left := a.shared.Background.Wait(dispatch.StopTimeout); left > 0 {
		a.log.Error("messages not sent before Caddy stopped", zap.Int("messages", left))
	}
}

// reportDropped logs that the background queue had no room for a message.
func (a *engine) reportDropped() {
	a.shared.Background.Dropped.Add(1, func(n int) {
		a.log.Error("messages not sent because too many wait", zap.Int("messages", n))
	})
}
