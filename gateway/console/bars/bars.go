// Package bars counts the outcomes of deliveries in the last 24 hours for the pages, and finds the
// messages of one half hour.
package bars

import (
	"context"
	"net/url"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/tally"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// Bars draws the outcomes of deliveries in the last 24 hours, for one page.
type Bars struct {
	site     string
	messages string // the address of the list of messages
	now      time.Time
	started  bool // earlier outcomes than the start of the gateway are unknown
	sum      func(id tally.ID) [tally.Kept]tally.Counts
}

// New returns the bars of the site with an ID. q is nil without a queue, or if it cannot be read;
// then counter has the counts. messages is the address of the list of messages.
func New(ctx context.Context, siteID string, q *gateway.Rooms, counter *tally.Counter, messages string) *Bars {
	b := &Bars{site: siteID, messages: messages, now: time.Now(), started: q == nil}
	if q != nil {
		ctx, cancel := context.WithTimeout(ctx, outbox.AdminTimeout)
		defer cancel()
		b.sum = q.Tallies.Sum(ctx, b.now)
		return b
	}
	b.sum = func(id tally.ID) (parts [tally.Kept]tally.Counts) {
		counter.Sum(b.now, id, &parts)
		return parts
	}
	return b
}

// OfKey returns the bar of a key.
func (b *Bars) OfKey(key string) *view.Bar {
	return b.of([]string{key}, "", tally.OfKey(b.key(key)))
}

// OfTarget returns the bar of a destination of a key.
func (b *Bars) OfTarget(key string, t notifier.Target) *view.Bar {
	return b.of([]string{key}, t.String(), tally.OfDestination(b.key(key), t))
}

// OfHash returns the bar of a destination of some keys. hash is the hash by which it is counted; ""
// if unknown. shown is its URL as pages show it.
func (b *Bars) OfHash(keys []string, hash, shown string) *view.Bar {
	if hash == "" {
		return nil
	}
	var ids []tally.ID
	for _, key := range keys {
		ids = append(ids, tally.OfHash(b.key(key), hash))
	}
	return b.of(keys, shown, ids...)
}

func (b *Bars) key(name string) site.KeyID { return site.KeyID{Site: b.site, Key: name} }

// of returns the sum of the bars with these IDs, which leads to messages of keys to a destination.
func (b *Bars) of(keys []string, shown string, ids ...tally.ID) *view.Bar {
	out := &view.Bar{End: tally.SlotOf(b.now).End(), Started: b.started}
	query := url.Values{}
	if len(keys) == 1 {
		query.Set("key", keys[0])
	}
	if shown != "" {
		query.Set(toQuery, shown)
	}
	out.Messages = b.messages + "?" + query.Encode() + "&" + halfQuery + "="
	for _, id := range ids {
		for i, n := range b.sum(id) {
			p := &out.Parts[i]
			p.Delivered, p.Waited, p.Failed = p.Delivered+n.Delivered, p.Waited+n.Waited, p.Failed+n.Failed
		}
	}
	return out
}
