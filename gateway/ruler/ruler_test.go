package ruler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

const alertsAddress = "/notify/k/prometheus/api/v2/alerts"

// newGateway starts a gateway on the queue in a folder, with keys for all sites.
func newGateway(t *testing.T, dir string, keys ...site.KeyOptions) *gatewaytest.Gateway {
	t.Helper()
	return gatewaytest.New(t, gatewaytest.Queued(dir, keys...))
}

// alert returns an alert of the rule Disk that ends after a time; 0 for one that is resolved.
func alert(instance string, lasts time.Duration) string {
	return alertOf(map[string]string{"alertname": "Disk", "instance": instance, "severity": "critical"}, lasts)
}

func alertOf(labels map[string]string, lasts time.Duration) string {
	b, _ := json.Marshal(map[string]any{
		"labels": labels, "annotations": map[string]string{"summary": "full at " + labels["instance"]},
		"startsAt": time.Now(), "endsAt": time.Now().Add(lasts), "generatorURL": "http://prometheus/graph",
	})
	return string(b)
}

// post posts alerts as a ruler does.
func post(t *testing.T, g *gatewaytest.Gateway, alerts ...string) {
	t.Helper()
	if got := g.Post(alertsAddress, gatewaytest.TypeJSON, "["+strings.Join(alerts, ",")+"]"); got.Status != http.StatusOK {
		t.Errorf("status %d: %s", got.Status, got.Body)
	}
	synctest.Wait()
}

// fires posts alerts each minute for some minutes, as Prometheus does.
func fires(t *testing.T, g *gatewaytest.Gateway, minutes int, instances ...string) {
	t.Helper()
	for range minutes {
		var alerts []string
		for _, name := range instances {
			alerts = append(alerts, alert(name, 4*time.Minute))
		}
		post(t, g, alerts...)
		wait(time.Minute)
	}
}

// wait lets time pass, and then lets the gateway do what is due.
func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func key(p *gatewaytest.Pager) site.KeyOptions { return gatewaytest.Key("k", p.NotifyURL()+"?tz=UTC") }

const (
	disk      = "failure: Disk | Firing: full at a\nhttp://prometheus/graph"
	diskBoth  = "failure: Disk | Firing: full at a\nFiring: full at b\nhttp://prometheus/graph"
	resolvedA = "success: Disk | Resolved: full at a\nhttp://prometheus/graph"
	lostA     = "warning: Disk | No longer reported: full at a\nhttp://prometheus/graph"
)

// TestCharset checks that alerts are read with a byte order mark, and in a declared charset.
func TestCharset(t *testing.T) {
	for name, c := range map[string]struct{ media, begin, text string }{
		"a mark":  {gatewaytest.TypeJSON, "\xEF\xBB\xBF", "Größe"},
		"Latin-1": {gatewaytest.TypeJSON + "; charset=iso-8859-1", "", "Gr\xF6\xDFe"},
	} {
		t.Run(name, func(t *testing.T) {
			gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
				g := newGateway(t, dir, key(p))
				body := c.begin + "[" + strings.Replace(alert("a", 4*time.Minute), "full", c.text, 1) + "]"
				if got := g.Post(alertsAddress, c.media, body); got.Status != http.StatusOK {
					t.Errorf("status %d: %s", got.Status, got.Body)
				}
				synctest.Wait()
				wait(32 * time.Second)
				p.WantTold(t, strings.Replace(disk, "full", "Größe", 1))
			})
		})
	}
}

