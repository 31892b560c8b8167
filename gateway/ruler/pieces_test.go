package ruler_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/ruler"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// meter is a store that counts the bytes of the records that are written.
type meter struct {
	queue.Store
	written atomic.Int64
}

// measured returns an update that counts what it changes.
func (m *meter) measured(u *queue.Update) *queue.Update {
	if u == nil {
		return nil
	}
	out := *u
	out.Decide = func(tx *queue.Tx) error {
		if err := u.Decide(tx); err != nil {
			return err
		}
		for i := range u.Names {
			if r, ok := tx.Changed(i); ok {
				m.written.Add(int64(len(r.Data)))
			}
		}
		for _, r := range tx.Owned() {
			m.written.Add(int64(len(r.Data)))
		}
		return nil
	}
	return &out
}

func (m *meter) Update(ctx context.Context, u *queue.Update) error {
	return m.Store.Update(ctx, m.measured(u))
}

func (m *meter) Accept(ctx context.Context, maxSize int64, entries ...*queue.Entry) error {
	for _, e := range entries {
		e.Update = m.measured(e.Update)
	}
	return m.Store.Accept(ctx, maxSize, entries...)
}

// take returns how many bytes were written since the last call.
func (m *meter) take() int64 { return m.written.Swap(0) }

// newMetered returns a gateway with a meter in the place of its store.
func newMetered(t *testing.T, dir string, keys ...site.KeyOptions) (*gatewaytest.Gateway, *meter) {
	o, m := gatewaytest.Queued(dir, keys...), new(meter)
	o.Wrap = func(s queue.Store) queue.Store {
		m.Store = s
		return m
	}
	return gatewaytest.New(t, o), m
}

// big returns an alert with 5 KB of labels and annotations.
func big(i int, lasts time.Duration) string {
	return alertOf(map[string]string{"alertname": "Disk", "instance": fmt.Sprintf("%04d", i), "cause": strings.Repeat("x", 5000)}, lasts)
}

const bigAlerts = 400

// wantOpen checks how many alerts are open.
func wantOpen(t *testing.T, g *gatewaytest.Gateway, n int) {
	t.Helper()
	if open, err := g.Rooms().Rulers.Open(t.Context(), site.Place{Key: "k"}); err != nil || len(open) != n {
		t.Errorf("%d alerts are open, %v; want %d", len(open), err, n)
	}
}

// TestRulerPieces checks that a change of one alert of a large group writes little, whether it is
// posted or told, that the group outlasts a restart and counts for its key, and that all of it goes.
func TestRulerPieces(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		const most = 250_000
		g, m := newMetered(t, dir, key(p))
		for first := 0; first < bigAlerts; first += 200 {
			var alerts []string
			for i := range 200 {
				alerts = append(alerts, big(first+i, time.Hour))
			}
			post(t, g, alerts...)
		}
		wait(time.Minute)
		if n := m.take(); n < bigAlerts*5000 {
			t.Errorf("only %d bytes are written", n)
		}
		for i := range 5 {
			post(t, g, big(i, 0))
			if n := m.take(); n == 0 || n > most {
				t.Errorf("a resolved alert writes %d bytes", n)
			}
			post(t, g, big(i, time.Hour))
			if n := m.take(); n == 0 || n > most {
				t.Errorf("a firing alert writes %d bytes", n)
			}
		}
		post(t, g, big(7, 0))
		m.take()
		wait(6 * time.Minute)
		if n, told := m.take(), p.Count(); n == 0 || n > most || told != 2 {
			t.Errorf("%d messages; the last one writes %d bytes", told, n)
		}
		wantOpen(t, g, bigAlerts-1)
		g.Stop()
		g = newGateway(t, dir, key(p))
		wantOpen(t, g, bigAlerts-1)
		before, err := g.Rooms().Outbox.Queue.Stats(t.Context())
		if err != nil || before.Records < bigAlerts*5000 {
			t.Errorf("the records have %d bytes, %v", before.Records, err)
		}
		wait(80 * time.Minute)
		wantOpen(t, g, 0)
		after, err := g.Rooms().Outbox.Queue.Stats(t.Context())
		if err != nil || after.Records > 100_000 {
			t.Errorf("%d bytes of records are left, %v", after.Records, err)
		}
	})
}

// TestRulerPiecesShare checks that the pieces of groups count for the share of their key, and that
// it has room again when they have gone.
func TestRulerPiecesShare(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := gatewaytest.New(t, gatewaytest.Options{
			Global: site.Options{Keys: []site.KeyOptions{key(p)}}, Queue: &outbox.Settings{Path: dir, MaxSize: 8 << 20},
		})
		fill := func() (n int) {
			for ; n < 1000; n++ {
				if got := g.Post(alertsAddress, gatewaytest.TypeJSON, "["+big(n, 30*time.Minute)+"]"); got.Status == http.StatusTooManyRequests {
					break
				} else if got.Status != http.StatusOK {
					t.Fatalf("status %d: %s", got.Status, got.Body)
				}
			}
			synctest.Wait()
			return n
		}
		if n := fill(); n < 90 || n > 105 { // of 512 KiB
			t.Errorf("%d alerts have room", n)
		}
		wait(time.Hour)
		if n := fill(); n < 90 || n > 105 {
			t.Errorf("%d alerts have room later", n)
		}
	})
}

// TestRulerEarlierGroup checks that a large group of an earlier version, which is one record, goes
// on, and is in pieces after its next change.
func TestRulerEarlierGroup(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g, m := newMetered(t, dir, key(p))
		record := wire.AppendItem(ruler.KindGroup.Begin(), 3, "k")
		record = wire.AppendItem(record, 4, "Disk")
		for i := range bigAlerts {
			a := wire.AppendItem(nil, 1, fmt.Sprintf("%016x", i))
			for _, text := range []string{"alertname", "Disk", "cause", strings.Repeat("x", 5000)} {
				a = wire.AppendItem(a, 2, text)
			}
			a = wire.AppendNumber(a, 6, protowire.EncodeZigZag(time.Now().Add(10*time.Hour).UnixMicro()))
			a = wire.AppendNumber(a, 7, protowire.EncodeZigZag(time.Now().UnixMicro()))
			record = wire.AppendItem(record, 7, wire.AppendNumber(a, 9, 1))
		}
		record = wire.AppendNumber(record, 8, 1)
		q := g.Rooms().Outbox.Queue
		name := q.Hash("alert group\x00" + site.Place{Key: "k"}.String() + "\x00Disk")
		stored := queue.Record{Data: record, Due: time.Now().Add(10 * time.Hour), Group: q.Hash("alert groups")}
		decide := func(tx *queue.Tx) error {
			tx.Put(name, stored)
			return nil
		}
		err := q.Records.Apply(t.Context(), &queue.Ruled{Names: []queue.Hash{name}, Decide: decide})
		if err != nil {
			t.Fatal(err)
		}
		wantOpen(t, g, bigAlerts)
		m.take()
		post(t, g, alert("a", 10*time.Hour))
		if n := m.take(); n < bigAlerts*5000 {
			t.Errorf("the first change writes %d bytes", n)
		}
		wantOpen(t, g, bigAlerts+1)
		post(t, g, alert("a", 0))
		if n := m.take(); n == 0 || n > 250_000 {
			t.Errorf("the next change writes %d bytes", n)
		}
		post(t, g, alert("b", 10*time.Hour))
		wait(6 * time.Minute)
		if n := p.Count(); n != 1 {
			t.Errorf("%d messages, want the one about b", n)
		}
		wantOpen(t, g, bigAlerts+1)
	})
}
