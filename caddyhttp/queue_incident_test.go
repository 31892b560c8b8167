package caddyhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/bolt"
)

// told returns type and text of the messages that the pager has taken.
func (p *pager) told() (out []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.got {
		out = append(out, m.Type+": "+m.Message)
	}
	return out
}

// alertForm returns a form with a message about an incident.
func alertForm(typ, text, incident string) string {
	return fmt.Sprintf("type=%s&body=%s&incident=%s", typ, text, incident)
}

// TestIncidentReplaced checks that a newer state of an incident replaces an older
// one that waits for the same destination, also after a restart, and what clients
// and destinations learn of it.
func TestIncidentReplaced(t *testing.T) {
	t.Parallel()
	p, other := newPager(t, http.StatusServiceUnavailable), newPager(t, http.StatusOK)
	dir := t.TempDir()
	key := "key k {\nurl " + p.NotifyURL() + "?tz=UTC\nurl " + other.NotifyURL() + "\n}\nkey l {\nurl " + p.NotifyURL() + "?tz=UTC\n}"
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", key)
		at := time.Now().UTC().Format("15:04")
		down := postWith(t, h, "/notify/k", alertForm("failure", "down", "db1")).queued(t)
		if s, r := state(t, h, down.ID); s != "queued" || r.NextAttempt == nil {
			t.Errorf("the first message: %s, %+v", s, r)
		}
		elsewhere := postWith(t, h, "/notify/l", alertForm("failure", "elsewhere", "db1")).queued(t)
		nothing := postWith(t, h, "/notify/k", "type=failure&body=nothing").queued(t)
		stopApp(t, h)
		h = newQueueGateway(t, dir, "", key)
		up := postWith(t, h, "/notify/k", alertForm("success", "up", "db1")).queued(t)
		m := getMessage(t, h, http.MethodGet, down.ID, typeJSON).queued(t)
		if r := m.Results[0]; m.State != "cancelled" || r.Status != notifier.Skipped || r.Rule != notifier.RuleSuperseded || r.By != up.ID || r.Error != nil {
			t.Errorf("the first message: %s, %+v", m.State, r)
		}
		if r := m.Results[1]; r.Status != notifier.Delivered || r.Rule != "" {
			t.Errorf("the first message at the other destination: %+v", r)
		}
		if text := getMessage(t, h, http.MethodGet, down.ID, "text/plain").body; !strings.Contains(text, "replaced by a newer message about the incident: "+up.ID) {
			t.Errorf("the text is %s", text)
		}
		before := len(p.told())
		p.answer(http.StatusOK)
		caddyhttptest.Eventually(t, func() bool {
			for _, id := range []string{up.ID, elsewhere.ID, nothing.ID} {
				if s, _ := state(t, h, id); s != "delivered" {
					return false
				}
			}
			return true
		})
		got := p.told()[before:]
		slices.Sort(got)
		want := []string{"failure: elsewhere", "failure: nothing", "success: up\n\nThe alert of " + at + " was not delivered."}
		if !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
		if got, want := other.told(), []string{"failure: down", "failure: nothing", "success: up"}; !slices.Equal(got, want) {
			t.Errorf("the other destination was told %q, want %q", got, want)
		}
		if n, err := h.app.gateway.Rooms.Outbox.Queue.Retry(t.Context(), queueID(t, down.ID)); n != (queue.Retried{}) || err != nil {
			t.Errorf("retrying the first message: %+v, %v", n, err)
		}
	})
}

