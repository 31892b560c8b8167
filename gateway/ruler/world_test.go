package ruler_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// world is a ruler, and what its gateway has told. The gateway is restarted now and then, and loses
// what it has only in memory.
type world struct {
	t      *testing.T
	random *rand.Rand
	p      *gatewaytest.Pager
	g      *gatewaytest.Gateway // nil while none runs
	dir    string

	lasts time.Duration // until an alert ends that is not posted again
	often bool          // the ruler posts every ten seconds, not every minute

	fires    map[string]bool      // what the ruler sees
	resolved map[string]time.Time // since when, for the alerts that it repeats as resolved
	posted   map[string]bool      // what the gateway knows to fire
	told     []string             // what fires, by message
	last     string               // the last of told, unless it is forgotten
}

// resolvedRetention is how long Prometheus repeats that an alert is resolved.
const resolvedRetention = 15 * time.Minute

// post posts what the ruler sees, in one batch or in several.
func (w *world) post() {
	if w.g == nil {
		return
	}
	var alerts []string
	for _, name := range slices.Sorted(maps.Keys(w.fires)) {
		alerts = append(alerts, alert(name, w.lasts))
	}
	for _, name := range slices.Sorted(maps.Keys(w.resolved)) {
		alerts = append(alerts, alert(name, 0))
	}
	w.random.Shuffle(len(alerts), func(i, j int) { alerts[i], alerts[j] = alerts[j], alerts[i] })
	for batch := range slices.Chunk(alerts, 1+w.random.IntN(3)) {
		post(w.t, w.g, batch...)
	}
	w.posted = maps.Clone(w.fires)
}

// step lets ten seconds pass, and checks what is told meanwhile.
func (w *world) step() {
	time.Sleep(10 * time.Second)
	synctest.Wait()
	all := w.p.Told()
	for _, text := range all[len(w.told):] {
		var firing []string
		for line := range strings.Lines(text) {
			if _, name, ok := strings.Cut(strings.TrimSpace(line), "Firing: full at "); ok {
				firing = append(firing, name)
			}
		}
		slices.Sort(firing)
		got, want := fmt.Sprint(firing), fmt.Sprint(slices.Sorted(maps.Keys(w.posted)))
		if len(w.posted) == 0 {
			want = "[]"
		}
		if got != want || got == w.last {
			w.t.Fatalf("told %s after %s, want %s:\n%s", got, w.last, want, text)
		}
		w.told, w.last = append(w.told, got), got
	}
}

// start starts a gateway with times at which nothing is due while the ruler posts.
func (w *world) start() *gatewaytest.Gateway {
	w.t.Helper()
	ruler, err := site.NewRuler(site.Ruler{Times: rules.GroupTimes{Wait: 35 * time.Second, Interval: 5*time.Minute + 5*time.Second}})
	if err != nil {
		w.t.Fatal(err)
	}
	return gatewaytest.New(w.t, gatewaytest.Options{
		Global: site.Options{Keys: []site.KeyOptions{key(w.p)}, Ruler: ruler},
		Queue:  &outbox.Settings{Path: w.dir},
	})
}

// restart starts a gateway, which tells what was due meanwhile before the ruler posts again.
func (w *world) restart() {
	w.t.Helper()
	w.g = w.start()
	w.step()
}

// silence lets more than a day pass in which the ruler posts nothing. What ends in years is
// forgotten then, and nobody is told.
func (w *world) silence() {
	w.t.Helper()
	for range 60 {
		w.step()
	}
	time.Sleep(25 * time.Hour)
	synctest.Wait()
	if n := w.p.Count(); n != len(w.told) {
		w.t.Fatalf("told %q", w.p.Told()[len(w.told):])
	}
	if any, err := w.g.Rooms().Rulers.Any(w.t.Context()); any || err != nil {
		w.t.Fatalf("a group is left: %v", err)
	}
	clear(w.fires)
	clear(w.resolved)
	w.posted, w.last = nil, "[]"
}

// minute lets a minute pass, in which the ruler posts.
func (w *world) minute() {
	w.post()
	for range 6 {
		if w.step(); w.often {
			w.post()
		}
	}
}

func (w *world) run() {
	w.g = w.start()
	names := []string{"a", "b", "c"}
	for minute := range 300 {
		for _, name := range names {
			switch n := w.random.IntN(30); {
			case n == 0 && !w.fires[name]:
				w.fires[name] = true
				delete(w.resolved, name)
			case n <= 1 && w.fires[name]:
				delete(w.fires, name)
				w.resolved[name] = time.Now()
			}
			if at, ok := w.resolved[name]; ok && time.Since(at) > resolvedRetention {
				delete(w.resolved, name)
			}
		}
		switch n := w.random.IntN(25); {
		case w.g == nil && n < 12:
			w.restart()
		case w.g != nil && n == 0:
			w.g.Stop()
			w.g = nil
		case w.g != nil && n == 1: // at once
			w.g.Stop()
			w.restart()
		case w.g != nil && n == 2: // after a gap of any length
			w.g.Stop()
			time.Sleep(time.Duration(w.random.IntN(60)) * time.Second)
			w.restart()
		case w.g != nil && w.lasts > 24*time.Hour && minute == 150:
			w.silence()
		}
		w.minute()
	}
	if w.g == nil {
		w.restart()
	}
	for range 30 {
		w.minute()
	}
	if n := len(w.told); n < 5 || w.told[n-1] != fmt.Sprint(slices.Sorted(maps.Keys(w.fires))) && len(w.fires) > 0 {
		w.t.Errorf("told %q, and %v fire", w.told, w.fires)
	}
}

// TestRulerWorlds checks in random worlds that each message tells what fires and is news, and that
// the last one tells the present state. No restart or absence of the gateway, short or long, makes
// it tell that a firing alert is over. An alert that ends in years and is not posted for a day is
// forgotten without a word.
func TestRulerWorlds(t *testing.T) {
	t.Parallel()
	for seed := range racetest.Amount(60, 4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			p, dir := gatewaytest.NewPager(t, http.StatusOK), t.TempDir()
			gatewaytest.InBubble(t, func(t *testing.T) {
				w := &world{
					t: t, random: rand.New(rand.NewPCG(uint64(seed), 7)), p: p, dir: dir, fires: map[string]bool{},
					resolved: map[string]time.Time{}, last: "[]", lasts: 4 * time.Minute,
				}
				switch seed % 10 {
				case 1:
					w.lasts, w.often = 40*time.Second, true
				case 2:
					w.lasts = 70 * 365 * 24 * time.Hour
				}
				w.run()
			})
		})
	}
}
