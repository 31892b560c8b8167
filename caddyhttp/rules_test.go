package caddyhttp

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// toldTitles returns type, title and text of the messages that the pager has taken.
func (p *pager) toldTitles() (out []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.got {
		text := m.Message
		if m.Title != "" {
			text = m.Title + " | " + text
		}
		out = append(out, m.Type+": "+text)
	}
	return out
}

// wantTold checks what the pager was told, in order.
func (p *pager) wantTold(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := p.toldTitles(); !slices.Equal(got, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// ruledKey returns a key k with one URL and rules.
func ruledKey(p *pager, rules ...string) string {
	return "key k {\nurl " + p.NotifyURL() + "?tz=UTC\n" + strings.Join(rules, "\n") + "\n}"
}

// wantResult posts a message, and checks the status and the rule of its result.
func wantResult(t *testing.T, h *Handler, form string, status notifier.Status, rule notifier.Rule) queuedAnswer {
	t.Helper()
	resp := postWith(t, h, "/notify/k", form)
	a := resp.queued(t)
	if r := a.Results[0]; resp.status != http.StatusOK || r.Status != status || r.Rule != rule {
		t.Errorf("%s: status %d, %s %q; want %s %q", form, resp.status, r.Status, r.Rule, status, rule)
	}
	return a
}

// until waits until a time of the bubble's clock, which begins on Saturday, 2000-01-01.
func until(t *testing.T, at string) {
	t.Helper()
	end, err := time.Parse(time.DateTime, at)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(end))
	synctest.Wait()
}

// TestDedupe checks which messages are suppressed, and what is told of them.
func TestDedupe(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	key := ruledKey(p, "dedupe 10m")
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", key)
		first := wantResult(t, h, "body=disk+full", notifier.Delivered, "")
		time.Sleep(9 * time.Minute)
		again := wantResult(t, h, "body=disk+full", notifier.Skipped, notifier.RuleSuppressed)
		if by := again.Results[0].By; by != first.ID {
			t.Errorf("suppressed by %s, want %s", by, first.ID)
		}
		wantResult(t, h, "body=disk+full&type=warning", notifier.Delivered, "") // another type
		wantResult(t, h, "body=disk+fuller", notifier.Delivered, "")
		m := getMessage(t, h, http.MethodGet, again.ID, typeJSON).queued(t)
		if r := m.Results[0]; m.State != "delivered" || r.Status != notifier.Skipped || r.Rule != notifier.RuleSuppressed || r.By != first.ID {
			t.Errorf("the message: %s, %+v", m.State, r)
		}
		if text := getMessage(t, h, http.MethodGet, again.ID, "text/plain").body; !strings.Contains(text, "the destination has this message already") {
			t.Errorf("the text is %s", text)
		}
		stopApp(t, h)
		h = newQueueGateway(t, dir, "", key) // it is on disk
		wantResult(t, h, "body=disk+full", notifier.Skipped, notifier.RuleSuppressed)
		time.Sleep(time.Minute) // the window does not begin anew
		wantResult(t, h, "body=disk+full", notifier.Delivered, "")
		p.wantTold(t, "info: disk full", "warning: disk full", "info: disk fuller",
			"info: disk full\n\n2 repetitions since 00:09 were not sent.")
	})
}

// TestDedupeIncident checks that each change of an incident's state is told, and a
// repeated state is not.
func TestDedupeIncident(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	key := ruledKey(p, "dedupe 10m")
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", key)
		wantResult(t, h, alertForm("failure", "down", "db1"), notifier.Delivered, "")
		wantResult(t, h, alertForm("failure", "still down", "db1"), notifier.Skipped, notifier.RuleSuppressed)
		wantResult(t, h, alertForm("info", "looking", "db1"), notifier.Delivered, "")
		wantResult(t, h, alertForm("success", "up", "db1"), notifier.Delivered, "")
		wantResult(t, h, alertForm("failure", "down", "db1"), notifier.Delivered, "")
		wantResult(t, h, alertForm("failure", "down", "db2"), notifier.Delivered, "")
		wantResult(t, h, alertForm("success", "up", "db1"), notifier.Delivered, "")
		p.wantTold(t, "failure: down", "info: looking", "success: up\n\n1 repetition since 00:00 was not sent.",
			"failure: down", "failure: down", "success: up")
	})
}

