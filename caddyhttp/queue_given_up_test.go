package caddyhttp

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/recipient"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// deadIDs returns the IDs of the messages with a delivery that was given up, in their
// order.
func deadIDs(t *testing.T, h *Handler) (ids []string) {
	t.Helper()
	jobs, err := h.app.gateway.Rooms.Outbox.Queue.List(t.Context(), queue.JobID{}, 1000, queue.Dead)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs {
		ids = append(ids, j.Message.String())
	}
	return ids
}

// What a destination of a key refuses for good is kept and told to the fallback, whichever
// way the message came in, and the client reads 424. An ordinary POST once left nothing
// behind but the answer.
func TestGivenUpIsKept(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		header []string
		status int
	}{
		{"an ordinary request", nil, 424},
		{"a long wait", []string{"Prefer", "wait=60"}, 424},
		{"with an idempotency key", []string{"Idempotency-Key", "1"}, 424},
		{"respond-async", []string{"Prefer", "respond-async"}, 202},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, good, backup := newPager(t, http.StatusUnauthorized), newPager(t, http.StatusOK), newPager(t, http.StatusOK)
			inBubble(t, func(t *testing.T) {
				h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+p.NotifyURL()+"\nurl "+good.NotifyURL()+"\nfallback b\n}\nkey b {\nurl "+backup.NotifyURL()+"\n}")
				got := postWith(t, h, "/notify/k", "title=Disk&body=full", tt.header...)
				id := got.queued(t).ID
				if got.status != tt.status {
					t.Errorf("status %d: %s", got.status, got.body)
				}
				caddyhttptest.Eventually(t, func() bool { return slices.Equal(deadIDs(t, h), []string{id}) && backup.count() == 1 })
				if m := backup.got[0]; !strings.Contains(m.Message, "the key k was not delivered") || !strings.Contains(m.Message, "401") || !strings.Contains(m.Message, id) {
					t.Errorf("the fallback was told %q", m.Message)
				}
				m := getMessage(t, h, http.MethodGet, id, typeJSON).queued(t)
				if r := m.Results[0]; m.State != "failed" || r.Status != notifier.Failed || r.Attempts != 1 || m.Results[1].Status != notifier.Delivered {
					t.Errorf("the message is %s, %+v", m.State, m.Results)
				}
				p.answer(http.StatusOK)
				if n, err := h.app.gateway.Rooms.Outbox.Queue.Retry(t.Context(), queueID(t, id)); n.Dead != 1 || err != nil {
					t.Errorf("retried %+v, %v", n, err)
				}
				caddyhttptest.Eventually(t, func() bool { s, _ := state(t, h, id); return s == "delivered" })
				if last := p.got[len(p.got)-1]; p.count() != 2 || last.Message != "full" || last.Title != "Disk" || good.count() != 1 {
					t.Errorf("%d messages arrived, at last %+v; at the other destination %d", p.count(), last, good.count())
				}
			})
		})
	}
}

// What waits when a destination refuses is stored with it, and both ways of giving up keep
// the text.
func TestGivenUpBesideWaiting(t *testing.T) {
	t.Parallel()
	p, down := newPager(t, http.StatusForbidden), newPager(t, http.StatusBadGateway)
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+p.NotifyURL()+"\nurl "+down.NotifyURL()+"\n}")
		got := postWith(t, h, "/notify/k", "body=hello")
		id := got.queued(t).ID
		if dead := deadIDs(t, h); got.status != 424 || !slices.Equal(dead, []string{id}) {
			t.Errorf("status %d, and given up are %v: %s", got.status, dead, got.body)
		}
		down.answer(http.StatusOK)
		p.answer(http.StatusOK)
		if n, err := h.app.gateway.Rooms.Outbox.Queue.Retry(t.Context(), queueID(t, id)); n.Dead != 1 || n.Queued != 1 || err != nil {
			t.Errorf("retried %+v, %v", n, err)
		}
		caddyhttptest.Eventually(t, func() bool { s, _ := state(t, h, id); return s == "delivered" })
	})
}

