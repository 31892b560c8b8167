package alerting_test

import (
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// holdRules holds openings for five minutes.
func holdRules() rules.Rules { return rules.Rules{Hold: &rules.Lasting{For: 5 * time.Minute}} }

const (
	diskFull = "body=disk is full&type=failure&incident=disk"
	diskOK   = "body=disk has room&type=success&incident=disk"
)

// TestHold checks that a problem is told only if it lasts. If it is over before, neither it nor its
// end is told, and the resource of each message says so. After the hold, the present state is told,
// and an end that comes later is told, too.
func TestHold(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, ruledKey(p, holdRules()))
		opened := wantResult(t, g, diskFull, "queued", notifier.RuleHeld)
		if until := opened.Results[0].Until; until == nil || !until.Equal(time.Now().Add(5*time.Minute)) {
			t.Errorf("held until %v", until)
		}
		time.Sleep(2 * time.Minute)
		wantResult(t, g, "body=it gets fuller&incident=disk", "queued", notifier.RuleHeld) // nobody knows of the disk
		over := wantResult(t, g, diskOK, notifier.Skipped, notifier.RuleHeld)
		if by := over.Results[0].By; by != opened.ID {
			t.Errorf("the end names %s, and not %s", by, opened.ID)
		}
		if state, r := g.State(opened.ID); state != "cancelled" || r.Rule != notifier.RuleSuperseded || r.By != over.ID {
			t.Errorf("the opening is %s, %s by %s", state, r.Rule, r.By)
		}
		if state, _ := g.State(over.ID); state != "cancelled" {
			t.Errorf("the end is %s", state)
		}
		wantResult(t, g, "body=other&type=failure", notifier.Delivered, "") // it opens no incident
		time.Sleep(time.Hour)
		p.WantTold(t, "failure: other")

		wantResult(t, g, "body=disk is filling&type=warning&incident=disk", "queued", notifier.RuleHeld)
		time.Sleep(time.Minute)
		wantResult(t, g, diskFull, "queued", notifier.RuleHeld)
		time.Sleep(4*time.Minute - time.Second)
		p.WantTold(t, "failure: other")
		time.Sleep(2 * time.Second)
		p.WantTold(t, "failure: other", "failure: disk is full")
	})
}

// TestHoldLater checks that what comes after the hold is told at once: a worse state, and the
// end.
func TestHoldLater(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, ruledKey(p, holdRules()))
		wantResult(t, g, "body=disk is filling&type=warning&incident=disk", "queued", notifier.RuleHeld)
		time.Sleep(6 * time.Minute)
		wantResult(t, g, diskFull, notifier.Delivered, "")
		wantResult(t, g, diskOK, notifier.Delivered, "")
		p.WantTold(t, "warning: disk is filling", "failure: disk is full", "success: disk has room")
	})
}

// TestHoldFlapping checks that a problem that comes a third time within three holds is told
// at once, and later ones, too, until it has been quiet.
func TestHoldFlapping(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, ruledKey(p, holdRules()))
		for range 2 { // down four minutes of every five
			wantResult(t, g, diskFull, "queued", notifier.RuleHeld)
			time.Sleep(4 * time.Minute)
			wantResult(t, g, diskOK, notifier.Skipped, notifier.RuleHeld)
			time.Sleep(time.Minute)
		}
		for range 2 {
			wantResult(t, g, diskFull, notifier.Delivered, "")
			time.Sleep(4 * time.Minute)
			wantResult(t, g, diskOK, notifier.Delivered, "")
			time.Sleep(time.Minute)
		}
		time.Sleep(15 * time.Minute)
		wantResult(t, g, diskFull, "queued", notifier.RuleHeld)
	})
}

// TestHoldWithDedupe checks that dedupe counts only messages that were told: a repetition of a held
// one is left out, and an opening after one that nobody was told of is held again.
func TestHoldWithDedupe(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		r := holdRules()
		r.Dedupe = &rules.Dedupe{Window: time.Hour}
		g := newGateway(t, dir, ruledKey(p, r))
		wantResult(t, g, diskFull, "queued", notifier.RuleHeld)
		wantResult(t, g, diskFull, notifier.Skipped, notifier.RuleSuppressed)
		wantResult(t, g, diskOK, notifier.Skipped, notifier.RuleHeld)
		time.Sleep(time.Minute)
		wantResult(t, g, diskFull, "queued", notifier.RuleHeld)
		time.Sleep(6 * time.Minute)
		p.WantTold(t, "failure: disk is full")
		wantResult(t, g, diskFull, notifier.Skipped, notifier.RuleSuppressed)
	})
}