// TestDedupeJoined checks that an alert that joins a group of Alertmanager is told
// within the window, and one that leaves it is not.
func TestDedupeJoined(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", ruledKey(p, "dedupe 10m"))
		group := func(names ...string) {
			t.Helper()
			var alerts []string
			for _, name := range names {
				alerts = append(alerts, fmt.Sprintf(`{"status": "firing", "fingerprint": %q, "labels": {"alertname": "Down", "instance": %q}, "annotations": {}}`, name, name))
			}
			payload := `{"version": "4", "groupKey": "g", "status": "firing", "receiver": "r", "externalURL": "http://am.example", "groupLabels": {}, "commonLabels": {}, "commonAnnotations": {}, "alerts": [` + strings.Join(alerts, ",") + `]}`
			if got := post(t, h, "/notify/k/alertmanager", typeJSON, payload); got.status != http.StatusOK {
				t.Errorf("status %d: %s", got.status, got.body)
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
			if n := p.count(); n != tt.told {
				t.Errorf("%v: told %d times, want %d", tt.firing, n, tt.told)
			}
		}
	})
}

// TestDedupeLacking checks that a destination that lacks the message gets the repeat,
// and that one for which it waits does not get two.
func TestDedupeLacking(t *testing.T) {
	t.Parallel()
	refusing, down := newPager(t, http.StatusBadRequest), newPager(t, http.StatusServiceUnavailable)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", "key k {\nurl "+refusing.NotifyURL()+"\nurl "+down.NotifyURL()+"\ndedupe 1h\n}")
		postWith(t, h, "/notify/k", "body=a")
		refusing.answer(http.StatusOK)
		a := postWith(t, h, "/notify/k", "body=a").queued(t)
		if got := a.Results[0]; got.Status != notifier.Delivered {
			t.Errorf("at the destination that refused it: %+v", got)
		}
		if got := a.Results[1]; got.Rule != notifier.RuleSuppressed {
			t.Errorf("at the destination that is down: %+v", got)
		}
		down.answer(http.StatusOK)
		time.Sleep(time.Hour / 2)
		if got := down.told(); got[len(got)-1] != "info: a" {
			t.Errorf("told %q", got)
		}
		before := down.count()
		postWith(t, h, "/notify/k", "body=a")
		synctest.Wait()
		if down.count() != before {
			t.Error("the destination got the message twice")
		}
	})
}

// TestQuiet checks that messages wait for the end of the night and are one message
// then, also over a restart, and that failures and their resolutions pass.
func TestQuiet(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	key := ruledKey(p, "quiet 22:00-07:00 UTC")
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", key)
		held := wantResult(t, h, "body=backup+done&type=success&title=Backup", "queued", notifier.RuleHeld)
		if at := held.Results[0].Until; at == nil || at.UTC().Format(time.DateTime) != "2000-01-01 07:00:00" {
			t.Errorf("held until %v", at)
		}
		wantResult(t, h, alertForm("failure", "down", "db1"), notifier.Delivered, "")
		wantResult(t, h, alertForm("success", "up", "db1"), notifier.Delivered, "")
		wantResult(t, h, alertForm("warning", "slow", "web"), "queued", notifier.RuleHeld)
		m := getMessage(t, h, http.MethodGet, held.ID, typeJSON).queued(t)
		if r := m.Results[0]; m.State != "queued" || r.Rule != notifier.RuleHeld || r.Until == nil || r.NextAttempt != nil {
			t.Errorf("the message: %s, %+v", m.State, r)
		}
		cancelled := wantResult(t, h, "body=cancelled", "queued", notifier.RuleHeld)
		if got := getMessage(t, h, http.MethodDelete, cancelled.ID, typeJSON); got.status != http.StatusOK {
			t.Errorf("DELETE: status %d, %s", got.status, got.body)
		}
		until(t, "2000-01-01 03:00:00")
		stopApp(t, h)
		h = newQueueGateway(t, dir, "", key)
		wantResult(t, h, alertForm("success", "fast", "web"), "queued", notifier.RuleHeld)
		wantResult(t, h, "body=x", "queued", notifier.RuleHeld)
		until(t, "2000-01-01 06:59:00")
		p.wantTold(t, "failure: down", "success: up")
		until(t, "2000-01-01 07:00:05")
		p.wantTold(t, "failure: down", "success: up",
			"success: k: 2 successes, 1 message | 00:00 success: Backup\n03:00 success: fast (open since 00:00)\n03:00 x")
		m = getMessage(t, h, http.MethodGet, held.ID, typeJSON).queued(t)
		r := m.Results[0]
		if m.State != "cancelled" || r.Rule != notifier.RuleDigested || r.Status != notifier.Skipped {
			t.Errorf("the message: %s, %+v", m.State, r)
		}
		if s, _ := state(t, h, r.By); s != "delivered" {
			t.Errorf("the message about several: %s", s)
		}
		wantResult(t, h, "body=day", notifier.Delivered, "")
	})
}