// TestRulers checks what is told of alerts that a ruler posts, and when.
func TestRulers(t *testing.T) {
	t.Run("a new group waits, and repetitions are no news", func(t *testing.T) {
		gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
			g := newGateway(t, dir, key(p))
			post(t, g, alert("a", 4*time.Minute))
			wait(28 * time.Second)
			p.WantTold(t)
			wait(4 * time.Second)
			p.WantTold(t, disk)
			fires(t, g, 30, "a")
			p.WantTold(t, disk)
			post(t, g, alert("a", 0))
			wait(4*time.Minute + 50*time.Second)
			p.WantTold(t, disk)
			wait(20 * time.Second)
			p.WantTold(t, disk, resolvedA)
			post(t, g, alert("a", 0))
			wait(time.Hour)
			p.WantTold(t, disk, resolvedA)
		})
	})
	t.Run("alerts join and leave, and those that are absent stay", func(t *testing.T) {
		gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
			g := newGateway(t, dir, key(p))
			fires(t, g, 2, "a")
			for range 8 { // in posts of their own
				fires(t, g, 1, "a")
				post(t, g, alert("b", 4*time.Minute))
			}
			p.WantTold(t, disk, diskBoth)
			post(t, g, alert("b", 0))
			fires(t, g, 8, "a")
			left := "failure: Disk | Firing: full at a\nResolved: full at b\nhttp://prometheus/graph"
			p.WantTold(t, disk, diskBoth, left)
		})
	})
	t.Run("a pair that resolves and repeats makes no news", func(t *testing.T) {
		gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
			g := newGateway(t, dir, key(p))
			for range 20 {
				fires(t, g, 1, "a")
				post(t, g, alert("a", 0))
				wait(time.Second)
				post(t, g, alert("a", 4*time.Minute))
			}
			p.WantTold(t, disk)
		})
	})
	// It was once taken for a problem that was over before the hold ended.
	t.Run("a ruler that falls silent while hold holds its alert", func(t *testing.T) {
		gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
			k := key(p)
			k.Rules = &rules.Rules{Hold: &rules.Lasting{For: time.Hour}}
			g := newGateway(t, dir, k)
			post(t, g, alert("a", 4*time.Minute))
			wait(5 * time.Minute)
			p.WantTold(t)
			wait(2 * time.Hour)
			p.WantTold(t, lostA)
		})
	})
	t.Run("a ruler that falls silent", func(t *testing.T) {
		gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
			g := newGateway(t, dir, key(p))
			fires(t, g, 10, "a")
			wait(7*time.Minute + 30*time.Second) // 3 m to the end, and the interval
			p.WantTold(t, disk)
			wait(time.Minute)
			p.WantTold(t, disk, lostA)
			fires(t, g, 2, "a")
			p.WantTold(t, disk, lostA, disk)
		})
	})
	t.Run("one of two is no longer reported", func(t *testing.T) {
		gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
			g := newGateway(t, dir, key(p))
			fires(t, g, 2, "a", "b")
			fires(t, g, 12, "b")
			lost := "failure: Disk | Firing: full at b\nNo longer reported: full at a\nhttp://prometheus/graph"
			p.WantTold(t, diskBoth, lost)
			post(t, g, alert("b", 0))
			wait(6 * time.Minute)
			p.WantTold(t, diskBoth, lost, "warning: Disk | Resolved: full at b\nNo longer reported: full at a\nhttp://prometheus/graph")
		})
	})
	t.Run("an open group outlasts keep, restarts and the time without a gateway", func(t *testing.T) {
		gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
			k := key(p)
			k.Rules = &rules.Rules{Dedupe: &rules.Dedupe{Window: time.Minute}}
			start := func() *gatewaytest.Gateway {
				return gatewaytest.New(t, gatewaytest.Options{
					Global: site.Options{Keys: []site.KeyOptions{k}},
					Site:   site.Options{Managers: gatewaytest.Everybody()}, Queue: &outbox.Settings{Path: dir, Keep: time.Hour},
				})
			}
			g := start()
			fires(t, g, 200, "a")
			if got := g.Do(gatewaytest.NewRequest(http.MethodGet, "/notify/incidents", "")); !strings.Contains(got.Body, `"state":"open"`) {
				t.Errorf("the incident is forgotten: %s", got.Body)
			}
			for range 20 {
				g.Stop()
				g = start()
				fires(t, g, 1, "a")
			}
			g.Stop()
			wait(10 * time.Hour)
			g = start()
			wait(50 * time.Second)
			fires(t, g, 20, "a")
			p.WantTold(t, disk)
			post(t, g, alert("a", 0))
			wait(6 * time.Minute)
			p.WantTold(t, disk, resolvedA)
		})
	})
	t.Run("repetitions are stored in time", func(t *testing.T) {
		gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
			g := newGateway(t, dir, key(p))
			post(t, g, alert("a", 4*time.Minute))
			wait(110 * time.Second)
			post(t, g, alert("a", 4*time.Minute)) // kept in memory for ten seconds
			wait(100 * time.Second)
			g.Stop()
			g = newGateway(t, dir, key(p))
			wait(time.Minute)
			open, err := g.Rooms().Rulers.Open(t.Context(), site.Place{Key: "k"})
			if err != nil || len(open) != 1 {
				t.Errorf("open is %+v, %v", open, err)
			}
		})
	})
	t.Run("groups of other labels and times", func(t *testing.T) {
		gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
			ruler, err := site.NewRuler(site.Ruler{
				GroupBy: []string{"cluster"},
				Times:   rules.GroupTimes{Wait: 5 * time.Second, Interval: 10 * time.Second},
			})
			if err != nil {
				t.Fatal(err)
			}
			g := gatewaytest.New(t, gatewaytest.Options{
				Global: site.Options{Keys: []site.KeyOptions{key(p)}, Ruler: ruler},
				Queue:  &outbox.Settings{Path: dir},
			})
			labels := func(cluster string) map[string]string {
				return map[string]string{"alertname": "Disk", "cluster": cluster, "instance": "a", "severity": "warning"}
			}
			post(t, g, alertOf(labels("x"), time.Hour), alertOf(labels("y"), time.Hour))
			wait(9 * time.Second)
			told := "warning: Disk | Firing: full at a\nhttp://prometheus/graph"
			p.WantTold(t, told, told)
			post(t, g, alertOf(labels("x"), 0))
			wait(16 * time.Second)
			p.WantTold(t, told, told, resolvedA)
		})
	})
}

