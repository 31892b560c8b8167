package alerting_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestDedupe checks which messages are suppressed, and what is told of them.
func TestDedupe(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	dir := t.TempDir()
	key := ruledKey(p, rules.Rules{Dedupe: &rules.Dedupe{Window: 10 * time.Minute}})
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := newGateway(t, dir, key)
		first := wantResult(t, g, "body=disk+full", notifier.Delivered, "")
		time.Sleep(9 * time.Minute)
		again := wantResult(t, g, "body=disk+full", notifier.Skipped, notifier.RuleSuppressed)
		if by := again.Results[0].By; by != first.ID {
			t.Errorf("suppressed by %s, want %s", by, first.ID)
		}
		wantResult(t, g, "body=disk+full&type=warning", notifier.Delivered, "") // another type
		wantResult(t, g, "body=disk+fuller", notifier.Delivered, "")
		m := g.Message(http.MethodGet, again.ID, gatewaytest.TypeJSON).JSON(t)
		if r := m.Results[0]; m.State != "delivered" || r.Status != notifier.Skipped || r.Rule != notifier.RuleSuppressed || r.By != first.ID {
			t.Errorf("the message: %s, %+v", m.State, r)
		}
		if text := g.Message(http.MethodGet, again.ID, "text/plain").Body; !strings.Contains(text, "the destination has this message already") {
			t.Errorf("the text is %s", text)
		}
		g.Stop()
		g = newGateway(t, dir, key) // it is on disk
		wantResult(t, g, "body=disk+full", notifier.Skipped, notifier.RuleSuppressed)
		time.Sleep(time.Minute) // the window does not begin anew
		wantResult(t, g, "body=disk+full", notifier.Delivered, "")
		p.WantTold(t, "info: disk full", "warning: disk full", "info: disk fuller",
			"info: disk full\n\n2 repetitions since 00:09 were not sent.")
	})
}

// TestDedupeIncident checks that each change of an incident's state is told, and a
// repeated state is not.
func TestDedupeIncident(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	dir := t.TempDir()
	key := ruledKey(p, rules.Rules{Dedupe: &rules.Dedupe{Window: 10 * time.Minute}})
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := newGateway(t, dir, key)
		wantResult(t, g, gatewaytest.AlertForm("failure", "down", "db1"), notifier.Delivered, "")
		wantResult(t, g, gatewaytest.AlertForm("failure", "still down", "db1"), notifier.Skipped, notifier.RuleSuppressed)
		wantResult(t, g, gatewaytest.AlertForm("info", "looking", "db1"), notifier.Delivered, "")
		wantResult(t, g, gatewaytest.AlertForm("success", "up", "db1"), notifier.Delivered, "")
		wantResult(t, g, gatewaytest.AlertForm("failure", "down", "db1"), notifier.Delivered, "")
		wantResult(t, g, gatewaytest.AlertForm("failure", "down", "db2"), notifier.Delivered, "")
		wantResult(t, g, gatewaytest.AlertForm("success", "up", "db1"), notifier.Delivered, "")
		p.WantTold(t, "failure: down", "info: looking", "success: up\n\n1 repetition since 00:00 was not sent.",
			"failure: down", "failure: down", "success: up")
	})
}

// TestDedupeJoined checks that within the window an alert that joins a group of Alertmanager is
// told, and an alert that leaves the group is not.
func TestDedupeJoined(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, ruledKey(p, rules.Rules{Dedupe: &rules.Dedupe{Window: 10 * time.Minute}}))
		group := func(names ...string) {
			t.Helper()
			var alerts []string
			for _, name := range names {
				alerts = append(alerts, fmt.Sprintf(`{"status": "firing", "fingerprint": %q, "labels": {"alertname": "Down", "instance": %q}, `+
					`"annotations": {}}`, name, name))
			}
			payload := `{"version": "4", "groupKey": "g", "status": "firing", "receiver": "r", "externalURL": "http://am.example", ` +
				`"groupLabels": {}, "commonLabels": {}, "commonAnnotations": {}, "alerts": [` + strings.Join(alerts, ",") + `]}`
			if got := g.Post("/notify/k/alertmanager", gatewaytest.TypeJSON, payload); got.Status != http.StatusOK {
				t.Errorf("status %d: %s", got.Status, got.Body)
			}
			synctest.Wait()
		}
		for _, tt := range []struct {
			firing []string
			told   int
		}{
			{[]string{"db1"}, 1},
			{[]string{"db1"}, 1},
			{[]string{"db1", "db2"}, 2},
			{[]string{"db1", "db2"}, 2},
			{[]string{"db2"}, 2},
			{[]string{"db2", "db3"}, 3},
		} {
			group(tt.firing...)
			if n := p.Count(); n != tt.told {
				t.Errorf("%v: told %d times, want %d", tt.firing, n, tt.told)
			}
		}
	})
}