// TestQuietOne checks that a message that was held alone is sent itself, and that of
// one incident the present state is told.
func TestQuietOne(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", ruledKey(p, "quiet 00:00-07:00 UTC {\ntypes warning success\n}"))
		one := wantResult(t, h, alertForm("warning", "slow", "web"), "queued", notifier.RuleHeld)
		until(t, "2000-01-01 02:00:00")
		wantResult(t, h, alertForm("success", "fast", "web"), "queued", notifier.RuleHeld)
		until(t, "2000-01-01 07:00:05")
		p.wantTold(t, "success: fast\n\nThe alert of 00:00 was not delivered.")
		if s, r := state(t, h, one.ID); s != "cancelled" || r.Rule != notifier.RuleSuperseded {
			t.Errorf("the first message: %s, %+v", s, r)
		}
		until(t, "2000-01-02 00:30:00")
		wantResult(t, h, "body=b&title=a&type=warning", "queued", notifier.RuleHeld)
		until(t, "2000-01-02 07:00:05")
		p.wantTold(t, "success: fast\n\nThe alert of 00:00 was not delivered.", "warning: a | b")
	})
}

// TestQuietWorse checks that a problem that gets worse is told, and with it what was
// held, which does not come later.
func TestQuietWorse(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", ruledKey(p, "quiet 00:00-07:00 UTC"))
		held := wantResult(t, h, alertForm("warning", "slow", "web"), "queued", notifier.RuleHeld)
		time.Sleep(time.Hour)
		wantResult(t, h, alertForm("failure", "down", "web"), notifier.Delivered, "")
		if s, r := state(t, h, held.ID); s != "cancelled" || r.Rule != notifier.RuleSuperseded {
			t.Errorf("the first message: %s, %+v", s, r)
		}
		until(t, "2000-01-01 07:01:00")
		p.wantTold(t, "failure: down\n\nThe alert of 00:00 was not delivered.")
	})
}

// TestDigest checks what is collected, in what order, and that failures are a message
// of their own.
func TestDigest(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", ruledKey(p, "digest 30s"))
		a := wantResult(t, h, "body=a", "queued", notifier.RuleDigested)
		if at := a.Results[0].Until; at == nil || at.UTC().Format(time.TimeOnly) != "00:00:30" {
			t.Errorf("until %v", at)
		}
		wantResult(t, h, alertForm("failure", "down", "db1"), "queued", notifier.RuleDigested)
		time.Sleep(20 * time.Second)
		wantResult(t, h, alertForm("success", "up", "db1"), "queued", notifier.RuleDigested)
		wantResult(t, h, alertForm("failure", "down", "db2"), "queued", notifier.RuleDigested)
		wantResult(t, h, "body=b&type=warning&title=Title", "queued", notifier.RuleDigested)
		time.Sleep(15 * time.Second)
		synctest.Wait()
		got := p.toldTitles()
		slices.Sort(got) // the two are sent at the same time
		want := []string{
			"failure: k: 1 failure, 1 success | 00:00 failure: down\n00:00 success: up (open since 00:00)",
			"warning: k: 1 warning, 1 message | 00:00 warning: Title\n00:00 a",
		}
		if !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
		wantResult(t, h, "body=c", "queued", notifier.RuleDigested) // a new one
		time.Sleep(35 * time.Second)
		if got := p.toldTitles(); got[len(got)-1] != "info: c" {
			t.Errorf("told %q", got)
		}
	})
}