// TestIncidentHeld checks that a message waits while an older one of the incident is
// being sent, and that both arrive in their order.
func TestIncidentHeld(t *testing.T) {
	p := newPager(t, http.StatusOK)
	hold := make(chan struct{})
	p.hold = hold
	h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+p.NotifyURL()+"\n}")
	first := make(chan reply)
	go func() { first <- postWith(t, h, "/notify/k", alertForm("failure", "down", "db1"), "Prefer", "wait=60") }()
	caddyhttptest.Eventually(t, func() bool { return p.count() == 1 })
	up := postWith(t, h, "/notify/k", alertForm("success", "up", "db1"), "Prefer", "wait=60")
	a := up.queued(t)
	if a.Results[0].Status != "queued" || a.Results[0].Attempts != 0 {
		t.Errorf("the second message: status %d, %s", up.status, up.body)
	}
	if p.count() != 1 {
		t.Error("two deliveries of an incident to one destination are under way")
	}
	p.mu.Lock()
	p.hold = nil
	p.mu.Unlock()
	close(hold)
	if got := (<-first).queued(t); got.Results[0].Status != "delivered" {
		t.Errorf("the first message: %+v", got)
	}
	caddyhttptest.Eventually(t, func() bool { s, _ := state(t, h, a.ID); return s == "delivered" })
	if got, want := p.told(), []string{"failure: down", "success: up"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// TestIncidentNotDelivered checks that a message tells of one before it whose
// delivery has failed for good.
func TestIncidentNotDelivered(t *testing.T) {
	p := newPager(t, http.StatusNotFound)
	h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+p.NotifyURL()+"?tz=UTC&format=html\n}")
	at := time.Now().UTC()
	if got := postWith(t, h, "/notify/k", alertForm("failure", "down", "db1")); got.status != http.StatusFailedDependency {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	p.answer(http.StatusOK)
	if got := postWith(t, h, "/notify/k", alertForm("success", "<b>up</b>", "db1")+"&format=html"); got.status != 200 {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	want := "success: <b>up</b><p>The alert of " + at.Format("15:04") + " was not delivered.</p>"
	if got := p.told(); got[1] != want && time.Since(at) < time.Minute {
		t.Errorf("told %q, want %q", got[1], want)
	}
}

// TestIncidentChain checks that the numbers of a tag keep their order while an older
// message of the incident is under way.
func TestIncidentChain(t *testing.T) {
	t.Parallel()
	ownShared(t)
	first, second := newPager(t, http.StatusOK), newPager(t, http.StatusOK)
	hold := make(chan struct{})
	first.hold = hold
	h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+first.NotifyURL()+" 1:ops\nurl "+second.NotifyURL()+" 2:ops\n}")
	down := make(chan reply)
	go func() {
		down <- postWith(t, h, "/notify/k", alertForm("failure", "down", "db1")+"&tag=ops", "Prefer", "wait=60")
	}()
	caddyhttptest.Eventually(t, func() bool { return first.count() == 1 })
	up := postWith(t, h, "/notify/k", alertForm("success", "up", "db1")+"&tag=ops", "Prefer", "wait=60").queued(t)
	first.mu.Lock()
	first.hold = nil
	first.mu.Unlock()
	close(hold)
	<-down
	caddyhttptest.Eventually(t, func() bool { s, _ := state(t, h, up.ID); return s == "delivered" })
	if got, want := first.told(), []string{"failure: down", "success: up"}; !slices.Equal(got, want) || second.count() > 0 {
		t.Errorf("the first number was told %q, want %q, and the second got %d messages", got, want, second.count())
	}
}

// unwritable is a store that cannot be written for a while.
type unwritable struct {
	queue.Store
	down atomic.Bool
}

func (u *unwritable) Accept(ctx context.Context, maxSize int64, entries ...*queue.Entry) error {
	if u.down.Load() {
		return &queue.UnavailableError{Err: errors.New("the disk fails")}
	}
	return u.Store.Accept(ctx, maxSize, entries...)
}

// newUnwritable puts such a store into the place of that of a gateway, whose queue is in
// the folder dir.
func newUnwritable(t *testing.T, h *Handler, dir string) *unwritable {
	t.Helper()
	q := h.app.gateway.Rooms
	if err := q.Outbox.Queue.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var err error
	if q.Outbox.Store, err = bolt.Open(bolt.Options{Path: dir}); err != nil {
		t.Fatal(err)
	}
	u := &unwritable{Store: q.Outbox.Store}
	q.Outbox.Queue = queue.New(u, q.Options(h.app.gateway.Engine.QueueSettings))
	q.Outbox.Queue.Start()
	return u
}

// TestIncidentWhileStoreFails checks that an alert goes out although the queue cannot
// be written, and that what is older is not sent when it can be again.
func TestIncidentWhileStoreFails(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusServiceUnavailable)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", "key k {\nurl "+p.NotifyURL()+"\n}")
		u := newUnwritable(t, h, dir)
		down := postWith(t, h, "/notify/k", alertForm("failure", "down", "db1")).queued(t)
		before := p.count()
		time.Sleep(time.Second)
		u.down.Store(true)
		p.answer(http.StatusOK)
		if got := postWith(t, h, "/notify/k", alertForm("success", "up", "db1")); got.status != http.StatusOK {
			t.Errorf("status %d: %s", got.status, got.body)
		}
		u.down.Store(false)
		caddyhttptest.Eventually(t, func() bool { s, _ := state(t, h, down.ID); return s != "queued" })
		if s, r := state(t, h, down.ID); s != "cancelled" || r.Rule != notifier.RuleSuperseded {
			t.Errorf("the first message: %s, %+v", s, r)
		}
		if got, want := p.told()[before:], []string{"success: up"}; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
		p.answer(http.StatusServiceUnavailable)
		postWith(t, h, "/notify/k", alertForm("failure", "down again", "db1"))
		u.down.Store(true)
		if got := postWith(t, h, "/notify/k", alertForm("success", "up again", "db1")); got.status != http.StatusServiceUnavailable {
			t.Errorf("neither sent nor stored: status %d: %s", got.status, got.body)
		}
		u.down.Store(false)
	})
}