// TestDedupeLacking checks that a destination that lacks the message gets the repeat, and that a
// destination that the message still waits for does not get two.
func TestDedupeLacking(t *testing.T) {
	t.Parallel()
	refusing, down := gatewaytest.NewPager(t, http.StatusBadRequest), gatewaytest.NewPager(t, http.StatusServiceUnavailable)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := newGateway(t, dir, gatewaytest.RuledKey("k", rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}, refusing.NotifyURL(),
			down.NotifyURL()))
		g.PostForm("/notify/k", "body=a")
		refusing.Answer(http.StatusOK)
		a := g.PostForm("/notify/k", "body=a").JSON(t)
		if got := a.Results[0]; got.Status != notifier.Delivered {
			t.Errorf("at the destination that refused it: %+v", got)
		}
		if got := a.Results[1]; got.Rule != notifier.RuleSuppressed {
			t.Errorf("at the destination that is down: %+v", got)
		}
		down.Answer(http.StatusOK)
		time.Sleep(time.Hour / 2)
		if got := down.Told(); got[len(got)-1] != "info: a" {
			t.Errorf("told %q", got)
		}
		before := down.Count()
		g.PostForm("/notify/k", "body=a")
		synctest.Wait()
		if down.Count() != before {
			t.Error("the destination got the message twice")
		}
	})
}

// TestQuiet checks that messages wait for the end of the night and are one message
// then, also over a restart, and that failures and their resolutions pass.
func TestQuiet(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	dir := t.TempDir()
	key := ruledKey(p, rules.Rules{Quiet: []rules.Quiet{{Window: window("22:00-07:00 UTC")}}})
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := newGateway(t, dir, key)
		held := wantResult(t, g, "body=backup+done&type=success&title=Backup", "queued", notifier.RuleHeld)
		if at := held.Results[0].Until; at == nil || at.UTC().Format(time.DateTime) != "2000-01-01 07:00:00" {
			t.Errorf("held until %v", at)
		}
		wantResult(t, g, gatewaytest.AlertForm("failure", "down", "db1"), notifier.Delivered, "")
		wantResult(t, g, gatewaytest.AlertForm("success", "up", "db1"), notifier.Delivered, "")
		wantResult(t, g, gatewaytest.AlertForm("warning", "slow", "web"), "queued", notifier.RuleHeld)
		m := g.Message(http.MethodGet, held.ID, gatewaytest.TypeJSON).JSON(t)
		if r := m.Results[0]; m.State != "queued" || r.Rule != notifier.RuleHeld || r.Until == nil || r.NextAttempt != nil {
			t.Errorf("the message: %s, %+v", m.State, r)
		}
		cancelled := wantResult(t, g, "body=cancelled", "queued", notifier.RuleHeld)
		if got := g.Message(http.MethodDelete, cancelled.ID, gatewaytest.TypeJSON); got.Status != http.StatusOK {
			t.Errorf("DELETE: status %d, %s", got.Status, got.Body)
		}
		gatewaytest.Until(t, "2000-01-01 03:00:00")
		g.Stop()
		g = newGateway(t, dir, key)
		wantResult(t, g, gatewaytest.AlertForm("success", "fast", "web"), "queued", notifier.RuleHeld)
		wantResult(t, g, "body=x", "queued", notifier.RuleHeld)
		gatewaytest.Until(t, "2000-01-01 06:59:00")
		p.WantTold(t, "failure: down", "success: up")
		gatewaytest.Until(t, "2000-01-01 07:00:05")
		p.WantTold(t, "failure: down", "success: up",
			"success: k: 2 successes, 1 message | 00:00 success: Backup\n03:00 success: fast (open since 00:00)\n03:00 x")
		m = g.Message(http.MethodGet, held.ID, gatewaytest.TypeJSON).JSON(t)
		r := m.Results[0]
		if m.State != "cancelled" || r.Rule != notifier.RuleDigested || r.Status != notifier.Skipped {
			t.Errorf("the message: %s, %+v", m.State, r)
		}
		if s, _ := g.State(r.By); s != "delivered" {
			t.Errorf("the message about several: %s", s)
		}
		wantResult(t, g, "body=day", notifier.Delivered, "")
	})
}

