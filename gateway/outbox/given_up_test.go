package outbox_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// deadIDs returns the IDs of the messages with a delivery that was given up, in their
// order.
func deadIDs(t *testing.T, g *gatewaytest.Gateway) (ids []string) {
	t.Helper()
	jobs, err := g.Rooms().Outbox.Queue.List(t.Context(), queue.JobID{}, 1000, queue.Dead)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs {
		ids = append(ids, j.Message.String())
	}
	return ids
}

// A delivery that a destination of a key refuses for good is kept and told to the fallback, however
// the message came in, and the client reads 424. An ordinary POST once left nothing behind but the
// answer.
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
			p, good, backup := gatewaytest.NewPager(t, http.StatusUnauthorized), gatewaytest.NewPager(t, http.StatusOK),
				gatewaytest.NewPager(t, http.StatusOK)
			gatewaytest.InBubble(t, func(t *testing.T) {
				g := newGateway(t, "", site.KeyOptions{
					Name: "k", URLs: gatewaytest.URLs(p.NotifyURL(), good.NotifyURL()),
					KeySettings: site.KeySettings{Fallback: "b"},
				}, gatewaytest.Key("b", backup.NotifyURL()))
				got := g.PostForm("/notify/k", "title=Disk&body=full", tt.header...)
				id := got.JSON(t).ID
				if got.Status != tt.status {
					t.Errorf("status %d: %s", got.Status, got.Body)
				}
				gatewaytest.Eventually(t, func() bool { return slices.Equal(deadIDs(t, g), []string{id}) && backup.Count() == 1 })
				if m := backup.Got()[0]; !strings.Contains(m.Message, "the key k was not delivered") || !strings.Contains(m.Message, "401") ||
					!strings.Contains(m.Message, id) {
					t.Errorf("the fallback was told %q", m.Message)
				}
				m := g.Message(http.MethodGet, id, gatewaytest.TypeJSON).JSON(t)
				if r := m.Results[0]; m.State != "failed" || r.Status != notifier.Failed || r.Attempts != 1 ||
					m.Results[1].Status != notifier.Delivered {
					t.Errorf("the message is %s, %+v", m.State, m.Results)
				}
				p.Answer(http.StatusOK)
				if n, err := g.Rooms().Outbox.Queue.Retry(t.Context(), queueID(t, id)); n.Dead != 1 || err != nil {
					t.Errorf("retried %+v, %v", n, err)
				}
				gatewaytest.Eventually(t, func() bool { s, _ := g.State(id); return s == "delivered" })
				if last := p.Got()[p.Count()-1]; p.Count() != 2 || last.Message != "full" || last.Title != "Disk" || good.Count() != 1 {
					t.Errorf("%d messages arrived, at last %+v; at the other destination %d", p.Count(), last, good.Count())
				}
			})
		})
	}
}

// What waits when a destination refuses is stored with it, and both ways of giving up keep
// the text.
func TestGivenUpBesideWaiting(t *testing.T) {
	t.Parallel()
	p, down := gatewaytest.NewPager(t, http.StatusForbidden), gatewaytest.NewPager(t, http.StatusBadGateway)
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := newGateway(t, "", gatewaytest.Key("k", p.NotifyURL(), down.NotifyURL()))
		got := g.PostForm("/notify/k", "body=hello")
		id := got.JSON(t).ID
		if dead := deadIDs(t, g); got.Status != 424 || !slices.Equal(dead, []string{id}) {
			t.Errorf("status %d, and given up are %v: %s", got.Status, dead, got.Body)
		}
		down.Answer(http.StatusOK)
		p.Answer(http.StatusOK)
		if n, err := g.Rooms().Outbox.Queue.Retry(t.Context(), queueID(t, id)); n.Dead != 1 || n.Queued != 1 || err != nil {
			t.Errorf("retried %+v, %v", n, err)
		}
		gatewaytest.Eventually(t, func() bool { s, _ := g.State(id); return s == "delivered" })
	})
}

// A destination that answers after the client has its answer is kept as well, together with
// one that had refused before.
func TestGivenUpLate(t *testing.T) {
	t.Parallel()
	fast, slow := gatewaytest.NewPager(t, http.StatusForbidden), gatewaytest.NewPager(t, http.StatusForbidden)
	release := slow.Hold()
	g := newGateway(t, "", gatewaytest.Key("k", fast.NotifyURL(), slow.NotifyURL()))
	id := g.PostForm("/notify/k", "body=hello", "Prefer", "wait=1").JSON(t).ID
	if dead := deadIDs(t, g); !slices.Equal(dead, []string{id}) {
		t.Errorf("given up: %v", dead)
	}
	release()
	gatewaytest.Eventually(t, func() bool { return slices.Equal(deadIDs(t, g), []string{id, id}) })
}