// TestRulerShortAlerts checks that a short time without a gateway ends no alert that its ruler
// posts to last for 40 seconds, as vmalert does with an interval of 10 s, and that the all-clear
// says how long the group was open.
func TestRulerShortAlerts(t *testing.T) {
	for _, away := range []time.Duration{5 * time.Second, 15 * time.Second, 25 * time.Second, 29 * time.Second, 31 * time.Second} {
		t.Run(away.String(), func(t *testing.T) {
			gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
				ruler, err := site.NewRuler(site.Ruler{Times: rules.GroupTimes{Wait: time.Second, Interval: time.Second}})
				if err != nil {
					t.Fatal(err)
				}
				o := gatewaytest.Options{Global: site.Options{Keys: []site.KeyOptions{key(p)}, Ruler: ruler}, Queue: &outbox.Settings{Path: dir}}
				g := gatewaytest.New(t, o)
				for range 5 {
					for range 3 {
						post(t, g, alert("a", 40*time.Second))
						wait(10 * time.Second)
					}
					g.Stop()
					wait(away)
					g = gatewaytest.New(t, o)
					wait(15 * time.Second) // the ruler finds out, and posts again
				}
				post(t, g, alert("a", 40*time.Second))
				p.WantTold(t, disk)
				post(t, g, alert("a", 0))
				wait(2 * time.Second)
				p.WantTold(t, disk, resolvedA)
				if all := p.Got(); all[len(all)-1].OpenSeconds < 200 {
					t.Errorf("the all-clear is %+v", all[len(all)-1])
				}
			})
		})
	}
}

// TestRulerFarEnd checks that an alert which ends in many years is forgotten a day after its last
// post without a message, and told once more if it is posted again. An alert that is posted again
// and again stays.
func TestRulerFarEnd(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		const years = 70 * 365 * 24 * time.Hour
		const load = "failure: Load | Firing: full at b\nhttp://prometheus/graph"
		g := newGateway(t, dir, key(p))
		once := func() {
			post(t, g, alertOf(map[string]string{"alertname": "Load", "instance": "b"}, years))
			wait(time.Minute)
		}
		once()
		for range 26 {
			post(t, g, alert("a", years))
			wait(time.Hour)
		}
		p.WantTold(t, load, disk)
		wantOpen(t, g, 1)
		once()
		p.WantTold(t, load, disk, load)
		wantOpen(t, g, 2)
	})
}