// TestDigestWeekly checks a digest at a moment of the week, which failures pass.
func TestDigestWeekly(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		start := func() *Handler { return newQueueGateway(t, dir, "", ruledKey(p, "digest mon 08:00 UTC")) }
		h := start()
		wantResult(t, h, "body=a", "queued", notifier.RuleDigested)
		wantResult(t, h, alertForm("failure", "down", "db1"), notifier.Delivered, "")
		h = away(t, h, "2000-01-02 12:00:00", start)
		wantResult(t, h, "body=b", "queued", notifier.RuleDigested)
		away(t, h, "2000-01-03 07:00:00", start)
		until(t, "2000-01-03 07:59:59")
		p.wantTold(t, "failure: down")
		until(t, "2000-01-03 08:00:05")
		p.wantTold(t, "failure: down", "info: k: 2 messages | Sat 1 Jan 00:00 a\nSun 2 Jan 12:00 b")
	})
}

// TestDigestUndelivered checks that the resolution of what is in a digest waits for the
// digest, and that neither is lost when the destination is down.
func TestDigestUndelivered(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusServiceUnavailable)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", ruledKey(p, "digest 10s {\ntypes failure\n}"))
		wantResult(t, h, alertForm("failure", "down", "db1"), "queued", notifier.RuleDigested)
		wantResult(t, h, alertForm("failure", "down", "db2"), "queued", notifier.RuleDigested)
		time.Sleep(12 * time.Second)
		synctest.Wait()
		if p.count() == 0 {
			t.Fatal("the digest was not tried")
		}
		up := wantResult(t, h, alertForm("success", "up", "db1"), "queued", notifier.RuleHeld)
		if at := up.Results[0].Until; at != nil {
			t.Errorf("until %v, which nobody knows", at)
		}
		p.answer(http.StatusOK)
		time.Sleep(10 * time.Minute)
		got := p.toldTitles()
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
	for name, rule := range map[string]string{"meanwhile": "digest 10s {\ntypes failure\n}", "before": "digest 10s"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPager(t, http.StatusServiceUnavailable)
			dir := t.TempDir()
			inBubble(t, func(t *testing.T) {
				h := newQueueGateway(t, dir, "", ruledKey(p, rule))
				wantResult(t, h, alertForm("failure", "down", "db1"), "queued", notifier.RuleDigested)
				wantResult(t, h, alertForm("failure", "down", "db2"), "queued", notifier.RuleDigested)
				if name == "before" {
					wantResult(t, h, alertForm("info", "looking", "db1"), "queued", notifier.RuleDigested)
				}
				time.Sleep(12 * time.Second)
				if name == "meanwhile" {
					wantResult(t, h, alertForm("info", "looking", "db1"), "queued", notifier.RuleHeld)
				}
				time.Sleep(time.Minute)
				for _, told := range p.toldTitles() {
					if strings.Contains(told, "looking") {
						t.Errorf("told %q before the digest", told)
					}
				}
				p.answer(http.StatusOK)
				time.Sleep(10 * time.Minute)
				got := p.toldTitles()
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
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", ruledKey(p, "dedupe 1h", "quiet 00:00-01:00 UTC {\ntypes info\n}", "digest 10s {\ntypes warning\n}", "rate 1/1m {\ntypes success\n}"))
		for _, form := range []string{
			"body=a", "body=b", "body=b", // held by quiet, then one message
			"body=w&type=warning", // held by digest, then sent itself
		} {
			postWith(t, h, "/notify/k", form)
		}
		time.Sleep(time.Minute)
		for _, form := range []string{"body=s&type=success", "body=t&type=success"} { // sent, and held by rate
			postWith(t, h, "/notify/k", form)
		}
		until(t, "2000-01-01 01:00:10")
		got := map[string]float64{}
		for name, n := range values(t, h.shared.Dispatcher) {
			if name, ok := strings.CutPrefix(name, "rules_total "); ok && n != 0 {
				got[name] = n
			}
		}
		want := map[string]float64{
			"outcome=suppressed rule=dedupe": 1, "outcome=held rule=quiet": 2, "outcome=digested rule=quiet": 2, "outcome=held rule=digest": 1, "outcome=released rule=digest": 1, "outcome=held rule=rate": 1, "outcome=released rule=rate": 1,
		}
		if !maps.Equal(got, want) {
			t.Errorf("counted %v, want %v", got, want)
		}
	})
}