// URLs of clients, keys without the queue and tests of a destination keep nothing.
func TestGivenUpIsNotKept(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusUnauthorized)
	off := gatewaytest.Key("off", p.NotifyURL())
	off.Unqueued = true
	g := gatewaytest.New(t, gatewaytest.Options{
		Global: site.Options{Keys: []site.KeyOptions{off, gatewaytest.Key("k", p.NotifyURL())}},
		Site:   site.Options{Egress: gatewaytest.Loopback()},
		Queue:  &outbox.Settings{},
	})
	for path, form := range map[string]string{"/notify": "body=x&urls=" + p.NotifyURL(), "/notify/off": "body=x"} {
		if got := g.PostForm(path, form); got.Status != 424 {
			t.Errorf("%s: status %d: %s", path, got.Status, got.Body)
		}
	}
	k := g.Gateway.Conf.Global.Configured("k")
	d := dispatch.NewDelivery(g.Gateway.Conf.Global, site.SourceTest, g.Site(), &notifier.Message{Body: "x"},
		&message.Selection{Targets: k.Targets}).ToKey(k)
	if report, _, err := g.Gateway.Submit(t.Context(), k, d, outbox.Options{}); err != nil || report.OK() {
		t.Errorf("a test: %+v, %v", report, err)
	}
	if dead := deadIDs(t, g); len(dead) > 0 || p.Count() != 3 {
		t.Errorf("%d messages were sent, and given up are %v", p.Count(), dead)
	}
}

// An unchanged repeat replaces what is kept: the same key, destination, type, title and
// text. The answer to each stays what it was, and retrying the old one sends the new one.
func TestGivenUpRepeat(t *testing.T) {
	t.Parallel()
	p, other := gatewaytest.NewPager(t, http.StatusUnauthorized), gatewaytest.NewPager(t, http.StatusUnauthorized)
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := newGateway(t, "", gatewaytest.Key("k", p.NotifyURL()), gatewaytest.Key("l", p.NotifyURL(), other.NotifyURL()))
		post := func(path, form string, header ...string) string {
			t.Helper()
			got := g.PostForm(path, form, header...)
			if got.Status != 424 {
				t.Fatalf("%s: status %d: %s", form, got.Status, got.Body)
			}
			return got.JSON(t).ID
		}
		first := post("/notify/k", "type=failure&title=a&body=b", "Idempotency-Key", "1")
		second := post("/notify/k", "type=failure&title=a&body=b")
		third := post("/notify/k", "type=failure&title=a&body=b", "Idempotency-Key", "3")
		want := []string{third}
		for _, form := range []string{
			"type=warning&title=a&body=b", "type=failure&title=c&body=b", "type=failure&title=a&body=d",
			"type=failure&title=&body=ab",
		} {
			want = append(want, post("/notify/k", form))
		}
		elsewhere := post("/notify/l", "type=failure&title=a&body=b")
		want = append(want, elsewhere, elsewhere)
		if dead := deadIDs(t, g); !slices.Equal(dead, want) {
			t.Errorf("given up are %v, want %v", dead, want)
		}
		for _, id := range []string{first, second} {
			if s, r := g.State(id); s != "failed" || r.Status != notifier.Failed || r.By == "" || r.Error == nil ||
				!strings.Contains(*r.Error, "401") {
				t.Errorf("the message that was replaced is %s, %+v", s, r)
			}
		}
		if id := post("/notify/k", "type=failure&title=a&body=b", "Idempotency-Key", "1"); id != first {
			t.Errorf("the same idempotency key returns %s, want %s", id, first)
		}
		p.Answer(http.StatusOK)
		if n, err := g.Rooms().Outbox.Queue.Retry(t.Context(), queueID(t, first)); n.Dead != 1 || err != nil {
			t.Errorf("retried %+v, %v", n, err)
		}
		gatewaytest.Eventually(t, func() bool { s, _ := g.State(third); return s == "delivered" })
		if got := g.PostForm("/notify/k", "type=failure&title=a&body=b", "Idempotency-Key", "3"); got.Status != 200 || got.JSON(t).ID != third ||
			got.JSON(t).Results[0].Status != notifier.Delivered {
			t.Errorf("after a retry: status %d: %s", got.Status, got.Body)
		}
		n := p.Count()
		if got := g.PostForm("/notify/k", "type=failure&title=a&body=b", "Idempotency-Key", "1"); got.Status != 200 || got.JSON(t).ID != first ||
			p.Count() != n {
			t.Errorf("after a retry of what has replaced it: status %d: %s", got.Status, got.Body)
		}
		// What was retried and delivered is not replaced.
		p.Answer(http.StatusUnauthorized)
		last := post("/notify/k", "type=failure&title=a&body=b")
		if dead := deadIDs(t, g); dead[len(dead)-1] != last || len(dead) != len(want) {
			t.Errorf("given up are %v", dead)
		}
		if s, _ := g.State(third); s != "delivered" {
			t.Errorf("the message that was delivered is %s", s)
		}
	})
}

