package heartbeat_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestMissedBeat checks that a late beat is told once, that the next one is told as a
// success of the same incident, and that it is told again after that.
func TestMissedBeat(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, nightlyKey(p))
		gatewaytest.Until(t, "2000-01-01 00:10:00")
		got := beat(t, g, http.MethodGet, "/notify/k?beat=nightly", "", http.StatusOK)
		if !strings.Contains(got.Body, "Beat nightly has come. The next one is due by 2000-01-01 00:30") {
			t.Errorf("the answer is %s", got.Body)
		}
		gatewaytest.Until(t, "2000-01-01 00:34:00")
		p.WantTold(t)
		gatewaytest.Until(t, "2000-01-01 02:00:00")
		late := "failure: nightly is late | The last beat came at 2000-01-01 00:10 UTC. One is expected every 20m, with a grace of 5m."
		p.WantTold(t, late)
		beat(t, g, http.MethodPost, "/notify/k?beat=nightly", "", http.StatusOK)
		time.Sleep(time.Second)
		back := "success: nightly is back | The beat has come. It was late since 2000-01-01 00:35 UTC."
		p.WantTold(t, late, back)
		beat(t, g, http.MethodPost, "/notify/k?beat=nightly", "", http.StatusOK)
		gatewaytest.Until(t, "2000-01-01 02:25:30")
		p.WantTold(t, late, back, "failure: nightly is late | The last beat came at 2000-01-01 02:00 UTC. One is expected every 20m, with a "+
			"grace of 5m.")
	})
}

// TestFailingBeat checks that a beat with the type failure is told at once with its text,
// in each format, and that its success is told.
func TestFailingBeat(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, nightlyKey(p))
		var want []string
		tell := func(texts ...string) {
			t.Helper()
			time.Sleep(time.Second)
			want = append(want, texts...)
			p.WantTold(t, want...)
		}
		beat(t, g, http.MethodGet, "/notify/k?beat=nightly&type=failure", "", http.StatusOK)
		tell("failure: nightly has failed | The beat came with the type failure.")
		if got := g.Post("/notify/k?beat=nightly", gatewaytest.TypeJSON,
			`{"type": "failure", "title": "backup", "body": "disk full"}`); got.Status != http.StatusOK || got.JSON(t).Error != nil {
			t.Errorf("status %d: %s", got.Status, got.Body)
		}
		tell("failure: backup | disk full")
		if got := g.Post("/notify/k?beat=nightly&:state=type&:log.text=body", gatewaytest.TypeJSON,
			`{"state": "critical", "log": {"text": "no space"}}`); got.Status != http.StatusOK {
			t.Errorf("status %d: %s", got.Status, got.Body)
		}
		tell("failure: nightly has failed | no space")
		if got := g.Post("/notify/k?beat=nightly&type=failure", "text/plain", "tape missing"); got.Status != http.StatusOK {
			t.Errorf("status %d: %s", got.Status, got.Body)
		}
		tell("failure: nightly has failed | tape missing")
		if got := g.Post("/notify/k/ntfy?beat=nightly", gatewaytest.TypeJSON,
			`{"topic": "t", "message": "all is well"}`); got.Status != http.StatusOK {
			t.Errorf("ntfy: status %d: %s", got.Status, got.Body)
		}
		tell("success: nightly is back | The beat has come. It failed at " + time.Now().Add(-2*time.Second).Format("2006-01-02 15:04") + " UTC.")
	})
}