// TestRate checks that the rest is one message when the time ends, and that new
// messages do not pass those that wait.
func TestRate(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", ruledKey(p, "rate 2/1m"))
		wantResult(t, h, "body=1", notifier.Delivered, "")
		time.Sleep(10 * time.Second)
		wantResult(t, h, "body=2", notifier.Delivered, "")
		held := wantResult(t, h, "body=3", "queued", notifier.RuleHeld)
		if at := held.Results[0].Until; at == nil || at.UTC().Format(time.TimeOnly) != "00:01:00" {
			t.Errorf("until %v", at)
		}
		wantResult(t, h, "body=4", "queued", notifier.RuleHeld)
		time.Sleep(55 * time.Second)
		wantResult(t, h, "body=5", notifier.Delivered, "")
		wantResult(t, h, "body=6", "queued", notifier.RuleHeld)
		p.wantTold(t, "info: 1", "info: 2", "info: k: 2 messages | 00:00 3\n00:00 4", "info: 5")
	})
}

// TestRulesInOrder checks that what a rule releases passes the later rules.
func TestRulesInOrder(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", ruledKey(p, "quiet 00:00-07:00 UTC", "digest 30s", "rate 1/1h", "dedupe 12h"))
		wantResult(t, h, "body=a", "queued", notifier.RuleHeld)
		wantResult(t, h, "body=a", notifier.Skipped, notifier.RuleSuppressed)
		wantResult(t, h, "body=b", "queued", notifier.RuleHeld)
		until(t, "2000-01-01 07:00:20")
		p.wantTold(t)
		until(t, "2000-01-01 07:00:40")
		p.wantTold(t, "info: k: 2 messages | 00:00 a\n00:00 b")
		wantResult(t, h, "body=c", "queued", notifier.RuleDigested)
		until(t, "2000-01-01 07:30:00")
		if p.count() != 1 {
			t.Error("the rate does not hold what the digest releases")
		}
		until(t, "2000-01-01 08:01:00")
		if got := p.toldTitles(); len(got) != 2 || got[1] != "info: c" {
			t.Errorf("told %q", got)
		}
	})
}

// TestRuleRemoved checks that a configuration without a rule releases what it held.
func TestRuleRemoved(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		start := func() *Handler { return newQueueGateway(t, dir, "", ruledKey(p, "digest mon 08:00 UTC")) }
		h := start()
		wantResult(t, h, "body=a", "queued", notifier.RuleDigested)
		wantResult(t, h, "body=b", "queued", notifier.RuleDigested)
		stopApp(t, h)
		h = newQueueGateway(t, dir, "", ruledKey(p))
		time.Sleep(5 * time.Second)
		p.wantTold(t, "info: k: 2 messages | 00:00 a\n00:00 b")
		wantResult(t, h, "body=c", notifier.Delivered, "")
	})
}