// TestQuietOne checks that a message that was held alone is sent itself, and that the present state
// of an incident is told instead of earlier ones.
func TestQuietOne(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		key := ruledKey(p, rules.Rules{Quiet: []rules.Quiet{{
			Window: window("00:00-07:00 UTC"),
			Scope:  rules.Scope{Types: []notifier.Type{notifier.Warning, notifier.Success}},
		}}})
		g := newGateway(t, dir, key)
		one := wantResult(t, g, gatewaytest.AlertForm("warning", "slow", "web"), "queued", notifier.RuleHeld)
		gatewaytest.Until(t, "2000-01-01 02:00:00")
		wantResult(t, g, gatewaytest.AlertForm("success", "fast", "web"), "queued", notifier.RuleHeld)
		gatewaytest.Until(t, "2000-01-01 07:00:05")
		p.WantTold(t, "success: fast\n\nThe alert of 00:00 was not delivered.")
		if s, r := g.State(one.ID); s != "cancelled" || r.Rule != notifier.RuleSuperseded {
			t.Errorf("the first message: %s, %+v", s, r)
		}
		g.Stop()
		gatewaytest.Until(t, "2000-01-02 00:30:00")
		g = newGateway(t, dir, key)
		wantResult(t, g, "body=b&title=a&type=warning", "queued", notifier.RuleHeld)
		gatewaytest.Until(t, "2000-01-02 07:00:05")
		p.WantTold(t, "success: fast\n\nThe alert of 00:00 was not delivered.", "warning: a | b")
	})
}

// TestQuietWorse checks that a problem that gets worse is told at once together with what was held,
// which is not told again later.
func TestQuietWorse(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, ruledKey(p, rules.Rules{Quiet: []rules.Quiet{{Window: window("00:00-07:00 UTC")}}}))
		held := wantResult(t, g, gatewaytest.AlertForm("warning", "slow", "web"), "queued", notifier.RuleHeld)
		time.Sleep(time.Hour)
		wantResult(t, g, gatewaytest.AlertForm("failure", "down", "web"), notifier.Delivered, "")
		if s, r := g.State(held.ID); s != "cancelled" || r.Rule != notifier.RuleSuperseded {
			t.Errorf("the first message: %s, %+v", s, r)
		}
		gatewaytest.Until(t, "2000-01-01 07:01:00")
		p.WantTold(t, "failure: down\n\nThe alert of 00:00 was not delivered.")
	})
}

// TestDigest checks what is collected, in what order, and that failures are a message
// of their own.
func TestDigest(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, ruledKey(p, rules.Rules{Digest: &rules.Digest{Every: 30 * time.Second}}))
		a := wantResult(t, g, "body=a", "queued", notifier.RuleDigested)
		if at := a.Results[0].Until; at == nil || at.UTC().Format(time.TimeOnly) != "00:00:30" {
			t.Errorf("until %v", at)
		}
		wantResult(t, g, gatewaytest.AlertForm("failure", "down", "db1"), "queued", notifier.RuleDigested)
		time.Sleep(20 * time.Second)
		wantResult(t, g, gatewaytest.AlertForm("success", "up", "db1"), "queued", notifier.RuleDigested)
		wantResult(t, g, gatewaytest.AlertForm("failure", "down", "db2"), "queued", notifier.RuleDigested)
		wantResult(t, g, "body=b&type=warning&title=Title", "queued", notifier.RuleDigested)
		time.Sleep(15 * time.Second)
		synctest.Wait()
		got := p.Told()
		slices.Sort(got) // the two are sent at the same time
		want := []string{
			"failure: k: 1 failure, 1 success | 00:00 failure: down\n00:00 success: up (open since 00:00)",
			"warning: k: 1 warning, 1 message | 00:00 warning: Title\n00:00 a",
		}
		if !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
		wantResult(t, g, "body=c", "queued", notifier.RuleDigested) // a new one
		time.Sleep(35 * time.Second)
		if got := p.Told(); got[len(got)-1] != "info: c" {
			t.Errorf("told %q", got)
		}
	})
}

