package alerting_test

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/silence"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// silenceWindows returns a rule with silences at times of the week, written as in
// sat 02:00-04:00 UTC.
func silenceWindows(texts ...string) (r rules.Rules) {
	for _, text := range texts {
		r.Windows = append(r.Windows, rules.SilenceWindow{Window: window(text), Reason: "backups"})
	}
	return r
}

// A silence that is planned matches nothing before it begins. Then it does what one does that is
// made at that moment, also of an incident that has opened before.
func TestPlannedSilence(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]rules.Rules{"without rules": {}, "with rules": dedupeMinute()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := gatewaytest.NewPager(t, http.StatusOK)
			dir := t.TempDir()
			gatewaytest.InBubble(t, func(t *testing.T) {
				g := newSilenceGateway(t, dir, ruledKey(p, rule))
				wantResult(t, g, gatewaytest.AlertForm("warning", "known", "known"), notifier.Delivered, "")
				id := g.AddSilence("k", "from=2000-01-01T02:00:00Z&for=2h&tag=all&reason=deploy")
				if all := g.ListSilences("k"); len(all) != 1 || all[0].State != silence.Planned || all[0].ID != id ||
					all[0].From.Format(time.TimeOnly) != "02:00:00" || all[0].Until.Format(time.TimeOnly) != "04:00:00" {
					t.Errorf("%+v", all)
				}
				gatewaytest.Until(t, "2000-01-01 01:59:55")
				wantResult(t, g, gatewaytest.AlertForm("failure", "just before", "before"), notifier.Delivered, "")
				wantResult(t, g, "body=passes", notifier.Delivered, "")
				gatewaytest.Until(t, "2000-01-01 02:00:00")
				wantResult(t, g, "body=silent", notifier.Skipped, notifier.RuleSilenced)
				wantResult(t, g, gatewaytest.AlertForm("failure", "worse", "known"), "queued", notifier.RuleSilenced)
				wantResult(t, g, gatewaytest.AlertForm("success", "known over", "known"), notifier.Delivered, "")
				wantResult(t, g, gatewaytest.AlertForm("success", "before over", "before"), notifier.Delivered, "")
				wantResult(t, g, gatewaytest.AlertForm("failure", "a", "a"), "queued", notifier.RuleSilenced)
				wantResult(t, g, gatewaytest.AlertForm("success", "a over", "a"), notifier.Skipped, notifier.RuleSilenced)
				wantResult(t, g, gatewaytest.AlertForm("failure", "b", "b"), "queued", notifier.RuleSilenced)
				if all := g.ListSilences("k"); len(all) != 1 || all[0].State != silence.Active || all[0].Messages != 5 {
					t.Errorf("%+v", all)
				}
				told := len(p.Told())
				g.Stop()
				gatewaytest.Until(t, "2000-01-01 03:00:00")
				g = newSilenceGateway(t, dir, ruledKey(p, rule))
				gatewaytest.Until(t, "2000-01-01 03:59:50")
				if got := p.Told(); len(got) != told {
					t.Errorf("told during the silence: %q", got[told:])
				}
				gatewaytest.Until(t, "2000-01-01 04:00:20")
				if got := p.Told()[told:]; !slices.Equal(got, []string{"failure: b"}) {
					t.Errorf("told %q", got)
				}
				if all := g.ListSilences("k"); len(all) != 0 {
					t.Errorf("%+v are left", all)
				}
			})
		})
	}
}

// A planned silence that is deleted before it begins does nothing, and tells nothing.
func TestPlannedSilenceCancelled(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newSilenceGateway(t, dir, ruledKey(p, rules.Rules{}))
		id := g.AddSilence("k", "from=2000-01-01T01:00:00Z&until=2000-01-01T03:00:00Z&tag=all&tell=yes")
		if status := g.EndSilence("k", id); status != http.StatusOK || len(g.ListSilences("k")) != 0 {
			t.Errorf("status %d", status)
		}
		if status := g.EndSilence("k", id); status != http.StatusNotFound {
			t.Errorf("status %d", status)
		}
		gatewaytest.Until(t, "2000-01-01 02:00:00")
		wantResult(t, g, "body=passes", notifier.Delivered, "")
		p.WantTold(t, "info: passes")
	})
}

