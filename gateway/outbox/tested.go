package outbox

import (
	"context"
	"slices"
	"sync"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/message"
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

// SendTests sends a message to each definition of a key, with the settings of its site, and
// returns the reports as one.
func (a *Configuration) SendTests(ctx context.Context, m *notifier.Message, definitions []site.Definition, tag notifier.TagExpr) *notifier.Report {
	reports := make([]*notifier.Report, len(definitions))
	var wg sync.WaitGroup
	for i, d := range definitions {
		targets := d.Key.Select(tag)
		if len(targets) == 0 {
			continue
		}
		c := *m
		wg.Go(func() {
			to := &message.Selection{Targets: targets}
			reports[i] = a.SendTest(ctx, d.Key, dispatch.NewDelivery(d.Site, site.SourceTest, a.SiteID(d.Site), &c, to).ToKey(d.Key))
		})
	}
	wg.Wait()
	all := new(notifier.Report)
	for _, r := range reports {
		if r != nil {
			all.Results, all.Records = append(all.Results, r.Results...), append(all.Records, r.Records...)
		}
	}
	return all
}