// TestDigestWeekly checks a digest once a week, and that failures do not wait for it.
func TestDigestWeekly(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		start := func() *gatewaytest.Gateway {
			return newGateway(t, dir, ruledKey(p, rules.Rules{Digest: &rules.Digest{Moment: moment("mon 08:00 UTC")}}))
		}
		g := start()
		wantResult(t, g, "body=a", "queued", notifier.RuleDigested)
		wantResult(t, g, gatewaytest.AlertForm("failure", "down", "db1"), notifier.Delivered, "")
		g.Stop()
		gatewaytest.Until(t, "2000-01-02 12:00:00")
		g = start()
		wantResult(t, g, "body=b", "queued", notifier.RuleDigested)
		g.Stop()
		gatewaytest.Until(t, "2000-01-03 07:00:00")
		start()
		gatewaytest.Until(t, "2000-01-03 07:59:59")
		p.WantTold(t, "failure: down")
		gatewaytest.Until(t, "2000-01-03 08:00:05")
		p.WantTold(t, "failure: down", "info: k: 2 messages | Sat 1 Jan 00:00 a\nSun 2 Jan 12:00 b")
	})
}

// TestDigestUndelivered checks that the resolution of an incident in a digest waits for the digest,
// and that both arrive when the destination is up again.
func TestDigestUndelivered(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusServiceUnavailable)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := newGateway(t, dir,
			ruledKey(p, rules.Rules{Digest: &rules.Digest{Every: 10 * time.Second, Scope: rules.Scope{Types: []notifier.Type{notifier.Failure}}}}))
		wantResult(t, g, gatewaytest.AlertForm("failure", "down", "db1"), "queued", notifier.RuleDigested)
		wantResult(t, g, gatewaytest.AlertForm("failure", "down", "db2"), "queued", notifier.RuleDigested)
		time.Sleep(12 * time.Second)
		synctest.Wait()
		if p.Count() == 0 {
			t.Fatal("the digest was not tried")
		}
		up := wantResult(t, g, gatewaytest.AlertForm("success", "up", "db1"), "queued", notifier.RuleHeld)
		if at := up.Results[0].Until; at != nil {
			t.Errorf("until %v, which nobody knows", at)
		}
		p.Answer(http.StatusOK)
		time.Sleep(10 * time.Minute)
		got := p.Told()
		want := []string{"failure: k: 2 failures | 00:00 failure: down\n00:00 failure: down", "success: up"}
		if n := len(got); n < 3 || !slices.Equal(got[n-2:], want) {
			t.Errorf("told %q, want at the end %q", got, want)
		}
	})
}