// The beginning and the end of a silence are told once, over restarts, to the destinations that
// it is about, unless another silence keeps it from them.
func TestSilenceTold(t *testing.T) {
	t.Parallel()
	p, chat, other := gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK)
	dir := t.TempDir()
	key := gatewaytest.RuledKey("k", dedupeMinute(), p.NotifyURL()+"?tz=UTC phone", chat.NotifyURL()+"?tz=UTC chat",
		other.NotifyURL()+"?tz=UTC")
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := newSilenceGateway(t, dir, key)
		g.AddSilence("k", "from=2000-01-01T01:00:00Z&for=2h&tag=phone&reason=new+phones&who=Eve&tell=yes")
		g.AddSilence("k", "for=30d&tag=chat")
		begun := "info: A silence has begun: new phones | It lasts until 1 January 03:00 UTC. What opens or gets worse meanwhile is told " +
			"then, if it is still open.\nTag: phone\nMade by: Eve"
		for range 4 { // in the first one, it begins
			gatewaytest.Until(t, time.Now().Add(20*time.Minute+time.Second).Format(time.DateTime))
			time.Sleep(3 * time.Second)
			g.Stop()
			g = newSilenceGateway(t, dir, key)
		}
		p.WantTold(t, begun)
		g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "x", "disk")+"&title=disk+is+full")
		g.Stop()
		gatewaytest.Until(t, "2000-01-01 03:10:00")
		g = newSilenceGateway(t, dir, key)
		time.Sleep(5 * time.Second)
		ended := "info: A silence has ended: new phones | It began on 1 January 01:00 UTC.\nStill open:\ndisk is full"
		if got := p.Told()[1:]; len(got) != 2 || !slices.Contains(got, ended) || !slices.Contains(got, "failure: disk is full | x") {
			t.Errorf("told %q", got)
		}
		gatewaytest.Until(t, "2000-01-01 04:00:00")
		chat.WantTold(t)
		other.WantTold(t, "failure: disk is full | x")
		id := g.AddSilence("k", "for=1h&tag=all&tell=true")
		time.Sleep(5 * time.Second)
		chat.WantTold(t)
		if got := other.Told(); len(got) != 2 || !strings.HasPrefix(got[1], "info: A silence has begun | It lasts until 1 January 05:00 UTC.") {
			t.Errorf("told %q", got)
		}
		if status := g.EndSilence("k", id); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
		time.Sleep(5 * time.Second)
		if got := other.Told(); len(got) != 3 ||
			got[2] != "info: A silence has ended | It began on 1 January 04:00 UTC.\nNothing is open of what it has kept silent." {
			t.Errorf("told %q", got)
		}
		chat.WantTold(t)
	})
}

// A silence of the configuration comes again at its times, over restarts, and tells at its end
// what is open. It cannot be deleted.
func TestSilenceWindow(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	dir := t.TempDir()
	key := ruledKey(p, silenceWindows("02:00-04:00 UTC"))
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := newSilenceGateway(t, dir, key)
		wantResult(t, g, gatewaytest.AlertForm("warning", "known", "known"), notifier.Delivered, "")
		all := g.ListSilences("k")
		if len(all) != 1 || all[0].State != silence.Planned || !all[0].Configured || all[0].Reason != "backups" ||
			all[0].From.Format(time.DateTime) != "2000-01-01 02:00:00" || all[0].Until.Format(time.DateTime) != "2000-01-01 04:00:00" {
			t.Errorf("%+v", all)
		}
		if status := g.EndSilence("k", all[0].ID); status != http.StatusConflict {
			t.Errorf("ended: status %d", status)
		}
		gatewaytest.Until(t, "2000-01-01 02:00:00")
		wantResult(t, g, gatewaytest.AlertForm("failure", "worse", "known"), "queued", notifier.RuleSilenced)
		wantResult(t, g, gatewaytest.AlertForm("success", "known over", "known"), notifier.Delivered, "")
		g.Stop()
		g = newSilenceGateway(t, dir, key)
		wantResult(t, g, gatewaytest.AlertForm("failure", "a", "a"), "queued", notifier.RuleSilenced)
		wantResult(t, g, gatewaytest.AlertForm("success", "a over", "a"), notifier.Skipped, notifier.RuleSilenced)
		wantResult(t, g, gatewaytest.AlertForm("failure", "b", "b"), "queued", notifier.RuleSilenced)
		if now := g.ListSilences("k"); len(now) != 1 || now[0].ID != all[0].ID || now[0].State != silence.Active || now[0].Messages != 4 {
			t.Errorf("%+v", now)
		}
		if status := g.EndSilence("k", all[0].ID); status != http.StatusConflict {
			t.Errorf("ended: status %d", status)
		}
		g.Stop()
		gatewaytest.Until(t, "2000-01-01 05:00:00") // over its end
		g = newSilenceGateway(t, dir, key)
		time.Sleep(5 * time.Second)
		told := []string{"warning: known", "success: known over", "failure: b"}
		if got := p.Told(); len(got) != 3 || got[0] != told[0] || !strings.HasPrefix(got[1], told[1]) || got[2] != told[2] {
			t.Errorf("told %q", got)
		}
		if next := g.ListSilences("k"); len(next) != 1 || next[0].ID == all[0].ID || next[0].State != silence.Planned || next[0].Messages != 0 ||
			next[0].From.Format(time.DateTime) != "2000-01-02 02:00:00" {
			t.Errorf("%+v", next)
		}
		g.Stop()
		gatewaytest.Until(t, "2000-01-02 01:00:00")
		g = newSilenceGateway(t, dir, key)
		gatewaytest.Until(t, "2000-01-02 03:00:00")
		wantResult(t, g, gatewaytest.AlertForm("failure", "c", "c"), "queued", notifier.RuleSilenced)
		before := len(p.Told())
		gatewaytest.Until(t, "2000-01-02 04:00:10")
		if got := p.Told()[before:]; !slices.Equal(got, []string{"failure: c"}) {
			t.Errorf("told %q", got)
		}
	})
}

