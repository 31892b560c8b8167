package outbox

import (
	"context"

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
