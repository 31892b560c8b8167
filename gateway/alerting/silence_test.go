package alerting_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// What is over before a silence ends is silent, and what is still open is told then, in
// one message. Other messages are not sent, and say so.
func TestSilence(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]rules.Rules{"without rules": {}, "with rules": dedupeMinute()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := gatewaytest.NewPager(t, http.StatusOK)
			dir := t.TempDir()
			gatewaytest.InBubble(t, func(t *testing.T) {
				g := newSilenceGateway(t, dir, ruledKey(p, rule))
				wantResult(t, g, gatewaytest.AlertForm("warning", "known", "known")+"&title=disk+known", notifier.Delivered, "")
				id := g.AddSilence("k", "for=2h&title=Disk&reason=deploy&who=Eve")
				down := wantResult(t, g, gatewaytest.AlertForm("failure", "a", "a")+"&title=disk+a", "queued", notifier.RuleSilenced)
				if u := down.Results[0].Until; u == nil || !u.Equal(time.Now().Add(2*time.Hour)) {
					t.Errorf("until %v", u)
				}
				up := wantResult(t, g, gatewaytest.AlertForm("success", "a", "a")+"&title=OK:+disk", notifier.Skipped, notifier.RuleSilenced)
				for _, x := range []string{up.ID, down.ID} {
					if m := g.Message(http.MethodGet, x, gatewaytest.TypeJSON).JSON(t); m.State != "cancelled" || m.Results[0].By != id ||
						m.Results[0].Rule != notifier.RuleSilenced {
						t.Errorf("%+v", m)
					}
				}
				wantResult(t, g, gatewaytest.AlertForm("failure", "b", "b")+"&title=disk+b", "queued", notifier.RuleSilenced)
				wantResult(t, g, gatewaytest.AlertForm("failure", "b worse", "b")+"&title=not+matching", "queued", notifier.RuleSilenced)
				wantResult(t, g, gatewaytest.AlertForm("info", "more about b", "b")+"&title=more", notifier.Skipped, notifier.RuleSilenced)
				wantResult(t, g, gatewaytest.AlertForm("failure", "c", "c")+"&title=disk+c", "queued", notifier.RuleSilenced)
				wantResult(t, g, "title=disk&body=no+incident&type=failure", notifier.Skipped, notifier.RuleSilenced)
				wantResult(t, g, "title=other&body=passes", notifier.Delivered, "")
				wantResult(t, g, gatewaytest.AlertForm("failure", "known worse", "known")+"&title=disk+known", "queued", notifier.RuleSilenced)
				wantResult(t, g, gatewaytest.AlertForm("success", "known over", "known")+"&title=disk+known", notifier.Delivered, "")
				all := g.ListSilences("k")
				if len(all) != 1 || all[0].ID != id || all[0].Messages != 8 || all[0].Reason != "deploy" || all[0].Who != "Eve" ||
					all[0].Title != "Disk" {
					t.Errorf("%+v", all)
				}
				g.Stop()
				g = newSilenceGateway(t, dir, ruledKey(p, rule))
				gatewaytest.Until(t, "2000-01-01 01:59:50")
				told := []string{"warning: disk known | known", "info: other | passes", "success: disk known | known over"}
				got := p.Told()
				if len(got) != 3 || got[0] != told[0] || got[1] != told[1] || !strings.HasPrefix(got[2], told[2]) {
					t.Fatalf("told %q", got)
				}
				gatewaytest.Until(t, "2000-01-01 02:01:00")
				got = p.Told()
				if len(got) != 4 || !strings.HasPrefix(got[3], "failure: k: 2 failures | ") || !strings.Contains(got[3], "failure: not matching") ||
					!strings.Contains(got[3], "failure: disk c") {
					t.Errorf("told %q", got[3:])
				}
				if all := g.ListSilences("k"); len(all) != 0 {
					t.Errorf("%+v are left", all)
				}
				wantResult(t, g, gatewaytest.AlertForm("success", "b over", "b"), notifier.Delivered, "")
			})
		})
	}
}