// A silence that the configuration does not have any more ends at once, and tells what is open.
// One that stays goes on.
func TestSilenceWindowReload(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		tells := silenceWindows("00:00-04:00 UTC")
		tells.Windows[0].Tell = true
		stays := silenceWindows("00:00-03:00 UTC")
		stays.Windows[0].Title = "job"
		both := rules.Rules{Windows: append(slices.Clone(tells.Windows), stays.Windows...)}
		process := gatewaytest.NewProcess(t)
		start := func(r rules.Rules) *gatewaytest.Gateway {
			o := withManagers(gatewaytest.Queued(dir, ruledKey(p, r)))
			o.Process = process
			return gatewaytest.New(t, o)
		}
		g := start(both)
		time.Sleep(5 * time.Second)
		begun := "info: A silence has begun: backups | It lasts until 1 January 04:00 UTC. What opens or gets worse meanwhile is told then, " +
			"if it is still open."
		p.WantTold(t, begun)
		wantResult(t, g, gatewaytest.AlertForm("failure", "x", "disk")+"&title=disk+is+full", "queued", notifier.RuleSilenced)
		wantResult(t, g, gatewaytest.AlertForm("failure", "x", "job")+"&title=job+is+late", "queued", notifier.RuleSilenced)
		before := g
		g = start(both)
		before.Stop()
		time.Sleep(5 * time.Second)
		p.WantTold(t, begun)
		before = g
		g = start(stays)
		before.Stop()
		time.Sleep(5 * time.Second)
		got := p.Told()[1:]
		slices.Sort(got)
		if len(got) != 2 || got[0] != "failure: disk is full | x" ||
			!strings.HasPrefix(got[1], "info: A silence has ended: backups | It began on 1 January 00:00 UTC.\nStill open:\ndisk is full") {
			t.Errorf("told %q", got)
		}
		if all := g.ListSilences("k"); len(all) != 1 || all[0].Title != "job" || all[0].State != silence.Active {
			t.Errorf("%+v", all)
		}
		gatewaytest.Until(t, "2000-01-01 03:00:10")
		if got := p.Told(); len(got) != 4 || got[3] != "failure: job is late | x" {
			t.Errorf("told %q", got)
		}
	})
}

// A silence of the configuration holds for each number of a chain, and delays the steps of an
// escalation until it ends.
func TestSilenceWindowNumbers(t *testing.T) {
	t.Parallel()
	first, second := gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK)
	dir := t.TempDir()
	urls := []string{first.NotifyURL() + "?tz=UTC 1:ops", second.NotifyURL() + "?tz=UTC 2:ops"}
	steps := silenceWindows("00:00-01:00 UTC")
	steps.Escalate = escalate(10 * time.Minute)
	chain, team := gatewaytest.RuledKey("k", silenceWindows("00:00-01:00 UTC"), urls...), gatewaytest.RuledKey("team", steps, urls...)
	gatewaytest.InBubble(t, func(t *testing.T) {
		o := withManagers(gatewaytest.Queued(dir, chain, team))
		o.Global.PublicURL = gatewaytest.PublicURL
		g := gatewaytest.New(t, o)
		for _, r := range g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", "a")+"&tag=ops").JSON(t).Results {
			if r.Rule != notifier.RuleSilenced {
				t.Errorf("%+v", r)
			}
		}
		g.PostForm("/notify/team", gatewaytest.AlertForm("failure", "up the wall", "b"))
		gatewaytest.Until(t, "2000-01-01 00:59:50")
		first.WantTold(t)
		second.WantTold(t)
		gatewaytest.Until(t, "2000-01-01 01:02:00")
		if got := first.Told(); len(got) != 2 || !slices.Contains(got, "failure: down") ||
			!slices.ContainsFunc(got, func(x string) bool { return strings.Contains(x, "Still open") }) {
			t.Errorf("told %q", got)
		}
		second.WantTold(t)
		gatewaytest.Until(t, "2000-01-01 01:12:00")
		if got := second.Told(); len(got) != 1 || !strings.Contains(got[0], "Still open") {
			t.Errorf("told %q", got)
		}
	})
}