// TestRuleScope checks that the tag limits a rule to URLs, and that each destination
// has a state of its own.
func TestRuleScope(t *testing.T) {
	t.Parallel()
	chat, phone := newPager(t, http.StatusOK), newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", "key k {\nurl "+chat.NotifyURL()+" chat\nurl "+phone.NotifyURL()+" phone\nquiet 00:00-07:00 UTC {\ntag phone\n}\ndedupe 1h {\ntypes info\n}\n}")
		wantResult(t, h, "body=a&tag=chat", notifier.Delivered, "")
		a := postWith(t, h, "/notify/k", "body=a").queued(t)
		if a.Results[0].Rule != notifier.RuleSuppressed || a.Results[1].Rule != notifier.RuleHeld {
			t.Errorf("%+v", a.Results)
		}
		wantResult(t, h, "body=b&type=warning&tag=chat", notifier.Delivered, "")
		wantResult(t, h, "body=b&type=warning&tag=chat", notifier.Delivered, "")
		until(t, "2000-01-01 07:01:00")
		chat.wantTold(t, "info: a", "warning: b", "warning: b")
		phone.wantTold(t, "info: a")
	})
}

// TestRuleAsync checks the rules for clients that do not wait.
func TestRuleAsync(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", ruledKey(p, "dedupe 1h", "quiet 00:00-01:00 UTC"))
		a := postWith(t, h, "/notify/k", "body=a", "Prefer", "respond-async")
		if r := a.queued(t).Results[0]; a.status != http.StatusAccepted || r.Rule != notifier.RuleHeld {
			t.Errorf("status %d, %+v", a.status, r)
		}
		b := postWith(t, h, "/notify/k", "body=a", "Prefer", "respond-async")
		if r := b.queued(t).Results[0]; b.status != http.StatusOK || r.Rule != notifier.RuleSuppressed {
			t.Errorf("status %d, %+v", b.status, r)
		}
		until(t, "2000-01-01 01:00:10")
		p.wantTold(t, "info: a")
	})
}

// TestDigestMany checks that more messages than a destination can hold are counted.
func TestDigestMany(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", ruledKey(p, "digest 1h"))
		var last queuedAnswer
		for range 205 {
			last = postWith(t, h, "/notify/k", "body=a").queued(t)
		}
		if r := last.Results[0]; r.Status != notifier.Skipped || r.Rule != notifier.RuleDigested {
			t.Errorf("the last message: %+v", r)
		}
		postWith(t, h, "/notify/k", "body=bad&type=failure")
		time.Sleep(time.Hour + 5*time.Second)
		synctest.Wait()
		got := p.toldTitles()
		if len(got) != 2 {
			t.Fatalf("told %q", got)
		}
		slices.Sort(got)
		if want := "failure: bad"; got[0] != want {
			t.Errorf("told %q, want %q", got[0], want)
		}
		if !strings.HasPrefix(got[1], "info: k: 205 messages | ") || !strings.HasSuffix(got[1], "\nand 155 more") || strings.Count(got[1], "\n") != 50 {
			t.Errorf("told %q", got[1])
		}
		if s, r := state(t, h, last.Results[0].By); s != "delivered" {
			t.Errorf("the digest: %s, %+v", s, r)
		}
	})
}

// TestRulesOfSavedKeys checks that each saved key has the rules of configs for itself.
func TestRulesOfSavedKeys(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	inBubble(t, func(t *testing.T) {
		h, _ := newConfigGateway(t, t.TempDir(), "manage open\ntrust operator\ndedupe 1h\ndigest 10s {\ntypes warning\n}", "queue {\npath "+t.TempDir()+"\n}")
		startApp(t, h)
		for _, key := range []string{"a", "b"} {
			if got := postWith(t, h, "/add/"+key, "urls="+p.NotifyURL()); got.status != http.StatusOK {
				t.Fatalf("status %d, %s", got.status, got.body)
			}
		}
		for _, tt := range []struct {
			key  string
			rule notifier.Rule
		}{{"a", ""}, {"a", notifier.RuleSuppressed}, {"b", ""}, {"b", notifier.RuleSuppressed}} {
			if got := postWith(t, h, "/notify/"+tt.key, "body=x").queued(t).Results[0]; got.Rule != tt.rule {
				t.Errorf("%s: %+v", tt.key, got)
			}
		}
		postWith(t, h, "/notify/a", "body=y&type=warning")
		postWith(t, h, "/notify/a", "body=z&type=warning")
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if got := p.toldTitles(); len(got) != 3 || !strings.HasPrefix(got[2], "warning: a: 2 warnings | ") {
			t.Errorf("told %q", got)
		}
	})
}