// A silence that is ended before its time tells at once what is open. One of another key
// or without a match changes nothing.
func TestSilenceEnded(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newSilenceGateway(t, dir, ruledKey(p, rules.Rules{}), gatewaytest.Key("l", p.NotifyURL()+"?tz=UTC"))
		id := g.AddSilence("k", "until=2000-01-05T00:00:00Z&tag=all")
		wantResult(t, g, gatewaytest.AlertForm("failure", "down", "a"), "queued", notifier.RuleSilenced)
		if a := g.PostForm("/notify/l", "body=elsewhere").JSON(t); a.Results[0].Status != notifier.Delivered {
			t.Errorf("%+v", a.Results)
		}
		p.WantTold(t, "info: elsewhere")
		if status := g.EndSilence("k", id); status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
		time.Sleep(time.Second)
		p.WantTold(t, "info: elsewhere", "failure: down")
		for _, id := range []string{id, "x", "00000000-0000-0000-0000-000000000000"} {
			if status := g.EndSilence("k", id); status != http.StatusNotFound {
				t.Errorf("%s: status %d", id, status)
			}
		}
		wantResult(t, g, "body=after", notifier.Delivered, "")
	})
}

// When an incident is over during a silence of what rules hold, with all of its states,
// none of them is told, also not an earlier resolution. A model has found this.
func TestSilenceOfHeld(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		window, err := rules.ParseWindow([]string{"00:00-03:00", "UTC"})
		if err != nil {
			t.Fatal(err)
		}
		key := ruledKey(p, rules.Rules{
			Quiet:  []rules.Quiet{{Window: window, Scope: rules.Scope{Types: []notifier.Type{notifier.Warning}}}},
			Digest: &rules.Digest{Every: 30 * time.Minute, Scope: rules.Scope{Types: []notifier.Type{notifier.Success}}},
		})
		g := newSilenceGateway(t, dir, key)
		wantResult(t, g, gatewaytest.AlertForm("warning", "down", "a"), "queued", notifier.RuleHeld)
		wantResult(t, g, gatewaytest.AlertForm("success", "up", "a"), "queued", notifier.RuleDigested)
		again := wantResult(t, g, gatewaytest.AlertForm("warning", "down again", "a"), "queued", notifier.RuleHeld)
		id := g.AddSilence("k", "for=40m&tag=all")
		g.Stop()
		g = newSilenceGateway(t, dir, key) // it looks at what is held
		for range 100 {
			if m := g.Message(http.MethodGet, again.ID, gatewaytest.TypeJSON).JSON(t); m.Results[0].Rule == notifier.RuleSilenced {
				break
			}
			time.Sleep(time.Second)
		}
		over := wantResult(t, g, gatewaytest.AlertForm("success", "up again", "a"), notifier.Skipped, notifier.RuleSilenced)
		gatewaytest.Until(t, "2000-01-01 04:00:00")
		p.WantTold(t)
		if m := g.Message(http.MethodGet, over.ID, gatewaytest.TypeJSON).JSON(t); m.Results[0].By != id {
			t.Errorf("%+v", m.Results)
		}
	})
}

// A silence does not make a destination forget that it was told of a resolution, or will be.
// A model has found this.
func TestSilenceAfterResolution(t *testing.T) {
	t.Parallel()
	for _, down := range []bool{false, true} {
		p := gatewaytest.NewPager(t, http.StatusOK)
		dir := t.TempDir()
		gatewaytest.InBubble(t, func(t *testing.T) {
			g := newSilenceGateway(t, dir, ruledKey(p, dedupeMinute()))
			time.Sleep(999) // records have microseconds
			wantResult(t, g, gatewaytest.AlertForm("failure", "down", "a"), notifier.Delivered, "")
			time.Sleep(time.Second)
			if down {
				p.Answer(http.StatusServiceUnavailable)
				wantResult(t, g, gatewaytest.AlertForm("success", "up", "a"), "queued", "")
			} else {
				wantResult(t, g, gatewaytest.AlertForm("success", "up", "a"), notifier.Delivered, "")
			}
			g.AddSilence("k", "for=8h&tag=all")
			p.Answer(http.StatusOK)
			time.Sleep(time.Hour)
			wantResult(t, g, gatewaytest.AlertForm("failure", "down again", "a"), "queued", notifier.RuleSilenced)
			wantResult(t, g, gatewaytest.AlertForm("success", "up again", "a"), notifier.Skipped, notifier.RuleSilenced)
		})
	}
}