// TestDigestBeforeInfo checks that what adds something to an incident in a digest is sent
// after the digest, whether it came in before the digest was sent or while it is tried.
func TestDigestBeforeInfo(t *testing.T) {
	t.Parallel()
	digest := "failure: k: 2 failures | 00:00 failure: down\n00:00 failure: down"
	for name, rule := range map[string]*rules.Digest{
		"meanwhile": {Every: 10 * time.Second, Scope: rules.Scope{Types: []notifier.Type{notifier.Failure}}},
		"before":    {Every: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := gatewaytest.NewPager(t, http.StatusServiceUnavailable)
			dir := t.TempDir()
			gatewaytest.InBubble(t, func(t *testing.T) {
				g := newGateway(t, dir, ruledKey(p, rules.Rules{Digest: rule}))
				wantResult(t, g, gatewaytest.AlertForm("failure", "down", "db1"), "queued", notifier.RuleDigested)
				wantResult(t, g, gatewaytest.AlertForm("failure", "down", "db2"), "queued", notifier.RuleDigested)
				if name == "before" {
					wantResult(t, g, gatewaytest.AlertForm("info", "looking", "db1"), "queued", notifier.RuleDigested)
				}
				time.Sleep(12 * time.Second)
				if name == "meanwhile" {
					wantResult(t, g, gatewaytest.AlertForm("info", "looking", "db1"), "queued", notifier.RuleHeld)
				}
				time.Sleep(time.Minute)
				for _, told := range p.Told() {
					if strings.Contains(told, "looking") {
						t.Errorf("told %q before the digest", told)
					}
				}
				p.Answer(http.StatusOK)
				time.Sleep(10 * time.Minute)
				got := p.Told()
				first := slices.Index(got, digest)
				for first >= 0 && slices.Contains(got[first+1:], digest) { // attempts
					first += 1 + slices.Index(got[first+1:], digest)
				}
				if at := slices.Index(got, "info: looking"); first < 0 || at < first {
					t.Errorf("told %q", got)
				}
			})
		})
	}
}

// TestRuleMetrics checks that each decision is counted under the rule that made it.
func TestRuleMetrics(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, ruledKey(p, rules.Rules{
			Dedupe: &rules.Dedupe{Window: time.Hour},
			Quiet:  []rules.Quiet{{Window: window("00:00-01:00 UTC"), Scope: rules.Scope{Types: []notifier.Type{notifier.Info}}}},
			Digest: &rules.Digest{Every: 10 * time.Second, Scope: rules.Scope{Types: []notifier.Type{notifier.Warning}}},
			Rate:   []rules.Rate{{Count: 1, Per: time.Minute, Scope: rules.Scope{Types: []notifier.Type{notifier.Success}}}},
		}))
		for _, form := range []string{
			"body=a", "body=b", "body=b", // held by quiet, then one message
			"body=w&type=warning", // held by digest, then sent itself
		} {
			g.PostForm("/notify/k", form)
		}
		time.Sleep(time.Minute)
		for _, form := range []string{"body=s&type=success", "body=t&type=success"} { // sent, and held by rate
			g.PostForm("/notify/k", form)
		}
		gatewaytest.Until(t, "2000-01-01 01:00:10")
		got := map[string]float64{}
		for name, n := range g.Process.Values(t) {
			if name, ok := strings.CutPrefix(name, "rules_total "); ok && n != 0 {
				got[name] = n
			}
		}
		want := map[string]float64{
			"outcome=suppressed rule=dedupe": 1, "outcome=held rule=quiet": 2, "outcome=digested rule=quiet": 2, "outcome=held rule=digest": 1,
			"outcome=released rule=digest": 1, "outcome=held rule=rate": 1, "outcome=released rule=rate": 1,
		}
		if !maps.Equal(got, want) {
			t.Errorf("counted %v, want %v", got, want)
		}
	})
}

// TestRate checks that the messages beyond the rate are one message when the time ends, and that
// new messages do not pass waiting ones.
func TestRate(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, ruledKey(p, rules.Rules{Rate: []rules.Rate{{Count: 2, Per: time.Minute}}}))
		wantResult(t, g, "body=1", notifier.Delivered, "")
		time.Sleep(10 * time.Second)
		wantResult(t, g, "body=2", notifier.Delivered, "")
		held := wantResult(t, g, "body=3", "queued", notifier.RuleHeld)
		if at := held.Results[0].Until; at == nil || at.UTC().Format(time.TimeOnly) != "00:01:00" {
			t.Errorf("until %v", at)
		}
		wantResult(t, g, "body=4", "queued", notifier.RuleHeld)
		time.Sleep(55 * time.Second)
		wantResult(t, g, "body=5", notifier.Delivered, "")
		wantResult(t, g, "body=6", "queued", notifier.RuleHeld)
		p.WantTold(t, "info: 1", "info: 2", "info: k: 2 messages | 00:00 3\n00:00 4", "info: 5")
	})
}