// TestRulesWhileStoreFails checks that a message which cannot be held is sent.
func TestRulesWhileStoreFails(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", ruledKey(p, "digest 1h"))
		u := newUnwritable(t, h, dir)
		wantResult(t, h, "body=held", "queued", notifier.RuleDigested)
		u.down.Store(true)
		wantResult(t, h, "body=sent", notifier.Delivered, "")
		wantResult(t, h, alertForm("failure", "down", "db1"), notifier.Delivered, "")
		u.down.Store(false)
		time.Sleep(time.Hour + time.Minute)
		p.wantTold(t, "info: sent", "failure: down", "info: held")
	})
}

// TestDigestFiles checks that a digest has the files of its messages.
func TestDigestFiles(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", ruledKey(p, "digest 10s"))
		for _, name := range []string{"a.txt", "b.txt"} {
			body := `{"body":"see ` + name + `","attachments":[{"filename":"` + name + `","base64":"eA=="}]}`
			if got := post(t, h, "/notify/k", typeJSON, body); got.status != http.StatusOK {
				t.Fatalf("status %d, %s", got.status, got.body)
			}
		}
		time.Sleep(15 * time.Second)
		synctest.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.got) != 1 || p.got[0].Files() != "a.txt text/plain x|b.txt text/plain x" && p.got[0].Files() != "a.txt text/plain; charset=utf-8 x|b.txt text/plain; charset=utf-8 x" {
			t.Errorf("told %+v", p.got)
		}
	})
}

// TestFallbackPassesRules checks that what a key gets as a fallback is sent at once, and
// that a destination that is gone is reported.
func TestFallbackPassesRules(t *testing.T) {
	t.Parallel()
	refusing, other := newPager(t, http.StatusBadRequest), newPager(t, http.StatusOK)
	dir := t.TempDir()
	keys := "key other {\nurl " + other.NotifyURL() + "\ndigest 1d\n}\n"
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", keys+"key k {\nurl "+refusing.NotifyURL()+"\nfallback other\ndigest 10s\n}")
		wantResult(t, h, "body=a", "queued", notifier.RuleDigested)
		wantResult(t, h, "body=b", "queued", notifier.RuleDigested)
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if got := other.toldTitles(); len(got) != 1 || !strings.HasPrefix(got[0], "failure: Message for k not delivered") {
			t.Errorf("told %q", got)
		}
		held := wantResult(t, h, "body=c", "queued", notifier.RuleDigested)
		stopApp(t, h)
		h = newQueueGateway(t, dir, "", keys+"key k {\nurl json://127.0.0.1:1/\nfallback other\n}")
		time.Sleep(15 * time.Minute)
		if s, r := state(t, h, held.ID); s != "failed" || r.Error == nil || !strings.Contains(*r.Error, "no longer has this destination") {
			t.Errorf("%s, %+v", s, r)
		}
		if got := other.toldTitles(); len(got) != 1 {
			t.Errorf("within an hour, told %q", got)
		}
		time.Sleep(time.Hour)
		if got := other.toldTitles(); len(got) != 2 || !strings.HasPrefix(got[1], "failure: One more message for k not delivered") || !strings.Contains(got[1], "no longer has this destination") {
			t.Errorf("told %q", got)
		}
	})
}

// TestRetryHeld checks that whoever retries a message that a rule holds gets it sent.
func TestRetryHeld(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", ruledKey(p, "digest 1h"))
		a := wantResult(t, h, "body=a", "queued", notifier.RuleDigested)
		wantResult(t, h, "body=b", "queued", notifier.RuleDigested)
		if n, err := h.app.gateway.Rooms.Outbox.Queue.Retry(t.Context(), queueID(t, a.ID)); n.Queued != 1 || err != nil {
			t.Errorf("%+v, %v", n, err)
		}
		time.Sleep(5 * time.Second)
		p.wantTold(t, "info: a")
		time.Sleep(time.Hour)
		p.wantTold(t, "info: a", "info: b")
		if s, r := state(t, h, a.ID); s != "delivered" || r.Rule != "" {
			t.Errorf("%s, %+v", s, r)
		}
	})
}
