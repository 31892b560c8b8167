package alerting_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestIncidentReplaced checks that a newer state of an incident replaces an older
// one that waits for the same destination, also after a restart, and what clients
// and destinations learn of it.
func TestIncidentReplaced(t *testing.T) {
	t.Parallel()
	p, other := gatewaytest.NewPager(t, http.StatusServiceUnavailable), gatewaytest.NewPager(t, http.StatusOK)
	dir := t.TempDir()
	keys := []site.KeyOptions{gatewaytest.Key("k", p.NotifyURL()+"?tz=UTC", other.NotifyURL()), gatewaytest.Key("l", p.NotifyURL()+"?tz=UTC")}
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := newGateway(t, dir, keys...)
		at := time.Now().UTC().Format("15:04")
		down := g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", "db1")).JSON(t)
		if s, r := g.State(down.ID); s != "queued" || r.NextAttempt == nil {
			t.Errorf("the first message: %s, %+v", s, r)
		}
		elsewhere := g.PostForm("/notify/l", gatewaytest.AlertForm("failure", "elsewhere", "db1")).JSON(t)
		nothing := g.PostForm("/notify/k", "type=failure&body=nothing").JSON(t)
		g.Stop()
		g = newGateway(t, dir, keys...)
		up := g.PostForm("/notify/k", gatewaytest.AlertForm("success", "up", "db1")).JSON(t)
		m := g.Message(http.MethodGet, down.ID, gatewaytest.TypeJSON).JSON(t)
		if r := m.Results[0]; m.State != "cancelled" || r.Status != notifier.Skipped || r.Rule != notifier.RuleSuperseded || r.By != up.ID ||
			r.Error != nil {
			t.Errorf("the first message: %s, %+v", m.State, r)
		}
		if r := m.Results[1]; r.Status != notifier.Delivered || r.Rule != "" {
			t.Errorf("the first message at the other destination: %+v", r)
		}
		if text := g.Message(http.MethodGet, down.ID, "text/plain").
			Body; !strings.Contains(text, "replaced by a newer message about the incident: "+up.ID) {
			t.Errorf("the text is %s", text)
		}
		before := len(p.Told())
		p.Answer(http.StatusOK)
		gatewaytest.Eventually(t, func() bool {
			for _, id := range []string{up.ID, elsewhere.ID, nothing.ID} {
				if s, _ := g.State(id); s != "delivered" {
					return false
				}
			}
			return true
		})
		got := p.Told()[before:]
		slices.Sort(got)
		want := []string{"failure: elsewhere", "failure: nothing", "success: up\n\nThe alert of " + at + " was not delivered."}
		if !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
		if got, want := other.Told(), []string{"failure: down", "failure: nothing", "success: up"}; !slices.Equal(got, want) {
			t.Errorf("the other destination was told %q, want %q", got, want)
		}
		if n, err := g.Rooms().Outbox.Queue.Retry(t.Context(), messageID(t, down.ID)); n != (queue.Retried{}) || err != nil {
			t.Errorf("retrying the first message: %+v, %v", n, err)
		}
	})
}

// TestIncidentHeld checks that a message waits while an older one of the incident is
// being sent, and that both arrive in their order.
func TestIncidentHeld(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	release := p.Hold()
	g := newGateway(t, t.TempDir(), gatewaytest.Key("k", p.NotifyURL()))
	first := make(chan gatewaytest.Reply)
	go func() {
		first <- g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", "db1"), "Prefer", "wait=60")
	}()
	gatewaytest.Eventually(t, func() bool { return p.Count() == 1 })
	up := g.PostForm("/notify/k", gatewaytest.AlertForm("success", "up", "db1"), "Prefer", "wait=60")
	a := up.JSON(t)
	if a.Results[0].Status != "queued" || a.Results[0].Attempts != 0 {
		t.Errorf("the second message: status %d, %s", up.Status, up.Body)
	}
	if p.Count() != 1 {
		t.Error("two deliveries of an incident to one destination are under way")
	}
	release()
	if got := (<-first).JSON(t); got.Results[0].Status != "delivered" {
		t.Errorf("the first message: %+v", got)
	}
	gatewaytest.Eventually(t, func() bool { s, _ := g.State(a.ID); return s == "delivered" })
	if got, want := p.Told(), []string{"failure: down", "success: up"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// TestIncidentNotDelivered checks that a message tells of one before it whose
// delivery has failed for good.
func TestIncidentNotDelivered(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusNotFound)
	g := newGateway(t, t.TempDir(), gatewaytest.Key("k", p.NotifyURL()+"?tz=UTC&format=html"))
	at := time.Now().UTC()
	if got := g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", "db1")); got.Status != http.StatusFailedDependency {
		t.Errorf("status %d: %s", got.Status, got.Body)
	}
	p.Answer(http.StatusOK)
	if got := g.PostForm("/notify/k", gatewaytest.AlertForm("success", "<b>up</b>", "db1")+"&format=html"); got.Status != 200 {
		t.Errorf("status %d: %s", got.Status, got.Body)
	}
	want := "success: <b>up</b><p>The alert of " + at.Format("15:04") + " was not delivered.</p>"
	if got := p.Told(); got[1] != want && time.Since(at) < time.Minute {
		t.Errorf("told %q, want %q", got[1], want)
	}
}