// Saved keys have the silences of configs, each for itself.
func TestSilenceWindowSaved(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	gatewaytest.InBubble(t, func(t *testing.T) {
		r := silenceWindows("02:00-03:00 UTC")
		g := gatewaytest.New(t, gatewaytest.Options{
			Site:  site.Options{Egress: gatewaytest.Loopback(), Managers: gatewaytest.Everybody()},
			Queue: &outbox.Settings{},
			Saved: &saved.Options{Manage: true, Trusted: true, KeySettings: site.KeySettings{Rules: &r}},
		})
		for _, key := range []string{"a", "b"} {
			if got := g.PostForm("/add/"+key, "urls="+p.NotifyURL()+"?tz=UTC"); got.Status != http.StatusOK {
				t.Fatalf("status %d, %s", got.Status, got.Body)
			}
		}
		gatewaytest.Until(t, "2000-01-01 02:00:10")
		for _, incident := range []string{"x", "y"} {
			if got := g.PostForm("/notify/a", gatewaytest.AlertForm("failure", incident, incident)).JSON(t).
				Results[0]; got.Rule != notifier.RuleSilenced {
				t.Errorf("%+v", got)
			}
		}
		g.PostForm("/notify/a", gatewaytest.AlertForm("success", "x over", "x"))
		a, b := g.ListSilences("a"), g.ListSilences("b")
		if len(a) != 1 || len(b) != 1 || a[0].Messages != 3 || b[0].Messages != 0 || b[0].State != silence.Active ||
			g.EndSilence("a", a[0].ID) != http.StatusConflict {
			t.Errorf("%+v, %+v", a, b)
		}
		gatewaytest.Until(t, "2000-01-01 02:59:50")
		p.WantTold(t)
		gatewaytest.Until(t, "2000-01-01 03:00:10")
		p.WantTold(t, "failure: y")
		if next := g.ListSilences("a"); len(next) != 1 || next[0].State != silence.Planned || next[0].Messages != 0 {
			t.Errorf("%+v", next)
		}
	})
}

// TestSilenceEvents checks that the events about silences that are told have their data. They once
// had the data of another silence, or none.
func TestSilenceEvents(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		o := withManagers(gatewaytest.Queued(dir, ruledKey(p, rules.Rules{})))
		var mu sync.Mutex
		events := map[string][]string{}
		o.Emit = func(name string, data map[string]any) {
			if name != event.Silence {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			id := data["silence"].(string)
			events[id] = append(events[id], fmt.Sprint(data["change"], " ", data["from"], " ", data["reason"], " ", data["messages"]))
		}
		g := gatewaytest.New(t, o)
		now := g.AddSilence("k", "for=1h&tag=all&reason=now&tell=yes")
		later := g.AddSilence("k", "from=2000-01-01T00:30:00Z&for=1h&tag=all&reason=later&tell=yes")
		planned := g.AddSilence("k", "from=2000-03-01T00:00:00Z&for=1h&tag=all&reason=planned")
		g.PostForm("/notify/k", "body=x")
		gatewaytest.Until(t, "2000-01-01 02:00:00")
		mu.Lock()
		defer mu.Unlock()
		want := map[string][]string{
			now:     {"made 2000-01-01T00:00:00Z now 0", "ended 2000-01-01T00:00:00Z now 1"},
			later:   {"made 2000-01-01T00:30:00Z later 0", "begun 2000-01-01T00:30:00Z later 0", "ended 2000-01-01T00:30:00Z later 0"},
			planned: {"made 2000-03-01T00:00:00Z planned 0"},
		}
		if !reflect.DeepEqual(events, want) {
			t.Errorf("got %q, want %q", events, want)
		}
	})
}