// TestRulerShare checks that the groups of a key take only its share of the queue, however far
// away their ends are, so that other keys can still use it.
func TestRulerShare(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		other := gatewaytest.Key("other", p.NotifyURL())
		g := gatewaytest.New(t, gatewaytest.Options{
			Global: site.Options{Keys: []site.KeyOptions{key(p), other}},
			Queue:  &outbox.Settings{Path: dir, MaxSize: 16 << 20},
		})
		status, n := http.StatusOK, 0
		for ; status == http.StatusOK && n < 2000; n++ {
			status = g.Post(alertsAddress, gatewaytest.TypeJSON,
				"["+alertOf(map[string]string{"alertname": fmt.Sprint(n), "instance": strings.Repeat("x", 10_000)}, 70*365*24*time.Hour)+"]").Status
		}
		if status != http.StatusTooManyRequests || n < 20 || n > 150 {
			t.Errorf("status %d after %d groups", status, n)
		}
		if got := g.PostForm("/notify/other", "body=x&type=failure"); got.Status != http.StatusOK {
			t.Errorf("another key: %d %s", got.Status, got.Body)
		}
		if got := g.Post("/notify/other/prometheus/api/v2/alerts", gatewaytest.TypeJSON,
			"["+alert("a", time.Hour)+"]"); got.Status != http.StatusOK {
			t.Errorf("alerts of another key: %d %s", got.Status, got.Body)
		}
	})
}

// slow is a store whose changes take a while, so that time passes between a read and the change
// that follows.
type slow struct{ queue.Store }

func (s slow) Update(ctx context.Context, u *queue.Update) error {
	time.Sleep(time.Millisecond)
	return s.Store.Update(ctx, u)
}

func (s slow) Accept(ctx context.Context, maxSize int64, entries ...*queue.Entry) error {
	time.Sleep(time.Millisecond)
	return s.Store.Accept(ctx, maxSize, entries...)
}

// TestRulerRestarts checks that what was due while no gateway ran is told at once by the next
// one, and that no line of the log calls that a failure. No beat is expected, so that nothing
// else notes that the gateway runs.
func TestRulerRestarts(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		core, logs := observer.New(zap.WarnLevel)
		o := gatewaytest.Queued(dir, key(p))
		o.Global.Ruler = &site.Ruler{Times: rules.GroupTimes{Wait: time.Second, Interval: time.Second}}
		o.Log, o.Wrap = zap.New(core), func(s queue.Store) queue.Store { return slow{s} }
		for i, name := range []string{"Disk", "Load", "Network"} {
			g := gatewaytest.New(t, o)
			post(t, g, alertOf(map[string]string{"alertname": name, "instance": "a"}, time.Hour))
			g.Stop()
			time.Sleep(1100 * time.Millisecond)
			g = gatewaytest.New(t, o)
			wait(time.Second / 10)
			if told := p.Told(); len(told) != i+1 || !strings.Contains(told[i], name) {
				t.Errorf("%s: told %q", name, told)
			}
			g.Stop()
		}
		for _, line := range logs.All() {
			t.Errorf("%s: %s %v", line.Level, line.Message, line.ContextMap())
		}
	})
}

