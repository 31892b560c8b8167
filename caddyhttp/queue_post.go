package caddyhttp

import (
	"context"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// enqueue stores a message whose sender does not wait for the outcome. It
// reports whether the message is stored. If the app has no queue or the queue
// cannot take the message, the caller sends it. A message with chains is sent
// before enqueue returns.
func (a *engine) enqueue(k *site.Key, d delivery) bool {
	q, err := a.durable(k)
	if err != nil || q == nil {
		return false
	}
	d.release = func() {}
	s := newQueuedSend(d, q)
	if err := s.begin(context.Background(), false); err != nil {
		q.log.Error("message not stored; it is sent once instead", zap.String("key", d.key), zap.String("source", d.source), zap.Error(err))
		return false
	}
	if len(s.direct) > 0 { // targets of chains
		ctx := context.Background()
		sending, trace := s.start(ctx)
		s.finish(ctx, sending.Wait(nil), trace)
		return true
	}
	a.shared.conclude(s.delivery, nil, s.reportOn(s.begun, nil))
	return true
}