// TestIncidentToldByLaterNumber checks that a destination with a later number of a tag,
// which was told that an incident is open, is told the resolution, too.
func TestIncidentToldByLaterNumber(t *testing.T) {
	for _, async := range []string{"respond-async", "wait=60"} {
		first, second := newPager(t, http.StatusBadGateway), newPager(t, http.StatusOK)
		urls := "key k {\nurl " + first.NotifyURL() + "?tz=UTC 1:ops\nurl " + second.NotifyURL() + " 2:ops\n}"
		for name, h := range map[string]*Handler{"queue": newQueueGateway(t, t.TempDir(), "", urls), "none": newGateway(t, urls, "")} {
			first.answer(http.StatusBadGateway)
			before := second.count()
			send := func(typ, text string) {
				a := postWith(t, h, "/notify/k", alertForm(typ, text, "db1")+"&tag=ops", "Prefer", async).queued(t)
				if name == "queue" {
					caddyhttptest.Eventually(t, func() bool { s, _ := state(t, h, a.ID); return s != "queued" })
				}
			}
			send("failure", "down")
			first.answer(http.StatusOK)
			send("success", "up")
			send("success", "up again")
			if got, want := second.told()[before:], []string{"failure: down", "success: up"}; !slices.Equal(got, want) {
				t.Errorf("%s, %s: the second number was told %q, want %q", name, async, got, want)
			}
			if got := first.told(); got[len(got)-1] != "success: up again" {
				t.Errorf("%s, %s: the first number was told %q", name, async, got)
			}
		}
	}
}

