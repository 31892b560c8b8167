package console

import (
	"context"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/tally"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// bars draws the outcomes of deliveries in the last 24 hours, for one page.
type bars struct {
	site    string
	now     time.Time
	started bool // earlier outcomes than the start of the gateway are unknown
	sum     func(id tally.ID) [tally.Kept]tally.Counts
}

// bars returns the bars of the site. q is nil without a queue, or if it cannot be read.
func (h *shared) bars(ctx context.Context, q *gateway.Rooms) *bars {
	b := &bars{site: h.Site(), now: time.Now(), started: q == nil}
	if q != nil {
		ctx, cancel := context.WithTimeout(ctx, outbox.AdminTimeout)
		defer cancel()
		b.sum = q.Tallies.Sum(ctx, b.now)
		return b
	}
	b.sum = func(id tally.ID) (parts [tally.Kept]tally.Counts) {
		h.Shared.Tally.Sum(b.now, id, &parts)
		return parts
	}
	return b
}

// ofKey returns the bar of a key.
func (b *bars) ofKey(key string) *view.Bar { return b.of(tally.OfKey(b.key(key))) }

// ofTarget returns the bar of a destination of a key.
func (b *bars) ofTarget(key string, t notifier.Target) *view.Bar {
	return b.of(tally.OfDestination(b.key(key), t))
}

// ofHash returns the bar of a destination of some keys. hash is the hash by which it is counted; ""
// if unknown.
func (b *bars) ofHash(keys []string, hash string) *view.Bar {
	if hash == "" {
		return nil
	}
	var ids []tally.ID
	for _, key := range keys {
		ids = append(ids, tally.OfHash(b.key(key), hash))
	}
	return b.of(ids...)
}

func (b *bars) key(name string) site.KeyID { return site.KeyID{Site: b.site, Key: name} }

// of returns the sum of the bars with these IDs.
func (b *bars) of(ids ...tally.ID) *view.Bar {
	out := &view.Bar{End: tally.SlotOf(b.now).End(), Started: b.started}
	for _, id := range ids {
		for i, n := range b.sum(id) {
			p := &out.Parts[i]
			p.Delivered, p.Waited, p.Failed = p.Delivered+n.Delivered, p.Waited+n.Waited, p.Failed+n.Failed
		}
	}
	return out
}
