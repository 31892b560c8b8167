package gatewaytest

import (
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// nightRuns are runs of beats, one a day: "." on time, "l" late, "x" failed, "m" missed, "+" too long.
var nightRuns = map[string]string{
	"nightly": ".........l..........m..x...", "offsite": "............................",
	"mirror": ".....l.......+.....x......m", "archive": ".",
}

// remember lets the jobs of the key backups have run for weeks.
func (n *Night) remember(t testing.TB) {
	t.Helper()
	q, k := n.Rooms().Outbox, n.Resolved.Keys["backups"]
	records, now := outbox.Typed[rules.Beat]{Kind: heartbeat.KindBeat, Fields: (*rules.Beat).Fields}, q.Queue.Now()
	for name, days := range nightRuns {
		e, b := k.Expect(name), &rules.Beat{Key: k.Name, Name: name}
		for i, day := range days {
			at := now.AddDate(0, 0, i-len(days)).Add(-30 * time.Minute)
			if i == 0 {
				b.Arm(at.Add(-e.Every), new(rules.Uptime), &e.Expect)
			}
			if day != 'm' && day != 'l' {
				b.Start(at, new(rules.Uptime), &e.Expect)
			}
			at = at.Add(time.Duration(12+i%5) * time.Minute)
			told := at.Add(2 * time.Hour)
			switch day {
			case 'm':
				b.Miss(told)
				continue
			case 'l':
				b.Miss(told)
				at = told
			case '+':
				b.Overrun(told)
				at = told.Add(time.Minute)
			}
			if day != 'x' {
				b.Came(at, new(rules.Uptime), &e.Expect, false, "")
				continue
			}
			b.Came(at, new(rules.Uptime), &e.Expect, true, "2")
			b.Posted("tar: /srv/data: file changed as we read it")
		}
		hash := q.Queue.Hash("beat\x00" + k.Place("").String() + "\x00" + name)
		if err := q.Queue.Records.Apply(t.Context(), &queue.Ruled{Names: []queue.Hash{hash}, Decide: func(tx *queue.Tx) error {
			records.Put(tx, hash, b, now.Add(time.Minute), queue.Hash{})
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
	}
}