// TestHoldOfTypes checks that types and a tag limit what is held.
func TestHoldOfTypes(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		r := holdRules()
		r.Hold.Types, r.Hold.Tag = []notifier.Type{notifier.Warning}, "phone"
		g := newGateway(t, dir, gatewaytest.RuledKey("k", r, p.NotifyURL()+"phone?tz=UTC phone", p.NotifyURL()+"chat chat"))
		wantResults := func(form string, want ...string) {
			t.Helper()
			var got []string
			for _, x := range g.PostForm("/notify/k?tag=all", form).JSON(t).Results {
				got = append(got, string(x.Status)+" "+string(x.Rule))
			}
			if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
				t.Errorf("%s: %q, want %q", form, got, want)
			}
		}
		wantResults("body=filling&type=warning&incident=disk", "queued held", "delivered ")
		wantResults(diskFull, "delivered ", "delivered ") // a failure does not wait
		wantResults(diskOK, "delivered ", "delivered ")
	})
}

// TestHoldWithSilence checks that a problem that begins in a silence and goes on after it has
// lasted for as long as it is open, and that a silence that begins meanwhile keeps it.
func TestHoldWithSilence(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newSilenceGateway(t, dir, ruledKey(p, holdRules()))
		id := g.AddSilence("k", "for=1h&tag=all")
		wantResult(t, g, diskFull, "queued", notifier.RuleSilenced)
		time.Sleep(3 * time.Minute)
		g.EndSilence("k", id)
		time.Sleep(time.Minute)
		p.WantTold(t)
		time.Sleep(time.Minute + time.Second)
		p.WantTold(t, "failure: disk is full")

		wantResult(t, g, "body=down&type=failure&incident=web", "queued", notifier.RuleHeld)
		g.AddSilence("k", "for=1h&tag=all")
		time.Sleep(30 * time.Minute)
		p.WantTold(t, "failure: disk is full")
		time.Sleep(31 * time.Minute)
		p.WantTold(t, "failure: disk is full", "failure: down")
	})
}

// TestHoldRestart checks that a hold goes on over a restart, and that what it holds is told
// at once when the key has the rule no more.
func TestHoldRestart(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, ruledKey(p, holdRules()))
		wantResult(t, g, diskFull, "queued", notifier.RuleHeld)
		g.Stop()
		g = newGateway(t, dir, ruledKey(p, holdRules()))
		time.Sleep(4 * time.Minute)
		p.WantTold(t)
		wantResult(t, g, "body=down&type=failure&incident=web", "queued", notifier.RuleHeld)
		time.Sleep(2 * time.Minute)
		p.WantTold(t, "failure: disk is full")
		g.Stop()
		newGateway(t, dir, ruledKey(p, dedupeMinute()))
		time.Sleep(time.Minute)
		p.WantTold(t, "failure: disk is full", "failure: down")
	})
}

// TestHoldEscalates checks that steps begin when the hold ends, that a problem that is over
// before wakes nobody, and that a third one within three holds wakes at once.
func TestHoldEscalates(t *testing.T) {
	t.Parallel()
	x := gatewaytest.NewTeam(t, 2)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		r := holdRules()
		r.Escalate = escalate(10 * time.Minute)
		g := gatewaytest.New(t, teamOptions(x, dir, r))
		opened := g.PostForm("/notify/k", diskFull).JSON(t)
		x.WantCounts(t, 0, 0, 0)
		time.Sleep(4 * time.Minute)
		g.PostForm("/notify/k", diskOK)
		time.Sleep(time.Hour)
		x.WantCounts(t, 0, 0, 0)
		if state, _ := g.State(opened.ID); state != "cancelled" {
			t.Errorf("the opening is %s", state)
		}

		g.PostForm("/notify/k", diskFull)
		time.Sleep(4 * time.Minute)
		g.PostForm("/notify/k", "body=disk is really full&type=failure&incident=disk")
		x.WantCounts(t, 0, 0, 0)
		time.Sleep(61 * time.Second)
		x.WantCounts(t, 1, 1, 0)
		time.Sleep(10 * time.Minute)
		x.WantCounts(t, 1, 1, 1)
		g.PostForm("/notify/k", diskOK)
		x.WantCounts(t, 2, 2, 2)

		for range 2 {
			time.Sleep(time.Minute)
			g.PostForm("/notify/k", "body=web&type=failure&incident=web")
			time.Sleep(time.Minute)
			g.PostForm("/notify/k", "body=web&type=success&incident=web")
		}
		x.WantCounts(t, 2, 2, 2)
		g.PostForm("/notify/k", "body=web&type=failure&incident=web")
		x.WantCounts(t, 3, 3, 2)
	})
}

// TestHoldGoneEscalates checks that steps that are held begin at once when the key has hold
// no more.
func TestHoldGoneEscalates(t *testing.T) {
	t.Parallel()
	x := gatewaytest.NewTeam(t, 2)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		r := holdRules()
		r.Escalate = escalate(10 * time.Minute)
		g := gatewaytest.New(t, teamOptions(x, dir, r))
		g.PostForm("/notify/k", diskFull)
		time.Sleep(time.Minute)
		g.Stop()
		r.Hold = nil
		gatewaytest.New(t, teamOptions(x, dir, r))
		time.Sleep(time.Second)
		x.WantCounts(t, 1, 1, 0)
	})
}