// TestRulesInOrder checks that what a rule releases passes the later rules.
func TestRulesInOrder(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, ruledKey(p, rules.Rules{
			Quiet:  []rules.Quiet{{Window: window("00:00-07:00 UTC")}},
			Digest: &rules.Digest{Every: 30 * time.Second}, Rate: []rules.Rate{{Count: 1, Per: time.Hour}},
			Dedupe: &rules.Dedupe{Window: 12 * time.Hour},
		}))
		wantResult(t, g, "body=a", "queued", notifier.RuleHeld)
		wantResult(t, g, "body=a", notifier.Skipped, notifier.RuleSuppressed)
		wantResult(t, g, "body=b", "queued", notifier.RuleHeld)
		gatewaytest.Until(t, "2000-01-01 07:00:20")
		p.WantTold(t)
		gatewaytest.Until(t, "2000-01-01 07:00:40")
		p.WantTold(t, "info: k: 2 messages | 00:00 a\n00:00 b")
		wantResult(t, g, "body=c", "queued", notifier.RuleDigested)
		gatewaytest.Until(t, "2000-01-01 07:30:00")
		if p.Count() != 1 {
			t.Error("the rate does not hold what the digest releases")
		}
		gatewaytest.Until(t, "2000-01-01 08:01:00")
		if got := p.Told(); len(got) != 2 || got[1] != "info: c" {
			t.Errorf("told %q", got)
		}
	})
}

// TestRuleRemoved checks that a configuration without a rule releases what it held.
func TestRuleRemoved(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		start := func() *gatewaytest.Gateway {
			return newGateway(t, dir, ruledKey(p, rules.Rules{Digest: &rules.Digest{Moment: moment("mon 08:00 UTC")}}))
		}
		g := start()
		wantResult(t, g, "body=a", "queued", notifier.RuleDigested)
		wantResult(t, g, "body=b", "queued", notifier.RuleDigested)
		g.Stop()
		g = newGateway(t, dir, ruledKey(p, rules.Rules{}))
		time.Sleep(5 * time.Second)
		p.WantTold(t, "info: k: 2 messages | 00:00 a\n00:00 b")
		wantResult(t, g, "body=c", notifier.Delivered, "")
	})
}

// TestRuleScope checks that the tag limits a rule to URLs, and that each destination
// has a state of its own.
func TestRuleScope(t *testing.T) {
	t.Parallel()
	chat, phone := gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, gatewaytest.Queued(dir, gatewaytest.RuledKey("k", rules.Rules{
			Quiet:  []rules.Quiet{{Window: window("00:00-07:00 UTC"), Scope: rules.Scope{Tag: "phone"}}},
			Dedupe: &rules.Dedupe{Window: time.Hour, Scope: rules.Scope{Types: []notifier.Type{notifier.Info}}},
		}, chat.NotifyURL()+" chat", phone.NotifyURL()+" phone")))
		wantResult(t, g, "body=a&tag=chat", notifier.Delivered, "")
		a := g.PostForm("/notify/k", "body=a").JSON(t)
		if a.Results[0].Rule != notifier.RuleSuppressed || a.Results[1].Rule != notifier.RuleHeld {
			t.Errorf("%+v", a.Results)
		}
		wantResult(t, g, "body=b&type=warning&tag=chat", notifier.Delivered, "")
		wantResult(t, g, "body=b&type=warning&tag=chat", notifier.Delivered, "")
		gatewaytest.Until(t, "2000-01-01 07:01:00")
		chat.WantTold(t, "info: a", "warning: b", "warning: b")
		phone.WantTold(t, "info: a")
	})
}

