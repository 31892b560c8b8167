package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// countedRecords are records of a kind in the queue of a gateway.
type countedRecords struct {
	*outbox.Outbox
	usage *outbox.Usage
}

// newCounted returns the records of a kind as one of the gateways has them that share the queue
// of g.
func newCounted(g *gatewaytest.Gateway) *countedRecords {
	o := &outbox.Outbox{Queue: g.Rooms().Outbox.Queue, Shared: true, Log: zap.NewNop()}
	o.Use(g.Rooms().Outbox.Current())
	c := &countedRecords{Outbox: o}
	c.usage = o.NewUsage(device.KindInvitation, outbox.Weigh, func(ctx context.Context, place string, f func([]byte)) error {
		return outbox.EachOfGroup(ctx, o.Queue, c.group(place), func(x queue.NamedRecord) bool { f(x.Data); return true })
	})
	return c
}

// group is the group of the invitations to a key, so that the gateway counts them each day.
func (c *countedRecords) group(place string) queue.Hash {
	return c.Queue.Hash("invitations\x00" + place)
}

func (c *countedRecords) record(place string, size int) queue.Record {
	return queue.Record{
		Data: outbox.EncodeRecord(device.KindInvitation, make([]byte, size)), Due: c.Queue.Now().Add(240 * time.Hour),
		Group: c.group(place),
	}
}

// add adds a record, as a version does that counts it or one that does not.
func (c *countedRecords) add(t *testing.T, place, name string, size int, counts bool) error {
	t.Helper()
	r := &queue.Ruled{Names: []queue.Hash{c.Queue.Hash(place + name)}, Decide: func(tx *queue.Tx) error {
		tx.Put(c.Queue.Hash(place+name), c.record(place, size))
		return nil
	}}
	if counts {
		r = c.usage.Ruled(place, true, r)
	}
	return c.Apply(t.Context(), r)
}

func (c *countedRecords) remove(t *testing.T, place, name string, counts bool) {
	t.Helper()
	r := outbox.Removal(c.Queue.Hash(place + name))
	if counts {
		r = c.usage.Ruled(place, false, r)
	}
	if err := c.Apply(t.Context(), r); err != nil {
		t.Error(err)
	}
}

// has returns how many records a key has, and reports a wrong number of bytes.
func (c *countedRecords) has(t *testing.T, place string) int {
	t.Helper()
	want := outbox.Used{}
	err := outbox.EachOfGroup(t.Context(), c.Queue, c.group(place), func(x queue.NamedRecord) bool {
		w := outbox.Weigh(x.Data)
		want.Count, want.Bytes = want.Count+1, want.Bytes+w.Bytes
		return true
	})
	got, counted, readErr := c.usage.Of(t.Context(), place)
	if err := errors.Join(err, readErr); err != nil {
		t.Fatal(err)
	}
	if counted && got != want {
		t.Errorf("%s has %+v, counted are %+v", place, want, got)
	}
	return want.Count
}