// TestRulerAccess checks who may post and read, and what is refused.
func TestRulerAccess(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		const token, reader = "0123456789abcdef", "fedcba9876543210"
		closed, other, plain, unqueued := key(p), key(p), key(p), key(p)
		closed.Tokens, closed.Readers = []string{token}, []string{reader}
		other.Name, other.Accept = "other", []string{"grafana"}
		plain.Name = "plain"
		unqueued.Name, unqueued.Unqueued = "unqueued", true
		g := newGateway(t, dir, closed, other, plain, unqueued)
		body := "[" + alert("a", time.Hour) + "]"
		do := func(method, path, secret, body string, status int) string {
			t.Helper()
			r := gatewaytest.NewRequest(method, "/notify/"+path, body, "Content-Type", gatewaytest.TypeJSON)
			if secret != "" {
				r.Header.Set("Authorization", "Bearer "+secret)
			}
			got := g.Do(r)
			if got.Status != status {
				t.Errorf("%s %s: status %d, want %d: %s", method, path, got.Status, status, got.Body)
			}
			return got.Body
		}
		const post, get = http.MethodPost, http.MethodGet
		do(post, "k/prometheus/api/v2/alerts", "", body, http.StatusUnauthorized)
		do(post, "k/prometheus/api/v2/alerts", reader, body, http.StatusUnauthorized)
		do(post, "k/prometheus/api/v2/alerts", token, body, http.StatusOK)
		do(post, "none/prometheus/api/v2/alerts", "", body, http.StatusUnauthorized)
		do(post, "other/prometheus/api/v2/alerts", "", body, http.StatusForbidden)
		do(post, "unqueued/prometheus/api/v2/alerts", "", body, http.StatusForbidden)
		do(post, "plain/prometheus/api/v2/alerts", "", body, http.StatusOK)
		do(post, "plain/prometheus/api/v2/alerts", "", "[]", http.StatusOK)
		for _, bad := range []string{
			"", "{}", "x", `[{"labels": {}}]`, `[{"labels": {"a": ""}}]`, `[{"labels": {"a": 1}}]`,
			`[{"labels": {"a": "b"}, "endsAt": "soon"}]`, "[" + strings.Repeat(`{},`, 10_000) + "{}]",
		} {
			do(post, "plain/prometheus/api/v2/alerts", "", bad, http.StatusBadRequest)
		}
		do(http.MethodPut, "plain/prometheus/api/v2/alerts", "", body, http.StatusMethodNotAllowed)
		for _, path := range []string{"api/v2/status", "-/healthy", "-/ready"} {
			do(get, "k/prometheus/"+path, "", "", http.StatusUnauthorized)
			do(get, "k/prometheus/"+path, token, "", http.StatusOK)
			do(post, "plain/prometheus/"+path, "", "", http.StatusMethodNotAllowed)
		}
		for _, path := range []string{"k/prometheus", "k/prometheus/api/v2/silences", "k/Prometheus/api/v2/alerts"} {
			do(post, path, token, body, http.StatusNotFound)
		}
		do(get, "k/prometheus/api/v2/alerts", "", "", http.StatusUnauthorized)
		do(get, "k/prometheus/api/v2/alerts", token, "", http.StatusUnauthorized)
		do(get, "plain/prometheus/api/v2/alerts", "", "", http.StatusUnauthorized)
		got := do(get, "k/prometheus/api/v2/alerts", reader, "", http.StatusOK)
		want := `[{"annotations":{"summary":"full at ` +
			`a"},"endsAt":"2000-01-01T01:00:00Z","fingerprint":"%s","receivers":[{"name":"k"}],"startsAt":"2000-01-01T00:00:00Z",` +
			`"status":{"inhibitedBy":[],"mutedBy":[],"silencedBy":[],"state":"active"},"updatedAt":"2000-01-01T00:00:00Z","generatorURL":"http://` +
			`prometheus/graph","labels":{"alertname":"Disk","instance":"a","severity":"critical"}}]`
		if want = fmt.Sprintf(want, "7480436c2163908f"); strings.TrimSpace(got) != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	})
}

// TestRulerWithoutQueue checks that nothing is taken that could not be kept.
// TestRulerFullGroup checks that what rulers post cannot make a group arbitrarily large, and
// that alerts that fit go on: they are told, and they resolve.
func TestRulerFullGroup(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, key(p))
		long := func(i int) string {
			return alertOf(map[string]string{"alertname": "Disk", "instance": fmt.Sprint(i), "cause": strings.Repeat("x", 500_000)}, 30*time.Minute)
		}
		const fit = rules.MaxGroup / 500_000
		for i := range fit + 4 {
			got := g.Post(alertsAddress, gatewaytest.TypeJSON, "["+long(i)+"]")
			if want := map[bool]int{true: http.StatusOK, false: http.StatusRequestEntityTooLarge}[i < fit]; got.Status != want || i >= fit &&
				!strings.Contains(got.Body, "group_by") {
				t.Errorf("alert %d: status %d, want %d: %.300s", i, got.Status, want, got.Body)
			}
		}
		synctest.Wait()
		open, err := g.Rooms().Rulers.Open(t.Context(), site.Place{Key: "k"})
		if err != nil || len(open) != fit {
			t.Errorf("%d alerts are open, %v; want %d", len(open), err, fit)
		}
		wait(time.Minute)
		if n := p.Count(); n != 1 {
			t.Errorf("%d messages, want 1", n)
		}
	})
}

func TestRulerWithoutQueue(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	g := gatewaytest.New(t, gatewaytest.Options{Global: site.Options{Keys: []site.KeyOptions{key(p)}}})
	if got := g.Post(alertsAddress, gatewaytest.TypeJSON, "["+alert("a", time.Hour)+"]"); got.Status != http.StatusForbidden ||
		!strings.Contains(got.Body, "kept in the queue") {
		t.Errorf("status %d: %s", got.Status, got.Body)
	}
}