// The numbers of a chain are silenced each, and are used in their order when the silence
// ends.
func TestSilencedChain(t *testing.T) {
	t.Parallel()
	first, second := gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK)
	dir := t.TempDir()
	key := gatewaytest.Key("k", first.NotifyURL()+"?tz=UTC 1:ops", second.NotifyURL()+"?tz=UTC 2:ops second")
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := newSilenceGateway(t, dir, key)
		g.AddSilence("k", "for=1h&tag=all")
		a := g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", "a")+"&tag=ops").JSON(t)
		for _, r := range a.Results {
			if r.Rule != notifier.RuleSilenced {
				t.Errorf("%+v", r)
			}
		}
		time.Sleep(59 * time.Minute)
		first.WantTold(t)
		second.WantTold(t)
		time.Sleep(2 * time.Minute)
		first.WantTold(t, "failure: down")
		second.WantTold(t)
	})
}

// TestShareOfAllKeys checks that what rules remember of many keys has a share of max_size, too: all
// their messages are taken, and the latest of each key is known.
func TestShareOfAllKeys(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		var keys []site.KeyOptions
		const n, size = 16, 512 << 10
		for i := range n { // each has a share, and they have more of them than there is room
			key := ruledKey(p, dedupeMinute())
			key.Name += strconv.Itoa(i)
			keys = append(keys, key)
		}
		g := gatewaytest.New(t, withManagers(gatewaytest.Options{
			Global: site.Options{Keys: keys},
			Queue:  &outbox.Settings{Path: dir, MaxSize: size},
		}))
		for i := range 1200 {
			name := "disk" + strconv.Itoa(i)
			if got := g.PostForm("/notify/k"+strconv.Itoa(i%n), gatewaytest.AlertForm("failure", name, name)); got.Status != 200 {
				t.Fatalf("after %d: status %d, %s", i, got.Status, got.Body)
			}
			if i%10 == 0 {
				time.Sleep(time.Second)
			}
		}
		time.Sleep(alerting.ShareEvery)
		if st, err := g.Rooms().Outbox.Queue.Stats(t.Context()); err != nil || st.Records > size/alerting.AllShare*5/4 ||
			st.Records < size/alerting.AllShare/4 {
			t.Errorf("%+v, %v", st, err)
		}
		for i := range n {
			if known := incidentsAt(t, g, "k"+strconv.Itoa(i)); len(known) < 5 || !slices.Contains(known, "disk"+strconv.Itoa(1200-n+i)) {
				t.Errorf("key %d: known are %q", i, known)
			}
		}
	})
}

// TestSilenceOfFullQueue checks that a new silence is refused with the reason when the queue is
// full, and that one can be ended.
func TestSilenceOfFullQueue(t *testing.T) {
	t.Parallel()
	p, down := gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusServiceUnavailable)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		o := withManagers(gatewaytest.Queued(dir, ruledKey(p, dedupeMinute()), gatewaytest.Key("full", down.NotifyURL())))
		o.Queue.MaxSize = 64 << 10
		g := gatewaytest.New(t, o)
		id := g.AddSilence("k", "title=other&for=2h")
		for _, size := range []int{4000, 1} {
			for i := 0; g.PostForm("/notify/full", "body="+strings.Repeat("x", size)).Status == http.StatusOK; i++ {
				if i > 1000 {
					t.Fatal("the queue is never full")
				}
			}
		}
		var refused gatewaytest.Reply
		for range 10 { // a silence is smaller than a message
			if refused = g.PostForm("/notify/k/silences", "for=2h&title=disk"); refused.Status != 201 {
				break
			}
		}
		if refused.Status != 503 || refused.Header.Get("Retry-After") == "" || !strings.Contains(refused.Body, "the queue is full") {
			t.Errorf("a silence: status %d, %s", refused.Status, refused.Body)
		}
		if status := g.EndSilence("k", id); status != 200 {
			t.Errorf("ending a silence: status %d", status)
		}
	})
}