// A destination that answers after the client has its answer is kept as well, together with
// one that had refused before.
func TestGivenUpLate(t *testing.T) {
	t.Parallel()
	fast, slow := newPager(t, http.StatusForbidden), newPager(t, http.StatusForbidden)
	slow.hold = make(chan struct{})
	h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+fast.NotifyURL()+"\nurl "+slow.NotifyURL()+"\n}")
	id := postWith(t, h, "/notify/k", "body=hello", "Prefer", "wait=1").queued(t).ID
	if dead := deadIDs(t, h); !slices.Equal(dead, []string{id}) {
		t.Errorf("given up: %v", dead)
	}
	close(slow.hold)
	caddyhttptest.Eventually(t, func() bool { return slices.Equal(deadIDs(t, h), []string{id, id}) })
}

// URLs of clients, keys without the queue and tests of a destination keep nothing.
func TestGivenUpIsNotKept(t *testing.T) {
	p := newPager(t, http.StatusUnauthorized)
	h := newQueueGateway(t, t.TempDir(), open, "key off {\nurl "+p.NotifyURL()+"\nqueue off\n}\nkey k {\nurl "+p.NotifyURL()+"\n}")
	for path, form := range map[string]string{"/notify": "body=x&urls=" + p.NotifyURL(), "/notify/off": "body=x"} {
		if got := postWith(t, h, path, form); got.status != 424 {
			t.Errorf("%s: status %d: %s", path, got.status, got.body)
		}
	}
	_, targets, err := (&recipient.Recipient{Key: "k"}).Find(h.app.gateway.Engine.Global)
	if err != nil {
		t.Fatal(err)
	}
	d := dispatch.NewDelivery(h.app.gateway.Engine.Global, site.SourceTest, h.api.Site(), &notifier.Message{Body: "x"}, &api.Selection{Targets: targets}).ToKey(h.app.gateway.Engine.Global.Configured("k"))
	if report, _, err := h.app.gateway.Engine.Submit(t.Context(), h.app.gateway.Engine.Global.Configured("k"), d, outbox.Options{}); err != nil || report.OK() {
		t.Errorf("a test: %+v, %v", report, err)
	}
	if dead := deadIDs(t, h); len(dead) > 0 || p.count() != 3 {
		t.Errorf("%d messages were sent, and given up are %v", p.count(), dead)
	}
}

// An unchanged repeat replaces what is kept: the same key, destination, type, title and
// text. The answer to each stays what it was, and retrying the old one sends the new one.
func TestGivenUpRepeat(t *testing.T) {
	t.Parallel()
	p, other := newPager(t, http.StatusUnauthorized), newPager(t, http.StatusUnauthorized)
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+p.NotifyURL()+"\n}\nkey l {\nurl "+p.NotifyURL()+"\nurl "+other.NotifyURL()+"\n}")
		post := func(path, form string, header ...string) string {
			t.Helper()
			got := postWith(t, h, path, form, header...)
			if got.status != 424 {
				t.Fatalf("%s: status %d: %s", form, got.status, got.body)
			}
			return got.queued(t).ID
		}
		first := post("/notify/k", "type=failure&title=a&body=b", "Idempotency-Key", "1")
		second := post("/notify/k", "type=failure&title=a&body=b")
		third := post("/notify/k", "type=failure&title=a&body=b", "Idempotency-Key", "3")
		want := []string{third}
		for _, form := range []string{"type=warning&title=a&body=b", "type=failure&title=c&body=b", "type=failure&title=a&body=d", "type=failure&title=&body=ab"} {
			want = append(want, post("/notify/k", form))
		}
		elsewhere := post("/notify/l", "type=failure&title=a&body=b")
		want = append(want, elsewhere, elsewhere)
		if dead := deadIDs(t, h); !slices.Equal(dead, want) {
			t.Errorf("given up are %v, want %v", dead, want)
		}
		for _, id := range []string{first, second} {
			if s, r := state(t, h, id); s != "failed" || r.Status != notifier.Failed || r.By == "" || r.Error == nil || !strings.Contains(*r.Error, "401") {
				t.Errorf("the message that was replaced is %s, %+v", s, r)
			}
		}
		if id := post("/notify/k", "type=failure&title=a&body=b", "Idempotency-Key", "1"); id != first {
			t.Errorf("the same idempotency key returns %s, want %s", id, first)
		}
		p.answer(http.StatusOK)
		if n, err := h.app.gateway.Rooms.Outbox.Queue.Retry(t.Context(), queueID(t, first)); n.Dead != 1 || err != nil {
			t.Errorf("retried %+v, %v", n, err)
		}
		caddyhttptest.Eventually(t, func() bool { s, _ := state(t, h, third); return s == "delivered" })
		if got := postWith(t, h, "/notify/k", "type=failure&title=a&body=b", "Idempotency-Key", "3"); got.status != 200 || got.queued(t).ID != third || got.queued(t).Results[0].Status != notifier.Delivered {
			t.Errorf("after a retry: status %d: %s", got.status, got.body)
		}
		n := p.count()
		if got := postWith(t, h, "/notify/k", "type=failure&title=a&body=b", "Idempotency-Key", "1"); got.status != 200 || got.queued(t).ID != first || p.count() != n {
			t.Errorf("after a retry of what has replaced it: status %d: %s", got.status, got.body)
		}
		// What was retried and delivered is not replaced.
		p.answer(http.StatusUnauthorized)
		last := post("/notify/k", "type=failure&title=a&body=b")
		if dead := deadIDs(t, h); dead[len(dead)-1] != last || len(dead) != len(want) {
			t.Errorf("given up are %v", dead)
		}
		if s, _ := state(t, h, third); s != "delivered" {
			t.Errorf("the message that was delivered is %s", s)
		}
	})
}