// TestIncidentWithoutQueue checks that the order of an incident also holds without a
// queue, while a delivery is under way.
func TestIncidentWithoutQueue(t *testing.T) {
	p := newPager(t, http.StatusOK)
	hold := make(chan struct{})
	p.hold = hold
	h := newGateway(t, "key k {\nurl "+p.NotifyURL()+"\n}", "")
	send := func(typ, text string) chan reply {
		out := make(chan reply, 1)
		go func() { out <- postWith(t, h, "/notify/k", alertForm(typ, text, "db1")) }()
		return out
	}
	first := send("failure", "down")
	caddyhttptest.Eventually(t, func() bool { return p.count() == 1 })
	second := send("success", "up")
	p.mu.Lock()
	p.hold = nil
	p.mu.Unlock()
	close(hold)
	for _, c := range []chan reply{first, second} {
		if a := (<-c).json(t); a.Error != nil || a.Results[0].Status != notifier.Delivered {
			t.Errorf("%+v", a)
		}
	}
	if got, want := p.told(), []string{"failure: down", "success: up"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// TestIncidentIsNotStored checks that a message about an incident is not stored if
// nothing of the incident waits and its destinations are fast, and that it is as soon
// as a later one comes.
func TestIncidentIsNotStored(t *testing.T) {
	p := newPager(t, http.StatusOK)
	h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+p.NotifyURL()+"\n}")
	stored := func(id string) bool {
		_, err := h.app.gateway.Rooms.Outbox.Store.Get(t.Context(), queueID(t, id))
		if err != nil && !errors.Is(err, queue.ErrNotFound) {
			t.Fatal(err)
		}
		return err == nil
	}
	for range 2 {
		a := postWith(t, h, "/notify/k", alertForm("failure", "down", "db1")).queued(t)
		if s, _ := state(t, h, a.ID); s != "delivered" || stored(a.ID) {
			t.Errorf("the message is %s, and stored: %t", s, stored(a.ID))
		}
	}
	hold := make(chan struct{})
	p.mu.Lock()
	p.hold = hold
	p.mu.Unlock()
	first := make(chan reply)
	go func() { first <- postWith(t, h, "/notify/k", alertForm("failure", "down", "db1"), "Prefer", "wait=60") }()
	caddyhttptest.Eventually(t, func() bool { return p.count() == 3 })
	up := postWith(t, h, "/notify/k", alertForm("success", "up", "db1"), "Prefer", "respond-async").queued(t)
	p.mu.Lock()
	p.hold = nil
	p.mu.Unlock()
	close(hold)
	a := (<-first).queued(t)
	caddyhttptest.Eventually(t, func() bool { s, _ := state(t, h, up.ID); return s == "delivered" })
	if !stored(a.ID) || !stored(up.ID) {
		t.Errorf("stored: the first %t, the second %t", stored(a.ID), stored(up.ID))
	}
	if last := postWith(t, h, "/notify/k", alertForm("failure", "down", "db1")).queued(t); stored(last.ID) {
		t.Error("a message is stored though everything before it was delivered")
	}
	if n := len(h.app.gateway.Rooms.Outbox.Undecided.All); n != 0 {
		t.Errorf("%d incidents are not decided", n)
	}
}

// TestIncidentOfSeveralGateways checks that a message about an incident is stored
// before it is sent where several gateways share the queue, and others are not.
func TestIncidentOfSeveralGateways(t *testing.T) {
	p := newPager(t, http.StatusOK)
	h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+p.NotifyURL()+"\n}")
	q := h.app.gateway.Rooms
	q.Outbox.Store = nil // see gateway.Rooms
	for _, incident := range []string{"", "db1", "db1"} {
		hold := make(chan struct{})
		p.mu.Lock()
		p.hold = hold
		before := len(p.got)
		p.mu.Unlock()
		answer := make(chan reply)
		go func() {
			answer <- postWith(t, h, "/notify/k", alertForm("failure", "down", incident), "Prefer", "wait=60")
		}()
		caddyhttptest.Eventually(t, func() bool { return p.count() == before+1 })
		if jobs, err := q.Outbox.Queue.List(t.Context(), queue.JobID{}, 10, queue.Sending); err != nil || len(jobs) == 1 != (incident != "") {
			t.Errorf("incident %q: while a message is sent, the queue has %d jobs, %v", incident, len(jobs), err)
		}
		p.mu.Lock()
		p.hold = nil
		p.mu.Unlock()
		close(hold)
		if got := (<-answer).queued(t); got.Results[0].Status != notifier.Delivered {
			t.Errorf("incident %q: %+v", incident, got)
		}
	}
}

// TestIncidentOvertaken checks that an alert which comes in before the resolution, but
// takes longer to arrive, is told as resolved.
func TestIncidentOvertaken(t *testing.T) {
	p := newPager(t, http.StatusOK)
	for name, h := range map[string]*Handler{
		"without a queue": newGateway(t, "key k {\nurl "+p.NotifyURL()+"?tz=UTC\n}", ""),
		"with a queue":    newQueueGateway(t, t.TempDir(), "key k {\nurl "+p.NotifyURL()+"?tz=UTC\n}", ""),
	} {
		before := p.count()
		body, slow := io.Pipe()
		r := httptest.NewRequest(http.MethodPost, "/notify/k", body)
		r.Header.Set("Content-Type", typeForm)
		first := make(chan reply)
		go func() { first <- do(t, h, r) }()
		if _, err := io.WriteString(slow, "type=failure&incident=db1&"); err != nil { // the gateway reads it
			t.Fatal(err)
		}
		at := time.Now().UTC()
		postWith(t, h, "/notify/k", alertForm("success", "up", "db1"))
		_, _ = io.WriteString(slow, "body=down")
		_ = slow.Close()
		if got := <-first; got.status != 200 {
			t.Errorf("%s: status %d: %s", name, got.status, got.body)
		}
		want := []string{"success: up", "success: down\n\nIt was resolved at " + at.Format("15:04") + "."}
		if got := p.told()[before:]; !slices.Equal(got, want) && time.Now().UTC().Minute() == at.Minute() {
			t.Errorf("%s: told %q, want %q", name, got, want)
		}
		postWith(t, h, "/notify/k", alertForm("failure", "down again", "db1"))
		if got := p.told()[before:]; got[len(got)-1] != "failure: down again" {
			t.Errorf("%s: told %q last", name, got[len(got)-1])
		}
	}
}

func queueID(t *testing.T, text string) uuid.UUID {
	t.Helper()
	id, err := uuid.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