// The fallback hears of a destination once an hour, with the count, also over a restart.
func TestGivenUpTold(t *testing.T) {
	t.Parallel()
	p, other, backup := gatewaytest.NewPager(t, http.StatusUnauthorized), gatewaytest.NewPager(t, http.StatusUnauthorized),
		gatewaytest.NewPager(t, http.StatusOK)
	dir := t.TempDir()
	const reader = "reader-of-the-inbox"
	keys := []site.KeyOptions{
		{Name: "k", URLs: gatewaytest.URLs(p.NotifyURL()), KeySettings: site.KeySettings{Fallback: "b"}},
		{Name: "l", URLs: gatewaytest.URLs(other.NotifyURL()), KeySettings: site.KeySettings{Fallback: "b"}},
		{
			Name: "b", URLs: gatewaytest.URLs(backup.NotifyURL()), KeySettings: site.KeySettings{Inbox: 7 * 24 * time.Hour},
			Readers: []string{reader},
		},
	}
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := newGateway(t, dir, keys...)
		var id string
		for i := range 5 {
			id = g.PostForm("/notify/k", fmt.Sprintf("body=%d", i)).JSON(t).ID
		}
		g.PostForm("/notify/l", "body=x")
		titles := func() (out []string) {
			for _, m := range backup.Got() {
				out = append(out, m.Title)
			}
			slices.Sort(out)
			return out
		}
		want := []string{"Message for k not delivered", "Message for l not delivered"}
		gatewaytest.Eventually(t, func() bool { return slices.Equal(titles(), want) })
		time.Sleep(30 * time.Minute)
		g.Stop()
		g = newGateway(t, dir, keys...)
		time.Sleep(29 * time.Minute)
		if got := titles(); !slices.Equal(got, want) {
			t.Errorf("within an hour, the fallback was told %q", got)
		}
		time.Sleep(2 * time.Minute)
		want = append([]string{"4 more messages for k not delivered"}, want...)
		gatewaytest.Eventually(t, func() bool { return slices.Equal(titles(), want) })
		if m := backup.Got()[2].Message; !strings.Contains(m, "401") || !strings.Contains(m, "Last ID: "+id) {
			t.Errorf("told %q", m)
		}
		// What it was not told of is not in its inbox either.
		got := g.Do(gatewaytest.NewRequest(http.MethodGet, "/notify/b/messages", "", "Authorization", "Bearer "+reader))
		var inbox httpapi.MessagesJSON
		if err := json.Unmarshal([]byte(got.Body), &inbox); err != nil || got.Status != http.StatusOK || len(inbox.Messages) != len(want) {
			t.Errorf("the inbox has %+v, %v", got, err)
		}
		g.PostForm("/notify/k", "body=one more")
		time.Sleep(50 * time.Minute)
		if got := titles(); !slices.Equal(got, want) {
			t.Errorf("within the next hour, the fallback was told %q", got)
		}
		time.Sleep(11 * time.Minute)
		gatewaytest.Eventually(t, func() bool { return len(titles()) == len(want)+1 })
		if got := titles(); got[len(got)-1] != "One more message for k not delivered" {
			t.Errorf("told %q", got)
		}
		time.Sleep(2 * time.Hour)
		g.PostForm("/notify/k", "body=much later")
		gatewaytest.Eventually(t, func() bool { return len(titles()) == len(want)+2 })
	})
}

// A later success of the incident replaces what was given up.
func TestGivenUpResolved(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusUnauthorized)
	g := newGateway(t, "", gatewaytest.Key("k", p.NotifyURL()))
	down := g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", "db1")).JSON(t)
	elsewhere := g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", "db2")+"&title=other").JSON(t)
	if dead := deadIDs(t, g); !slices.Equal(dead, []string{down.ID, elsewhere.ID}) {
		t.Errorf("given up are %v", dead)
	}
	p.Answer(http.StatusOK)
	up := g.PostForm("/notify/k", gatewaytest.AlertForm("success", "up", "db1")).JSON(t)
	if _, r := g.State(down.ID); r.Rule != notifier.RuleSuperseded || r.By != up.ID {
		t.Errorf("the alert is %+v", r)
	}
	if dead := deadIDs(t, g); !slices.Equal(dead, []string{elsewhere.ID}) {
		t.Errorf("given up are %v", dead)
	}
}

