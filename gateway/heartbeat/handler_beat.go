package heartbeat

import (
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Came returns the change for a beat that has come. If told is false, it refuses a beat
// about which a message has to be sent, and otherwise one without a message.
func (q *Monitor) Came(x *ExpectedBeat, failed, told bool, before *rules.Beat) *BeatChange {
	return &BeatChange{q: q, name: q.beatName(x), change: func(now time.Time, b *rules.Beat, u *rules.Uptime) (remove, ok bool) {
		*before = *b
		b.Site, b.Key, b.Name = x.Site, x.Key.Name, x.Name
		return false, b.Came(now, u, &x.Expect, failed) == told
	}}
}