// TestIncidentChain checks that the numbers of a tag keep their order while an older
// message of the incident is under way.
func TestIncidentChain(t *testing.T) {
	t.Parallel()
	first, second := gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK)
	release := first.Hold()
	g := newGateway(t, t.TempDir(), gatewaytest.Key("k", first.NotifyURL()+" 1:ops", second.NotifyURL()+" 2:ops"))
	down := make(chan gatewaytest.Reply)
	go func() {
		down <- g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", "db1")+"&tag=ops", "Prefer", "wait=60")
	}()
	gatewaytest.Eventually(t, func() bool { return first.Count() == 1 })
	up := g.PostForm("/notify/k", gatewaytest.AlertForm("success", "up", "db1")+"&tag=ops", "Prefer", "wait=60").JSON(t)
	release()
	<-down
	gatewaytest.Eventually(t, func() bool { s, _ := g.State(up.ID); return s == "delivered" })
	if got, want := first.Told(), []string{"failure: down", "success: up"}; !slices.Equal(got, want) || second.Count() > 0 {
		t.Errorf("the first number was told %q, want %q, and the second got %d messages", got, want, second.Count())
	}
}

// TestIncidentWhileStoreFails checks that an alert goes out although the queue cannot
// be written, and that what is older is not sent when it can be again.
func TestIncidentWhileStoreFails(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusServiceUnavailable)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		o := gatewaytest.Queued(dir, gatewaytest.Key("k", p.NotifyURL()))
		u := o.MakeUnwritable()
		g := gatewaytest.New(t, o)
		down := g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", "db1")).JSON(t)
		before := p.Count()
		time.Sleep(time.Second)
		u.Down.Store(true)
		p.Answer(http.StatusOK)
		if got := g.PostForm("/notify/k", gatewaytest.AlertForm("success", "up", "db1")); got.Status != http.StatusOK {
			t.Errorf("status %d: %s", got.Status, got.Body)
		}
		u.Down.Store(false)
		gatewaytest.Eventually(t, func() bool { s, _ := g.State(down.ID); return s != "queued" })
		if s, r := g.State(down.ID); s != "cancelled" || r.Rule != notifier.RuleSuperseded {
			t.Errorf("the first message: %s, %+v", s, r)
		}
		if got, want := p.Told()[before:], []string{"success: up"}; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
		p.Answer(http.StatusServiceUnavailable)
		g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down again", "db1"))
		u.Down.Store(true)
		if got := g.PostForm("/notify/k", gatewaytest.AlertForm("success", "up again", "db1")); got.Status != http.StatusServiceUnavailable {
			t.Errorf("neither sent nor stored: status %d: %s", got.Status, got.Body)
		}
		u.Down.Store(false)
	})
}

// TestIncidentToldByLaterNumber checks that a destination with a later number of a tag is told of
// the resolution if it was told of the incident.
func TestIncidentToldByLaterNumber(t *testing.T) {
	t.Parallel()
	for _, async := range []string{"respond-async", "wait=60"} {
		first, second := gatewaytest.NewPager(t, http.StatusBadGateway), gatewaytest.NewPager(t, http.StatusOK)
		key := gatewaytest.Key("k", first.NotifyURL()+"?tz=UTC 1:ops", second.NotifyURL()+" 2:ops")
		for name, g := range map[string]*gatewaytest.Gateway{
			"queue": newGateway(t, t.TempDir(), key),
			"none":  gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{key}}}),
		} {
			first.Answer(http.StatusBadGateway)
			before := second.Count()
			send := func(typ, text string) {
				a := g.PostForm("/notify/k", gatewaytest.AlertForm(typ, text, "db1")+"&tag=ops", "Prefer", async).JSON(t)
				if name == "queue" {
					gatewaytest.Eventually(t, func() bool { s, _ := g.State(a.ID); return s != "queued" })
				}
			}
			send("failure", "down")
			first.Answer(http.StatusOK)
			send("success", "up")
			send("success", "up again")
			if got, want := second.Told()[before:], []string{"failure: down", "success: up"}; !slices.Equal(got, want) {
				t.Errorf("%s, %s: the second number was told %q, want %q", name, async, got, want)
			}
			if got := first.Told(); got[len(got)-1] != "success: up again" {
				t.Errorf("%s, %s: the first number was told %q", name, async, got)
			}
		}
	}
}

