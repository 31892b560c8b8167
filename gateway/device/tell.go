package device

import (
	"context"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// What happens to a device.
const (
	added   = "added"
	removed = "removed"
	gone    = "gone"    // its browser has ended the subscription
	silent  = "silent"  // it does not answer
	refused = "refused" // its push service refuses messages for it
)

// changed logs a change of a device and emits its event. by is the user who made the change; "" if
// unknown.
func (q *Registry) changed(conf *outbox.Configuration, change, key, name, by string) {
	conf.Log.Info("device "+change, zap.String("key", key), zap.String("device", name), zap.String("who", by))
	q.outbox.Dispatcher.EmitEvent(event.Device, func() map[string]any {
		return map[string]any{"change": change, "key": key, "device": name, "by": by}
	})
}

// SiteSettings are the settings of a site with its ID.
type SiteSettings struct {
	Settings *site.Site
	Site     string
}

// tell stores a message about a device to the other destinations of its key, and makes a change in
// the same transaction. at is where the key was, if the configuration no longer has it. tell
// reports false if the key is gone or has no other destination.
func (q *Registry) tell(ctx context.Context, conf *outbox.Configuration, at SiteSettings, of site.Place, id string, m *notifier.Message,
	with *queue.Ruled,
) bool {
	k, settings, siteID := conf.FindPlace(ctx, of)
	if k == nil && at.Settings != nil {
		settings, siteID = at.Settings, at.Site
		k, _ = settings.Key(ctx, of.Key)
	}
	if k != nil && k.Saved && k.Place(siteID) != of {
		return false // another key has the name now
	}
	if k == nil {
		return false
	}
	var targets []notifier.Target
	for _, t := range k.DefaultTargets {
		if t.Hash() != Hash(id) {
			targets = append(targets, t)
		}
	}
	if len(targets) == 0 && k.Inbox == 0 {
		return false
	}
	m.Format, m.Foreign = markup.Text, true // a client has chosen the name
	d := dispatch.NewDelivery(settings, site.SourceDevice, siteID, m, &message.Selection{Targets: targets}).ToKey(k)
	d.Rules, d.With = nil, with // it is sent at once
	e, _ := q.outbox.Entry(&d)
	e.Unlimited = true
	if err := q.outbox.Queue.Accept(ctx, e); err != nil {
		q.outbox.Log.Warn("a key cannot be told what happens to its device", zap.String("key", k.Name), zap.Error(err))
		return false
	}
	return true
}

// badge returns how many incidents of the key are open, or nil if it is not known.
func (d *deviceService) badge(ctx context.Context) *int {
	n, err := d.queue.incidents.CountUnresolved(ctx, d.key.String(), maxBadge)
	if err != nil {
		return nil
	}
	return &n
}

// maxBadge is the greatest number on the icon of a device.
const maxBadge = 99