// The fallback hears of a destination once an hour, with the count, also over a restart.
func TestGivenUpTold(t *testing.T) {
	t.Parallel()
	p, other, backup := newPager(t, http.StatusUnauthorized), newPager(t, http.StatusUnauthorized), newPager(t, http.StatusOK)
	dir := t.TempDir()
	keys := "key k {\nurl " + p.NotifyURL() + "\nfallback b\n}\nkey l {\nurl " + other.NotifyURL() + "\nfallback b\n}\nkey b {\nurl " + backup.NotifyURL() + "\ninbox 7d\nreader " + testReader + "\n}"
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", keys)
		var id string
		for i := range 5 {
			id = postWith(t, h, "/notify/k", fmt.Sprintf("body=%d", i)).queued(t).ID
		}
		postWith(t, h, "/notify/l", "body=x")
		titles := func() (out []string) {
			backup.mu.Lock()
			defer backup.mu.Unlock()
			for _, m := range backup.got {
				out = append(out, m.Title)
			}
			slices.Sort(out)
			return out
		}
		want := []string{"Message for k not delivered", "Message for l not delivered"}
		caddyhttptest.Eventually(t, func() bool { return slices.Equal(titles(), want) })
		time.Sleep(30 * time.Minute)
		stopApp(t, h)
		h = newQueueGateway(t, dir, "", keys)
		time.Sleep(29 * time.Minute)
		if got := titles(); !slices.Equal(got, want) {
			t.Errorf("within an hour, the fallback was told %q", got)
		}
		time.Sleep(2 * time.Minute)
		want = append([]string{"4 more messages for k not delivered"}, want...)
		caddyhttptest.Eventually(t, func() bool { return slices.Equal(titles(), want) })
		if m := backup.got[2].Message; !strings.Contains(m, "401") || !strings.Contains(m, "Last ID: "+id) {
			t.Errorf("told %q", m)
		}
		// What it was not told of is not in its inbox either.
		if got := inboxOf(t, h, "/notify/b/messages"); len(got.Messages) != len(want) {
			t.Errorf("the inbox has %+v", got)
		}
		postWith(t, h, "/notify/k", "body=one more")
		time.Sleep(50 * time.Minute)
		if got := titles(); !slices.Equal(got, want) {
			t.Errorf("within the next hour, the fallback was told %q", got)
		}
		time.Sleep(11 * time.Minute)
		caddyhttptest.Eventually(t, func() bool { return len(titles()) == len(want)+1 })
		if got := titles(); got[len(got)-1] != "One more message for k not delivered" {
			t.Errorf("told %q", got)
		}
		time.Sleep(2 * time.Hour)
		postWith(t, h, "/notify/k", "body=much later")
		caddyhttptest.Eventually(t, func() bool { return len(titles()) == len(want)+2 })
	})
}

