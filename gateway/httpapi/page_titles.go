package httpapi

import (
	"context"

	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
)

// SetTitles sets the titles of messages of the key of x.
func (x *InboxReader) SetTitles(ctx context.Context, messages []*view.ListedMessage) error {
	missing := make(map[string]*view.ListedMessage, len(messages))
	first, last := messages[0].Time, messages[0].Time
	for _, m := range messages {
		missing[m.ID] = m
		if m.Time.Before(first) {
			first = m.Time
		}
		if m.Time.After(last) {
			last = m.Time
		}
	}
	return x.CameIn(ctx, first, last, func(kept *inbox.Message) bool {
		if m := missing[kept.ID]; m != nil {
			m.Title, m.Kept = kept.Title, true
			delete(missing, kept.ID)
		}
		return len(missing) > 0
	})
}