// TestRuleAsync checks the rules for clients that do not wait.
func TestRuleAsync(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, ruledKey(p, rules.Rules{
			Dedupe: &rules.Dedupe{Window: time.Hour},
			Quiet:  []rules.Quiet{{Window: window("00:00-01:00 UTC")}},
		}))
		a := g.PostForm("/notify/k", "body=a", "Prefer", "respond-async")
		if r := a.JSON(t).Results[0]; a.Status != http.StatusAccepted || r.Rule != notifier.RuleHeld {
			t.Errorf("status %d, %+v", a.Status, r)
		}
		b := g.PostForm("/notify/k", "body=a", "Prefer", "respond-async")
		if r := b.JSON(t).Results[0]; b.Status != http.StatusOK || r.Rule != notifier.RuleSuppressed {
			t.Errorf("status %d, %+v", b.Status, r)
		}
		gatewaytest.Until(t, "2000-01-01 01:00:10")
		p.WantTold(t, "info: a")
	})
}

// TestDigestMany checks that more messages than a destination can hold are counted.
func TestDigestMany(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, ruledKey(p, rules.Rules{Digest: &rules.Digest{Every: time.Hour}}))
		var last gatewaytest.Answer
		for range 205 {
			last = g.PostForm("/notify/k", "body=a").JSON(t)
		}
		if r := last.Results[0]; r.Status != notifier.Skipped || r.Rule != notifier.RuleDigested {
			t.Errorf("the last message: %+v", r)
		}
		g.PostForm("/notify/k", "body=bad&type=failure")
		time.Sleep(time.Hour + 5*time.Second)
		synctest.Wait()
		got := p.Told()
		if len(got) != 2 {
			t.Fatalf("told %q", got)
		}
		slices.Sort(got)
		if want := "failure: bad"; got[0] != want {
			t.Errorf("told %q, want %q", got[0], want)
		}
		if !strings.HasPrefix(got[1], "info: k: 205 messages | ") || !strings.HasSuffix(got[1], "\nand 155 more") ||
			strings.Count(got[1], "\n") != 50 {
			t.Errorf("told %q", got[1])
		}
		if s, r := g.State(last.Results[0].By); s != "delivered" {
			t.Errorf("the digest: %s, %+v", s, r)
		}
	})
}

// TestRulesOfSavedKeys checks that each saved key has the rules of configs for itself.
func TestRulesOfSavedKeys(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, gatewaytest.Options{
			Site:  site.Options{Egress: gatewaytest.Loopback(), Managers: gatewaytest.Everybody()},
			Queue: &outbox.Settings{},
			Saved: &saved.Options{Manage: true, Trusted: true, KeySettings: site.KeySettings{Rules: &rules.Rules{
				Dedupe: &rules.Dedupe{Window: time.Hour},
				Digest: &rules.Digest{Every: 10 * time.Second, Scope: rules.Scope{Types: []notifier.Type{notifier.Warning}}},
			}}},
		})
		for _, key := range []string{"a", "b"} {
			if got := g.PostForm("/add/"+key, "urls="+p.NotifyURL()); got.Status != http.StatusOK {
				t.Fatalf("status %d, %s", got.Status, got.Body)
			}
		}
		for _, tt := range []struct {
			key  string
			rule notifier.Rule
		}{{"a", ""}, {"a", notifier.RuleSuppressed}, {"b", ""}, {"b", notifier.RuleSuppressed}} {
			if got := g.PostForm("/notify/"+tt.key, "body=x").JSON(t).Results[0]; got.Rule != tt.rule {
				t.Errorf("%s: %+v", tt.key, got)
			}
		}
		g.PostForm("/notify/a", "body=y&type=warning")
		g.PostForm("/notify/a", "body=z&type=warning")
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if got := p.Told(); len(got) != 3 || !strings.HasPrefix(got[2], "warning: a: 2 warnings | ") {
			t.Errorf("told %q", got)
		}
	})
}

// TestRulesWhileStoreFails checks that a message which cannot be held is sent.
func TestRulesWhileStoreFails(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		o := gatewaytest.Queued(dir, ruledKey(p, rules.Rules{Digest: &rules.Digest{Every: time.Hour}}))
		u := o.MakeUnwritable()
		g := gatewaytest.New(t, o)
		wantResult(t, g, "body=held", "queued", notifier.RuleDigested)
		u.Down.Store(true)
		wantResult(t, g, "body=sent", notifier.Delivered, "")
		wantResult(t, g, gatewaytest.AlertForm("failure", "down", "db1"), notifier.Delivered, "")
		u.Down.Store(false)
		time.Sleep(time.Hour + time.Minute)
		p.WantTold(t, "info: sent", "failure: down", "info: held")
	})
}

