package planned_test

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/planned"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// another returns the planned messages of another gateway with the same store, which has
// planned none itself.
func another(g *gatewaytest.Gateway) *planned.Messages {
	first := g.Rooms().Outbox
	o := &outbox.Outbox{Queue: first.Queue, Shared: true, Log: zap.NewNop(), Policy: first.Policy}
	o.Use(first.Current())
	p := planned.New(o)
	o.Policy.Cancelled, o.Policy.Later = p.Cancelled, p.Attempt
	return p
}

// TestOtherGateway checks that a gateway lists, cancels and sends in time what another one with
// the same store has planned.
func TestOtherGateway(t *testing.T) {
	inBubble(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", p.NotifyURL())))
		other := another(g)
		if other.Refresh(t.Context(), &g.Gateway.Conf); other.Punctual(&g.Gateway.Conf)() {
			t.Error("nothing is planned, but the other gateway looks each second")
		}
		ntfy(t, g, http.MethodPost, "/t/mine", "x", "Delay", "1h")
		plan(t, g, "body=kept&send_at=1h")
		all, err := other.List(t.Context(), func(*planned.Message) bool { return true })
		if err != nil || len(all) != 2 {
			t.Errorf("the other gateway lists %d, %v", len(all), err)
		}
		if err := other.CancelOf(t.Context(), site.Place{Key: "k"}, func(x *planned.Message) bool { return x.Sequence == "t/mine" }); err != nil {
			t.Error(err)
		}
		for range 20 {
			wait(time.Second)
			other.Refresh(t.Context(), &g.Gateway.Conf)
		}
		if !other.Punctual(&g.Gateway.Conf)() {
			t.Error("the other gateway does not look each second")
		}
		wait(2 * time.Hour)
		p.WantTold(t, "info: kept")
	})
}

// lookingStore is a store in which somebody looks for planned messages before a message is stored.
type lookingStore struct {
	queue.Store
	look func(context.Context)
}

func (s *lookingStore) Accept(ctx context.Context, maxSize int64, entries ...*queue.Entry) error {
	s.look(ctx)
	return s.Store.Accept(ctx, maxSize, entries...)
}

// TestPlannedInTime checks that a message is sent in time, also if a look for planned messages
// found none just before it was stored.
func TestPlannedInTime(t *testing.T) {
	inBubble(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		o := options(dir, gatewaytest.Key("k", p.NotifyURL()))
		var g *gatewaytest.Gateway
		o.Wrap = func(store queue.Store) queue.Store {
			return &lookingStore{store, func(ctx context.Context) { g.Rooms().Planned.Refresh(ctx, nil) }}
		}
		g = gatewaytest.New(t, o)
		wait(31 * time.Second) // so that what is due is looked at each half minute from now on
		plan(t, g, "body=x&send_at=5s")
		wait(7 * time.Second)
		p.WantTold(t, "info: x")
	})
}

// beginSending lets a planned message be sent now, and returns when the attempt is being made.
func beginSending(t *testing.T, g *gatewaytest.Gateway, p *gatewaytest.Pager, id string) {
	t.Helper()
	before := p.Count()
	q := g.Rooms().Outbox.Queue
	name := q.Hash("planned message\x00" + id)
	data, err := q.Records.Get(t.Context(), name)
	if err == nil {
		err = g.Rooms().Planned.Due(t.Context(), &g.Gateway.Conf, name, data, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	for p.Count() == before { // the clock stands still
		runtime.Gosched()
	}
}

// TestCancelDuringAttempt checks that the attempt is the last one which is being made when a
// message is cancelled, and that a message arrives whose last one succeeds.
func TestCancelDuringAttempt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		status int
		cancel func(*testing.T, *gatewaytest.Gateway, string)
		want   string
	}{
		{"by DELETE", http.StatusServiceUnavailable, func(t *testing.T, g *gatewaytest.Gateway, id string) {
			if got := g.Message(http.MethodDelete, id, "application/json"); got.Status != http.StatusOK {
				t.Errorf("status %d: %s", got.Status, got.Body)
			}
		}, "cancelled: JSON cancelled"},
		{"delivered", http.StatusOK, func(_ *testing.T, g *gatewaytest.Gateway, id string) {
			g.Message(http.MethodDelete, id, "application/json")
		}, "delivered: JSON delivered"},
	} {
		p, dir := gatewaytest.NewPager(t, tt.status), t.TempDir()
		release := p.Hold()
		gatewaytest.InBubble(t, func(t *testing.T) {
			defer release()
			g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", p.NotifyURL())))
			ntfy(t, g, http.MethodPost, "/t/mine", "x", "Delay", "1h")
			all, err := g.Rooms().Planned.List(t.Context(), func(*planned.Message) bool { return true })
			if err != nil || len(all) != 1 {
				t.Fatalf("%d are planned, %v", len(all), err)
			}
			id := all[0].ID.String()
			beginSending(t, g, p, id)
			tt.cancel(t, g, id)
			release()
			wait(3 * time.Hour)
			if p.Count() != 1 {
				t.Errorf("%s: %d attempts", tt.name, p.Count())
			}
			if got := state(t, g, id); got != tt.want {
				t.Errorf("%s: %s", tt.name, got)
			}
		})
	}
}