// TestBeatRefused checks who cannot send a beat, and that such a request changes nothing.
func TestBeatRefused(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		closed, open := nightlyKey(p), gatewaytest.Key("open", p.NotifyURL())
		closed.Tokens = []string{"0123456789abcdef"}
		open.Accept, open.Expects = []string{"grafana"}, []site.BeatOptions{expect("nightly", 24*time.Hour, 0)}
		g := newGateway(t, dir, closed, open)
		const token = "&token=0123456789abcdef"
		beat(t, g, http.MethodGet, "/notify/k?beat=nightly", "", http.StatusUnauthorized)
		beat(t, g, http.MethodGet, "/notify/k?beat=weekly"+token, "", http.StatusNotFound)
		beat(t, g, http.MethodHead, "/notify/k?beat=nightly"+token, "", http.StatusMethodNotAllowed)
		beat(t, g, http.MethodPost, "/notify?beat=nightly", "", http.StatusBadRequest)
		beat(t, g, http.MethodPost, "/notify/k?beat=nightly&type=bad"+token, "", http.StatusBadRequest)
		beat(t, g, http.MethodGet, "/notify/open?beat=nightly", "", http.StatusForbidden)
		r := httptest.NewRequest(http.MethodGet, "/notify/k?beat=nightly"+token, nil)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		if got := g.Do(r); got.Status != http.StatusForbidden {
			t.Errorf("another origin: status %d: %s", got.Status, got.Body)
		}
		gatewaytest.Until(t, "2000-01-01 00:25:10")
		late := "failure: nightly is late | No beat has come yet. One is expected every 20m, with a grace of 5m."
		p.WantTold(t, late)
		r = httptest.NewRequest(http.MethodGet, "/notify/k?beat=nightly", nil)
		r.Header.Set("Authorization", "Bearer 0123456789abcdef")
		if got := g.Do(r); got.Status != http.StatusOK {
			t.Errorf("status %d: %s", got.Status, got.Body)
		}
		time.Sleep(time.Second)
		p.WantTold(t, late, "success: nightly is back | The beat has come. It was late since 2000-01-01 00:25 UTC.")
	})
}

// TestBeatAfterDowntime checks that a gateway that was off tells nobody of beats that could not
// come, but of a beat that does not come afterwards.
func TestBeatAfterDowntime(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, nightlyKey(p))
		gatewaytest.Until(t, "2000-01-01 00:10:00")
		beat(t, g, http.MethodGet, "/notify/k?beat=nightly", "", http.StatusOK)
		gatewaytest.Until(t, "2000-01-01 00:20:00")
		g.Stop()
		gatewaytest.Until(t, "2000-01-03 00:20:00") // off for 48 h, by which the deadline of 00:35 moves, and by 5 m
		newGateway(t, dir, nightlyKey(p))
		gatewaytest.Until(t, "2000-01-03 00:39:00")
		p.WantTold(t)
		gatewaytest.Until(t, "2000-01-03 00:41:00")
		p.WantTold(t, "failure: nightly is late | The last beat came at 2000-01-01 00:10 UTC. One is expected every 20m, with a grace of 5m.")
	})
}

// TestMissedBeatOverRestarts checks that a gateway that is restarted every few seconds tells
// a beat that does not come, and tells it once.
func TestMissedBeatOverRestarts(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		key := gatewaytest.Key("k", p.NotifyURL()+"?tz=UTC")
		key.Expects = []site.BeatOptions{expect("fast", 5*time.Second, time.Second), expect("slow", 30*time.Second, 10*time.Second)}
		for range 15 {
			g := newGateway(t, dir, key)
			time.Sleep(4 * time.Second)
			g.Stop()
			time.Sleep(time.Second / 4)
		}
		p.WantTold(t,
			"failure: fast is late | No beat has come yet. One is expected every 5s, with a grace of 1s.",
			"failure: slow is late | No beat has come yet. One is expected every 30s, with a grace of 10s.",
		)
	})
}

// TestBeatAndRules checks that what is told of a beat passes the rules of the key and goes
// to the URLs of its tag.
func TestBeatAndRules(t *testing.T) {
	t.Parallel()
	p, other := gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK)
	dir := t.TempDir()
	window, err := rules.ParseWindow([]string{"23:00-01:00", "UTC"})
	if err != nil {
		t.Fatal(err)
	}
	key := gatewaytest.Key("k", p.NotifyURL()+"?tz=UTC phone", other.NotifyURL())
	key.Rules = &rules.Rules{Quiet: []rules.Quiet{{
		Window: window,
		Scope:  rules.Scope{Types: []notifier.Type{notifier.Failure, notifier.Success}},
	}}}
	nightly := expect("nightly", 20*time.Minute, 5*time.Minute)
	nightly.Tag = "phone"
	key.Expects = []site.BeatOptions{nightly}
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := newGateway(t, dir, key)
		gatewaytest.Until(t, "2000-01-01 00:59:00")
		p.WantTold(t)
		gatewaytest.Until(t, "2000-01-01 01:00:10")
		p.WantTold(t, "failure: nightly is late | No beat has come yet. One is expected every 20m, with a grace of 5m.")
		beat(t, g, http.MethodGet, "/notify/k?beat=nightly", "", http.StatusOK)
		time.Sleep(time.Second)
		other.WantTold(t)
		if n := len(p.Told()); n != 2 {
			t.Errorf("%d messages", n)
		}
	})
}