// A later success of the incident replaces what was given up.
func TestGivenUpResolved(t *testing.T) {
	p := newPager(t, http.StatusUnauthorized)
	h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+p.NotifyURL()+"\n}")
	down := postWith(t, h, "/notify/k", alertForm("failure", "down", "db1")).queued(t)
	elsewhere := postWith(t, h, "/notify/k", alertForm("failure", "down", "db2")+"&title=other").queued(t)
	if dead := deadIDs(t, h); !slices.Equal(dead, []string{down.ID, elsewhere.ID}) {
		t.Errorf("given up are %v", dead)
	}
	p.answer(http.StatusOK)
	up := postWith(t, h, "/notify/k", alertForm("success", "up", "db1")).queued(t)
	if _, r := state(t, h, down.ID); r.Rule != notifier.RuleSuperseded || r.By != up.ID {
		t.Errorf("the alert is %+v", r)
	}
	if dead := deadIDs(t, h); !slices.Equal(dead, []string{elsewhere.ID}) {
		t.Errorf("given up are %v", dead)
	}
}

// All numbers of a tag that refuse are kept, and retried in their order. If one of them has
// the message, nothing is.
func TestGivenUpChain(t *testing.T) {
	t.Parallel()
	first, second := newPager(t, http.StatusUnauthorized), newPager(t, http.StatusUnauthorized)
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+first.NotifyURL()+" 1:ops\nurl "+second.NotifyURL()+" 2:ops\n}")
		got := postWith(t, h, "/notify/k", "body=x&tag=ops")
		id := got.queued(t).ID
		if dead := deadIDs(t, h); got.status != 424 || !slices.Equal(dead, []string{id, id}) {
			t.Errorf("status %d, and given up are %v", got.status, dead)
		}
		first.answer(http.StatusOK)
		if n, err := h.app.gateway.Rooms.Outbox.Queue.Retry(t.Context(), queueID(t, id)); n.Dead != 2 || err != nil {
			t.Errorf("retried %+v, %v", n, err)
		}
		caddyhttptest.Eventually(t, func() bool { return len(deadIDs(t, h)) == 0 && first.count() == 2 })
		caddyhttptest.Eventually(t, func() bool { s, _ := state(t, h, id); return s == "delivered" })
		if second.count() != 1 {
			t.Errorf("the second number was sent %d messages", second.count())
		}
		first.answer(http.StatusUnauthorized)
		second.answer(http.StatusOK)
		if got := postWith(t, h, "/notify/k", "body=y&tag=ops"); got.status != 200 || len(deadIDs(t, h)) > 0 {
			t.Errorf("status %d, and given up are %v", got.status, deadIDs(t, h))
		}
	})
}

// What cannot be kept is answered as before, because nothing was accepted.
func TestGivenUpWhileStoreFails(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusUnauthorized)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", "key k {\nurl "+p.NotifyURL()+"\n}")
		u := newUnwritable(t, h, dir)
		u.down.Store(true)
		got := postWith(t, h, "/notify/k", "body=x")
		if got.status != 424 {
			t.Errorf("status %d: %s", got.status, got.body)
		}
		u.down.Store(false)
		if s, _ := state(t, h, got.queued(t).ID); s != "failed" {
			t.Errorf("the message is %s", s)
		}
	})
}

// Repeats and what they replace can meet in one transaction of the store.
func TestGivenUpAtOnce(t *testing.T) {
	p := newPager(t, http.StatusUnauthorized)
	h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+p.NotifyURL()+"\n}")
	done := make(chan int)
	const n = 40
	for i := range n {
		go func() { done <- postWith(t, h, "/notify/k", fmt.Sprintf("body=%d", i%2)).status }()
	}
	for range n {
		if status := <-done; status != 424 {
			t.Errorf("status %d", status)
		}
	}
	s, err := h.app.gateway.Rooms.Outbox.Queue.Stats(t.Context())
	if dead := deadIDs(t, h); err != nil || len(dead) != 2 || s.Dead != 2 || s.Queued+s.Sending != 0 {
		t.Errorf("given up are %v; the store counts %+v, %v", dead, s, err)
	}
}