// TestIncidentWithoutQueue checks that the order of an incident also holds without a
// queue, while a delivery is under way.
func TestIncidentWithoutQueue(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	release := p.Hold()
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("k", p.NotifyURL())}}})
	send := func(typ, text string) chan gatewaytest.Reply {
		out := make(chan gatewaytest.Reply, 1)
		go func() { out <- g.PostForm("/notify/k", gatewaytest.AlertForm(typ, text, "db1")) }()
		return out
	}
	first := send("failure", "down")
	gatewaytest.Eventually(t, func() bool { return p.Count() == 1 })
	second := send("success", "up")
	release()
	for _, c := range []chan gatewaytest.Reply{first, second} {
		if a := (<-c).JSON(t); a.Error != nil || a.Results[0].Status != notifier.Delivered {
			t.Errorf("%+v", a)
		}
	}
	if got, want := p.Told(), []string{"failure: down", "success: up"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// TestIncidentIsNotStored checks that a message about an incident is not stored if
// nothing of the incident waits and its destinations are fast, and that it is as soon
// as a later one comes.
func TestIncidentIsNotStored(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	g := newGateway(t, t.TempDir(), gatewaytest.Key("k", p.NotifyURL()))
	stored := func(id string) bool {
		_, err := g.Rooms().Outbox.Store.Get(t.Context(), messageID(t, id))
		if err != nil && !errors.Is(err, queue.ErrNotFound) {
			t.Fatal(err)
		}
		return err == nil
	}
	for range 2 {
		a := g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", "db1")).JSON(t)
		if s, _ := g.State(a.ID); s != "delivered" || stored(a.ID) {
			t.Errorf("the message is %s, and stored: %t", s, stored(a.ID))
		}
	}
	release := p.Hold()
	first := make(chan gatewaytest.Reply)
	go func() {
		first <- g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", "db1"), "Prefer", "wait=60")
	}()
	gatewaytest.Eventually(t, func() bool { return p.Count() == 3 })
	up := g.PostForm("/notify/k", gatewaytest.AlertForm("success", "up", "db1"), "Prefer", "respond-async").JSON(t)
	release()
	a := (<-first).JSON(t)
	gatewaytest.Eventually(t, func() bool { s, _ := g.State(up.ID); return s == "delivered" })
	if !stored(a.ID) || !stored(up.ID) {
		t.Errorf("stored: the first %t, the second %t", stored(a.ID), stored(up.ID))
	}
	if last := g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", "db1")).JSON(t); stored(last.ID) {
		t.Error("a message is stored though everything before it was delivered")
	}
}

// TestIncidentOfSeveralGateways checks that a message about an incident is stored
// before it is sent where several gateways share the queue, and others are not.
func TestIncidentOfSeveralGateways(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	o := gatewaytest.Queued("", gatewaytest.Key("k", p.NotifyURL()))
	o.Shared = gatewaytest.NewStore(t, "")
	g := gatewaytest.New(t, o)
	q := g.Rooms()
	for _, incident := range []string{"", "db1", "db1"} {
		release, before := p.Hold(), p.Count()
		answer := make(chan gatewaytest.Reply)
		go func() {
			answer <- g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", incident), "Prefer", "wait=60")
		}()
		gatewaytest.Eventually(t, func() bool { return p.Count() == before+1 })
		if jobs, err := q.Outbox.Queue.List(t.Context(), queue.JobID{}, 10, queue.Sending); err != nil || len(jobs) == 1 != (incident != "") {
			t.Errorf("incident %q: while a message is sent, the queue has %d jobs, %v", incident, len(jobs), err)
		}
		release()
		if got := (<-answer).JSON(t); got.Results[0].Status != notifier.Delivered {
			t.Errorf("incident %q: %+v", incident, got)
		}
	}
}

// TestIncidentOvertaken checks that an alert which comes in before the resolution, but
// takes longer to arrive, is told as resolved.
func TestIncidentOvertaken(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	options := gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("k", p.NotifyURL()+"?tz=UTC")}}}
	queued := options
	queued.Queue = &outbox.Settings{}
	for name, g := range map[string]*gatewaytest.Gateway{
		"without a queue": gatewaytest.New(t, options),
		"with a queue":    gatewaytest.New(t, queued),
	} {
		before := p.Count()
		body, slow := io.Pipe()
		r := httptest.NewRequest(http.MethodPost, "/notify/k", body)
		r.Header.Set("Content-Type", gatewaytest.TypeForm)
		first := make(chan gatewaytest.Reply)
		go func() { first <- g.Do(r) }()
		if _, err := io.WriteString(slow, "type=failure&incident=db1&"); err != nil { // the gateway reads it
			t.Fatal(err)
		}
		at := time.Now().UTC()
		g.PostForm("/notify/k", gatewaytest.AlertForm("success", "up", "db1"))
		_, _ = io.WriteString(slow, "body=down")
		_ = slow.Close()
		if got := <-first; got.Status != 200 {
			t.Errorf("%s: status %d: %s", name, got.Status, got.Body)
		}
		want := []string{"success: up", "success: down\n\nIt was resolved at " + at.Format("15:04") + "."}
		if got := p.Told()[before:]; !slices.Equal(got, want) && time.Now().UTC().Minute() == at.Minute() {
			t.Errorf("%s: told %q, want %q", name, got, want)
		}
		g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down again", "db1"))
		if got := p.Told()[before:]; got[len(got)-1] != "failure: down again" {
			t.Errorf("%s: told %q last", name, got[len(got)-1])
		}
	}
}