// TestPartialBeat checks that a payload that leaves alerts out is a sign of life, and that all is
// well again only with the next whole one, or with an exit code.
func TestPartialBeat(t *testing.T) {
	t.Parallel()
	const failure, late, back = "failure", "late", "back"
	payload := func(status string, leftOut int) string {
		return fmt.Sprintf(`{"version": "4", "status": %q, "groupKey": "{}", "externalURL": "http://am", "truncatedAlerts": %d,
			"alerts": [{"status": %[1]q, "labels": {"alertname": "Disk"}, "annotations": {}, "startsAt": "2000-01-01T00:00:00Z",
				"fingerprint": "a"}]}`, status, leftOut)
	}
	type step struct {
		after      time.Duration
		query      string
		status     string
		leftOut    int
		told, says string
	}
	whole, broken, partial := step{0, "", "resolved", 0, "", "has come. The"}, step{0, "", "firing", 0, failure, "has failed"},
		step{0, "", "resolved", 3, "", "has come, and leaves out"}
	with := func(s step, f func(*step)) step { f(&s); return s }
	wait := func(d time.Duration, s step) step { return with(s, func(s *step) { s.after = d }) }
	told := func(what, says string, s step) step { return with(s, func(s *step) { s.told, s.says = what, says }) }
	for name, steps := range map[string][]step{
		"well":         {whole, told("", "has come. The", partial), whole},
		"failed":       {broken, partial, partial, told(back, "has come. The", whole)},
		"failed twice": {broken, partial, broken, partial},
		"a sign of life": {
			broken, wait(50*time.Minute, partial), wait(50*time.Minute, partial),
			wait(50*time.Minute, told(back, "has come. The", whole)),
		},
		"late":                  {whole, wait(2*time.Hour, told(late+" "+back, "has come. The", partial))},
		"failed, with its exit": {broken, told(back, "has come. The", with(partial, func(s *step) { s.query = "&exit=0" }))},
		"a failure is left out": {whole, told(failure, "has failed", with(broken, func(s *step) { s.leftOut = 3 }))},
	} {
		for _, source := range []string{"alertmanager", "grafana"} {
			p, dir := gatewaytest.NewPager(t, http.StatusOK), t.TempDir()
			gatewaytest.InBubble(t, func(t *testing.T) {
				k := gatewaytest.Key("k", p.NotifyURL())
				k.Expects = []site.BeatOptions{{Expect: rules.Expect{Name: "nightly", Every: time.Hour, Grace: time.Minute}}}
				g := newGateway(t, dir, k)
				for i, s := range steps {
					before := p.Count()
					time.Sleep(s.after)
					got := g.Post("/notify/k/"+source+"?beat=nightly"+s.query, gatewaytest.TypeJSON, payload(s.status, s.leftOut))
					time.Sleep(time.Second)
					told := p.Told()[before:]
					ok := len(told) == len(strings.Fields(s.told))
					for n, what := range strings.Fields(s.told) {
						ok = ok && strings.Contains(told[n], map[string]string{failure: "failure: ", late: "is late", back: "is back"}[what])
					}
					if !ok || got.Status != http.StatusOK || !strings.Contains(got.Body, s.says) {
						t.Errorf("%s, %s, step %d: %d %s, told %q", name, source, i, got.Status, got.Body, told)
					}
				}
			})
		}
	}
}
