package tally

import (
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// Observe counts the outcome of an attempt. repeats reports whether the attempt is made again
// if it can get better. last is when the attempt before it was made; zero for the first.
func (c *Counter) Observe(now time.Time, key site.KeyID, t notifier.Target, r *notifier.Result, repeats bool, last time.Time) {
	var what Counts
	switch {
	case r.Status == notifier.Delivered:
		what.Delivered = 1
	case r.Status != notifier.Failed:
		return
	case repeats && r.Temporary:
		if !last.IsZero() && SlotOf(last) == SlotOf(now) {
			return // it counts already
		}
		what.Waited = 1
	default:
		what.Failed = 1
	}
	c.Add(now, key, HashOf(t), what)
}