// TestDigestFiles checks that a digest has the files of its messages.
func TestDigestFiles(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, ruledKey(p, rules.Rules{Digest: &rules.Digest{Every: 10 * time.Second}}))
		for _, name := range []string{"a.txt", "b.txt"} {
			body := `{"body":"see ` + name + `","attachments":[{"filename":"` + name + `","base64":"eA=="}]}`
			if got := g.Post("/notify/k", gatewaytest.TypeJSON, body); got.Status != http.StatusOK {
				t.Fatalf("status %d, %s", got.Status, got.Body)
			}
		}
		time.Sleep(15 * time.Second)
		synctest.Wait()
		got := p.Got()
		if len(got) != 1 || got[0].Files() != "a.txt text/plain x|b.txt text/plain x" &&
			got[0].Files() != "a.txt text/plain; charset=utf-8 x|b.txt text/plain; charset=utf-8 x" {
			t.Errorf("told %+v", got)
		}
	})
}

// TestFallbackPassesRules checks that what a key gets as a fallback is sent at once, and
// that a destination that is gone is reported.
func TestFallbackPassesRules(t *testing.T) {
	t.Parallel()
	refusing, other := gatewaytest.NewPager(t, http.StatusBadRequest), gatewaytest.NewPager(t, http.StatusOK)
	dir := t.TempDir()
	fallback := gatewaytest.RuledKey("other", rules.Rules{Digest: &rules.Digest{Every: 24 * time.Hour}}, other.NotifyURL())
	start := func(t *testing.T, url string, r rules.Rules) *gatewaytest.Gateway {
		k := gatewaytest.RuledKey("k", r, url)
		k.Fallback = "other"
		return newGateway(t, dir, fallback, k)
	}
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := start(t, refusing.NotifyURL(), rules.Rules{Digest: &rules.Digest{Every: 10 * time.Second}})
		wantResult(t, g, "body=a", "queued", notifier.RuleDigested)
		wantResult(t, g, "body=b", "queued", notifier.RuleDigested)
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if got := other.Told(); len(got) != 1 || !strings.HasPrefix(got[0], "failure: Message for k not delivered") {
			t.Errorf("told %q", got)
		}
		held := wantResult(t, g, "body=c", "queued", notifier.RuleDigested)
		g.Stop()
		g = start(t, "json://127.0.0.1:1/", rules.Rules{})
		time.Sleep(15 * time.Minute)
		if s, r := g.State(held.ID); s != "failed" || r.Error == nil || !strings.Contains(*r.Error, "no longer has this destination") {
			t.Errorf("%s, %+v", s, r)
		}
		if got := other.Told(); len(got) != 1 {
			t.Errorf("within an hour, told %q", got)
		}
		time.Sleep(time.Hour)
		if got := other.Told(); len(got) != 2 || !strings.HasPrefix(got[1], "failure: One more message for k not delivered") ||
			!strings.Contains(got[1], "no longer has this destination") {
			t.Errorf("told %q", got)
		}
	})
}

// TestRetryHeld checks that whoever retries a message that a rule holds gets it sent.
func TestRetryHeld(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, ruledKey(p, rules.Rules{Digest: &rules.Digest{Every: time.Hour}}))
		a := wantResult(t, g, "body=a", "queued", notifier.RuleDigested)
		wantResult(t, g, "body=b", "queued", notifier.RuleDigested)
		if n, err := g.Rooms().Outbox.Queue.Retry(t.Context(), messageID(t, a.ID)); n.Queued != 1 || err != nil {
			t.Errorf("%+v, %v", n, err)
		}
		time.Sleep(5 * time.Second)
		p.WantTold(t, "info: a")
		time.Sleep(time.Hour)
		p.WantTold(t, "info: a", "info: b")
		if s, r := g.State(a.ID); s != "delivered" || r.Rule != "" {
			t.Errorf("%s, %+v", s, r)
		}
	})
}
