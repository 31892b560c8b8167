package outbox

import (
	"context"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

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