// TestUsage checks that what a key has is known whatever happens: to records of an earlier
// version, with several gateways, and if an earlier version has changed something.
func TestUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := newGateway(t, dir)
		a, b := newCounted(g), newCounted(g)
		most := device.KindInvitation.Most()

		for i := range 10 { // from before an update
			if err := a.add(t, "old", fmt.Sprint(i), 10, false); err != nil {
				t.Fatal(err)
			}
		}
		a.remove(t, "old", "0", true)
		if err := b.add(t, "old", "new", 100, true); err != nil {
			t.Error(err)
		}
		if n := a.has(t, "old"); n != 10 {
			t.Errorf("%d records", n)
		}
		if err := a.add(t, "old", "new", 300, true); err != nil { // in its place
			t.Error(err)
		}
		a.has(t, "old")

		for i := range most - 20 {
			if err := a.add(t, "full", fmt.Sprint(i), 1, false); err != nil {
				t.Fatal(err)
			}
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		taken := 0
		for i := range 60 { // at once, at two gateways
			all.Go(func() {
				err := []*countedRecords{a, b}[i%2].add(t, "full", fmt.Sprint("new", i), 1, true)
				mu.Lock()
				defer mu.Unlock()
				e, refused := errors.AsType[*message.Error](err)
				if err == nil {
					taken++
				} else if !refused || e.Kind != message.Full || e.RetryAfter == 0 {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := a.has(t, "full"); taken != 20 || n != most {
			t.Errorf("%d of 60 are taken, there are %d", taken, n)
		}

		a.remove(t, "full", "0", false) // by an earlier version
		time.Sleep(2 * time.Minute)
		if err := b.add(t, "full", "again", 1, true); err != nil {
			t.Errorf("the number is not counted again: %v", err)
		}
		a.remove(t, "full", "1", false)
		time.Sleep(25 * time.Hour)
		if n := a.has(t, "full"); n != most-1 {
			t.Errorf("%d records", n)
		}
	})
}

// TestMemory checks that the oldest records of a key are forgotten, that two gateways agree on
// that, and that each key has less if there are many. The gateway itself has no usage of the kind.
func TestMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, gatewaytest.Options{Queue: &outbox.Settings{Path: dir, MaxSize: 1 << 20}})
		newMemory := func() (*outbox.Outbox, *outbox.Memory) {
			o := &outbox.Outbox{Queue: g.Rooms().Outbox.Queue, Shared: true, Log: zap.NewNop()}
			o.Use(g.Rooms().Outbox.Current())
			rank := func(record []byte) time.Time { return time.Unix(int64(record[1]), 0) }
			o.OpenAlerts = o.NewOpenAlerts()
			return o, o.NewMemory(alerting.KindSubject, func(place string) queue.Hash { return o.Queue.Hash(place) }, rank,
				func([]byte) queue.Record { return queue.Record{} })
		}
		a, inA := newMemory()
		b, inB := newMemory()
		add := func(o *outbox.Outbox, m *outbox.Memory, place string, i, size int) {
			name := o.Queue.Hash(place + fmt.Sprint(i))
			r := &queue.Ruled{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
				data := make([]byte, size)
				data[0] = byte(i)
				tx.Put(name, queue.Record{
					Data: outbox.EncodeRecord(alerting.KindSubject, data), Due: o.Queue.Now().Add(time.Hour),
					Group: o.Queue.Hash(place),
				})
				return nil
			}}
			if err := o.Apply(t.Context(), m.Ruled(place, true, r)); err != nil {
				t.Fatal(err)
			}
		}
		has := func(place string) (n int, bytes int64, first byte) {
			first = 255
			err := outbox.EachOfGroup(t.Context(), a.Queue, a.Queue.Hash(place), func(r queue.NamedRecord) bool {
				n, bytes, first = n+1, bytes+outbox.Weigh(r.Data).Bytes, min(first, r.Data[1])
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
			return n, bytes, first
		}
		share := alerting.KindSubject.KeyShare(1 << 20)
		for i := range 100 {
			add(a, inA, "one", i, 1500)
			add(b, inB, "one", 100+i, 1500)
		}
		a.Refresh(t.Context(), &g.Gateway.Conf)
		b.Refresh(t.Context(), &g.Gateway.Conf)
		n, bytes, first := has("one")
		if bytes > share || bytes < share/2 || int(first) != 200-n {
			t.Errorf("%d records with %d bytes from %d on, of %d bytes", n, bytes, first, share)
		}
		if got, counted, err := inB.Of(t.Context(), "one"); err != nil || !counted || got != (outbox.Used{Count: n, Bytes: bytes}) {
			t.Errorf("counted are %+v, %v", got, err)
		}
		for place := range 10 { // what they have together is too much
			for i := range 30 {
				add(a, inA, fmt.Sprint("place", place), i, 1500)
			}
		}
		for range 3 {
			time.Sleep(11 * time.Second)
			a.Refresh(t.Context(), &g.Gateway.Conf)
		}
		var all int64
		for place := range 10 {
			n, bytes, _ := has(fmt.Sprint("place", place))
			if n == 0 || n == 30 {
				t.Errorf("place %d has %d records", place, n)
			}
			all += bytes
		}
		if _, bytes, _ = has("one"); all+bytes > alerting.KindSubject.Share(1<<20) {
			t.Errorf("all have %d bytes", all+bytes)
		}
	})
}
