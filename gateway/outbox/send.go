package outbox

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

// SendOrQueue sends a message to a key for a client that waits. It returns the
// report and, with a queue, the ID of the message. Deliveries that are not
// final in time are stored and made later. sendOrQueue calls d.release when no
// delivery is in progress any more, possibly after it returns.
func (a *Engine) SendOrQueue(ctx context.Context, k *site.Key, d dispatch.Delivery) (*notifier.Report, string, error) {
	a.Shared.Incidents.Note(&d)
	q, err := a.Durable(k)
	if err != nil {
		d.Release()
		return nil, "", err
	}
	if q == nil {
		defer d.Release()
		return a.Shared.Send(ctx, d), "", nil
	}
	wait := q.App.Load().QueueSettings.Wait
	s := NewSubmission(d, q)
	if err := s.Begin(ctx, wait > 0); err != nil {
		d.Release()
		return nil, "", QueueError(err)
	}
	report, err := s.Run(ctx, wait)
	if err != nil {
		return nil, "", QueueError(err)
	}
	return report, s.ID.String(), nil
}

// enqueue stores a message whose sender does not wait for the outcome. It
// reports whether the message is stored. If the app has no queue or the queue
// cannot take the message, the caller sends it. A message with chains is sent
// before enqueue returns.
func (a *Engine) enqueue(k *site.Key, d dispatch.Delivery) bool {
	q, err := a.Durable(k)
	if err != nil || q == nil {
		return false
	}
	d.Release = func() {}
	s := NewSubmission(d, q)
	if err := s.Begin(context.Background(), false); err != nil {
		q.Log.Error("message not stored; it is sent once instead", zap.String("key", d.Key), zap.String("source", d.Source), zap.Error(err))
		return false
	}
	if len(s.direct) > 0 { // targets of chains
		ctx := context.Background()
		sending, trace := s.start(ctx)
		s.finish(ctx, sending.Wait(nil), trace)
		return true
	}
	a.Shared.Conclude(s.Delivery, nil, s.reportOn(s.begun, nil))
	return true
}

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
	d := dispatch.NewDelivery(a.Global, source, "", m, &api.Selection{Targets: targets}).ToKey(k)
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
