package gateway

import (
	"context"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// New returns the value with which a process sends, with a User-Agent. queue returns the state of its
// open queue, or nil.
func New(agent string, emit func(name string, data func() map[string]any), queue func(context.Context) *metrics.QueueState) *dispatch.Dispatcher {
	s := &dispatch.Dispatcher{Sender: notifier.NewSender(egress.NewPool(agent), notifier.DefaultConcurrency), EmitEvent: emit}
	s.Metrics = metrics.New(&s.InFlight, &s.Memory, queue)
	return s
}

// CloseDispatcher closes the connections. A request that outlives the last configuration can still
// send; it opens new ones.
func CloseDispatcher(s *dispatch.Dispatcher) {
	s.Sender.Close()
	s.Sender.Pool().Close()
}