// TestCancelledMeanwhile checks that a planned message which is cancelled while it is looked at
// is no error.
func TestCancelledMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		core, logs := observer.New(zapcore.DebugLevel)
		o := options(dir, gatewaytest.Key("k", p.NotifyURL()))
		o.Log, o.Queue.Keep = zap.New(core), time.Hour
		g := gatewaytest.New(t, o)
		id := plan(t, g, "body=x&send_at=1h")
		var held []queue.Job
		jobs, err := g.Rooms().Outbox.Queue.List(t.Context(), queue.JobID{}, 10, queue.Held)
		if err != nil || len(jobs) != 1 {
			t.Fatalf("%d jobs, %v", len(jobs), err)
		}
		held = append(held, jobs...)
		q := g.Rooms().Outbox.Queue
		name := q.Hash("planned message\x00" + id)
		data, err := q.Records.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		g.Message(http.MethodDelete, id, "application/json")
		wait(26 * time.Hour) // it is forgotten
		g.Rooms().Planned.Recheck(t.Context(), nil, held)
		if err := g.Rooms().Planned.Due(context.Background(), &g.Gateway.Conf, name, data, false); err != nil {
			t.Error(err)
		}
		for _, e := range logs.FilterLevelExact(zapcore.ErrorLevel).All() {
			t.Errorf("%s: %v", e.Message, e.ContextMap())
		}
		if all, err := g.Rooms().Planned.List(t.Context(), func(*planned.Message) bool { return true }); err != nil || len(all) > 0 {
			t.Errorf("%d are planned, %v", len(all), err)
		}
		p.WantTold(t)
	})
}

// TestPlannedShare checks that the text and the files of planned messages count for a key, and
// for all keys together, so that there is room for the failures of others.
func TestPlannedShare(t *testing.T) {
	inBubble(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		keys := []site.KeyOptions{
			gatewaytest.Key("k", p.NotifyURL()), gatewaytest.Key("two", p.NotifyURL()),
			gatewaytest.Key("three", p.NotifyURL()),
		}
		o := options(dir, keys...)
		o.Queue.MaxSize = 4 << 20
		g := gatewaytest.New(t, o)
		body := `{"body": "x", "send_at": "1h", "attach": [{"filename": "a.bin", "base64": "` + strings.Repeat("aGVs", 25<<10) + `"}]}`
		fill := func(key string) (n int, last gatewaytest.Reply) {
			for last.Status = http.StatusOK; last.Status == http.StatusOK && n < 100; n++ {
				last = g.Post("/notify/"+key, gatewaytest.TypeJSON, body)
			}
			return n - 1, last
		}
		n, got := fill("k")
		if n != 6 || got.Status != http.StatusTooManyRequests || !strings.Contains(got.Body, "512 KiB of max_size") ||
			!strings.Contains(got.Body, "DELETE") || got.Header.Get("Retry-After") == "" {
			t.Errorf("of one key, %d: status %d %s", n, got.Status, got.Body)
		}
		fill("two")
		if n, got := fill("three"); n != 1 || got.Status != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" {
			t.Errorf("of the third key, %d: status %d %s", n, got.Status, got.Body)
		}
		p.Answer(http.StatusServiceUnavailable)
		if got := g.PostForm("/notify/two", "type=failure&body="+strings.Repeat("x", 20<<10)); got.Status >= http.StatusBadRequest {
			t.Errorf("a failure of another key: status %d: %s", got.Status, got.Body)
		}
		p.Answer(http.StatusOK)
		wait(2 * time.Hour)
		if n, got := fill("three"); n != 6 || got.Status != http.StatusTooManyRequests {
			t.Errorf("when all are sent, %d: status %d %s", n, got.Status, got.Body)
		}
	})
}