// All numbers of a tag that refuse are kept, and retried in their order. If one of them has
// the message, nothing is.
func TestGivenUpChain(t *testing.T) {
	t.Parallel()
	first, second := gatewaytest.NewPager(t, http.StatusUnauthorized), gatewaytest.NewPager(t, http.StatusUnauthorized)
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := newGateway(t, "", gatewaytest.Key("k", first.NotifyURL()+" 1:ops", second.NotifyURL()+" 2:ops"))
		got := g.PostForm("/notify/k", "body=x&tag=ops")
		id := got.JSON(t).ID
		if dead := deadIDs(t, g); got.Status != 424 || !slices.Equal(dead, []string{id, id}) {
			t.Errorf("status %d, and given up are %v", got.Status, dead)
		}
		first.Answer(http.StatusOK)
		if n, err := g.Rooms().Outbox.Queue.Retry(t.Context(), queueID(t, id)); n.Dead != 2 || err != nil {
			t.Errorf("retried %+v, %v", n, err)
		}
		gatewaytest.Eventually(t, func() bool { return len(deadIDs(t, g)) == 0 && first.Count() == 2 })
		gatewaytest.Eventually(t, func() bool { s, _ := g.State(id); return s == "delivered" })
		if second.Count() != 1 {
			t.Errorf("the second number was sent %d messages", second.Count())
		}
		first.Answer(http.StatusUnauthorized)
		second.Answer(http.StatusOK)
		if got := g.PostForm("/notify/k", "body=y&tag=ops"); got.Status != 200 || len(deadIDs(t, g)) > 0 {
			t.Errorf("status %d, and given up are %v", got.Status, deadIDs(t, g))
		}
	})
}

// What cannot be kept is answered as before, because nothing was accepted.
func TestGivenUpWhileStoreFails(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusUnauthorized)
	gatewaytest.InBubble(t, func(t *testing.T) {
		o := gatewaytest.Queued("", gatewaytest.Key("k", p.NotifyURL()))
		u := o.MakeUnwritable()
		g := gatewaytest.New(t, o)
		u.Down.Store(true)
		got := g.PostForm("/notify/k", "body=x")
		if got.Status != 424 {
			t.Errorf("status %d: %s", got.Status, got.Body)
		}
		u.Down.Store(false)
		if s, _ := g.State(got.JSON(t).ID); s != "failed" {
			t.Errorf("the message is %s", s)
		}
	})
}

// Repeats and what they replace can meet in one transaction of the store.
func TestGivenUpAtOnce(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusUnauthorized)
	g := newGateway(t, "", gatewaytest.Key("k", p.NotifyURL()))
	done := make(chan int)
	const n = 40
	for i := range n {
		go func() { done <- g.PostForm("/notify/k", fmt.Sprintf("body=%d", i%2)).Status }()
	}
	for range n {
		if status := <-done; status != 424 {
			t.Errorf("status %d", status)
		}
	}
	s, err := g.Rooms().Outbox.Queue.Stats(t.Context())
	if dead := deadIDs(t, g); err != nil || len(dead) != 2 || s.Dead != 2 || s.Queued+s.Sending != 0 {
		t.Errorf("given up are %v; the store counts %+v, %v", dead, s, err)
	}
}

// TestTextSum checks that a text has the sum that is stored with messages, and that every message
// pays little for it.
func TestTextSum(t *testing.T) {
	body := strings.Repeat("x", 1000)
	d := &dispatch.Delivery{Message: &notifier.Message{Title: "Disk", Body: body, Type: notifier.Warning}}
	d.Key, d.Stored, d.To = "ops", site.Place{Home: "home", Key: "ops"}, new(message.Selection)
	want := sha256.Sum256([]byte("4:home3:ops7:warning4:Disk1000:" + body))
	if got := outbox.TextSum(d); !bytes.Equal(got, want[:16]) {
		t.Errorf("%x, want %x", got, want[:16])
	}
	if n := testing.AllocsPerRun(100, func() { outbox.TextSum(d) }); n > 2 {
		t.Errorf("%v allocations", n)
	}
}
