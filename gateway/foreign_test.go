package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// apply stores a record, and releases jobs.
func apply(t *testing.T, q *queue.Queue, name queue.Hash, r queue.Record, release ...queue.Job) {
	t.Helper()
	u := &queue.Ruled{
		Names: []queue.Hash{name}, Held: release,
		Decide: func(tx *queue.Tx) error {
			for i := range release {
				if _, err := tx.StatusOf(release[i].JobID); err != nil {
					return err
				}
			}
			tx.Put(name, r)
			tx.Release(release...)
			return nil
		},
	}
	if err := q.Records.Apply(t.Context(), u); err != nil {
		t.Fatal(err)
	}
}

// statusOf returns the status of the only job of a message.
func statusOf(t *testing.T, q *queue.Queue, id uuid.UUID) queue.Status {
	t.Helper()
	e, err := q.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return e.Jobs[0].Status
}

// TestOtherVersion checks that what another version of the program has stored stays as it is,
// however long this one runs and how often it starts: records of a kind that this one does not
// know, what rules hold that it does not know, and planned messages of which it knows only the
// text. A line in the log counts them.
func TestOtherVersion(t *testing.T) {
	t.Parallel()
	p, dir := gatewaytest.NewPager(t, http.StatusOK), t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		start := func() (*gatewaytest.Gateway, *queue.Queue) {
			g := gatewaytest.New(t, gatewaytest.Options{
				Global: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("k", p.NotifyURL())}},
				Queue:  &outbox.Settings{Path: dir, Secret: "a secret of the tests"}, Log: zap.New(core),
			})
			return g, g.Rooms().Outbox.Queue
		}
		g, q := start()
		plan := func(text, at string) (uuid.UUID, queue.Hash, queue.Job) {
			id := uuid.MustParse(g.PostForm("/notify/k", "body="+text+"&send_at="+at).JSON(t).ID)
			e, err := q.Get(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return id, q.Hash("planned message\x00" + id.String()), e.Jobs[0]
		}

		// A record of an unknown kind, which is due.
		record := queue.Record{Data: []byte("\x01 another kind"), Due: time.Now()}
		name := q.Hash("a record of another version")
		apply(t, q, name, record)

		// A message that an unknown rule holds.
		held := &queue.Entry{
			Message: &queue.Message{ID: queue.NewID(), Body: []byte("held")},
			Jobs:    []queue.Job{{Status: queue.Queued, Destination: "d"}},
		}
		held.Rules = &queue.Ruled{Decide: func(*queue.Tx) error {
			held.Jobs[0].Status, held.Jobs[0].Rule, held.Jobs[0].Due = queue.Held, "of another version", time.Now().Add(time.Hour)
			return nil
		}}
		if err := q.Accept(t.Context(), held); err != nil {
			t.Fatal(err)
		}

		// A planned message with a record of another kind, one whose record cannot be read, and
		// one that is known. A version that does not know them has released all.
		_, otherName, otherJob := plan("other+kind", "2h")
		known, err := q.Records.Get(t.Context(), otherName)
		if err != nil || len(known) == 0 {
			t.Fatal(known, err)
		}
		apply(t, q, otherName, queue.Record{Data: []byte("\x02 planned"), Due: time.Now()}, otherJob)
		unreadable, unreadableName, unreadableJob := plan("unreadable", "2h")
		apply(t, q, unreadableName, queue.Record{Data: append(known[:1:1], 0xff), Due: time.Now()}, unreadableJob)
		_, releasedName, releasedJob := plan("released", "2h")
		apply(t, q, releasedName, queue.Record{}, releasedJob)

		for range 2 {
			time.Sleep(30 * time.Minute)
			synctest.Wait()
			p.WantTold(t)
			g.Stop()
			g, q = start()
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		p.WantTold(t, "info: released")
		if b, err := q.Records.Get(t.Context(), name); string(b) != string(record.Data) || err != nil {
			t.Errorf("the record of an unknown kind is %q, %v", b, err)
		}
		if s := statusOf(t, q, held.Message.ID); s != queue.Held {
			t.Errorf("what an unknown rule holds is %s", s)
		}
		if s := statusOf(t, q, unreadable); !s.Waits() {
			t.Errorf("a planned message whose record cannot be read is %s", s)
		}
		line := logs.FilterMessageSnippet("another version of the program").All()
		if len(line) == 0 {
			t.Fatalf("no line counts what is unknown: %v", logs.All())
		}
		fields := line[len(line)-1].ContextMap()
		if fields["records"] != int64(2) || fields["deliveries"] != int64(1) ||
			!strings.Contains(fields["rules"].(string), "of another version") || len(line) > 6 {
			t.Errorf("the last of %d lines has %v", len(line), fields)
		}

		// The other version makes it one that this one knows.
		apply(t, q, otherName, queue.Record{Data: known, Due: time.Now()})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		p.WantTold(t, "info: released", "info: other kind")
	})
}
