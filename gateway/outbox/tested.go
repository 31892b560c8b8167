package outbox

import (
	"context"
	"slices"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// SendTest sends a test message at once, without the queue. The queue learns which destinations
// of the key it has reached: they are not failing any more, and get what waits for them. A test
// that fails changes nothing, because somebody looks at it.
func (a *Configuration) SendTest(ctx context.Context, k *site.Key, d dispatch.Delivery) *notifier.Report {
	report := a.Shared.Send(ctx, d)
	q, err := a.Durable(k)
	if q == nil || err != nil {
		return report
	}
	for i, at := range d.To.Positions() {
		t := d.To.Targets[i]
		ofKey := slices.ContainsFunc(k.Targets, func(o notifier.Target) bool { return o.Hash() == t.Hash() })
		if r := &report.Results[at]; ofKey && r.Status == notifier.Delivered {
			q.observe(&d, t, r)
		}
	}
	return report
}
