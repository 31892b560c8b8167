package heartbeat_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// runKey returns the key k with one URL, which expects the beat nightly at 03:15, with a grace
// of two hours. A run may take an hour.
func runKey(t *testing.T, p *gatewaytest.Pager) site.KeyOptions {
	k := gatewaytest.Key("k", p.NotifyURL()+"?tz=UTC")
	k.Expects = []site.BeatOptions{byCalendar(t, "nightly", "15 3 * * *", 2*time.Hour, time.Hour)}
	return k
}

// TestBeatByCalendar checks that a beat that is due by a calendar is told when it is missed,
// and that a time without a gateway when it is due counts as a beat.
func TestBeatByCalendar(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, runKey(t, p))
		gatewaytest.Until(t, "2000-01-01 04:00:00")
		got := beat(t, g, http.MethodGet, "/notify/k?beat=nightly&state=end&exit=0", "", http.StatusOK)
		if !strings.Contains(got.Body, "Beat nightly has come. The next one is due by 2000-01-02 03:15 UTC.") {
			t.Errorf("the answer is %s", got.Body)
		}
		gatewaytest.Until(t, "2000-01-02 03:00:00")
		g.Stop()
		gatewaytest.Until(t, "2000-01-02 06:00:00")
		g = newGateway(t, dir, runKey(t, p))
		gatewaytest.Until(t, "2000-01-03 05:14:50")
		p.WantTold(t)
		gatewaytest.Until(t, "2000-01-04 12:00:00")
		late := "failure: nightly is late | The last beat came at 2000-01-01 04:00 UTC. One was due at 2000-01-03 03:15 UTC, with a grace of 2h."
		p.WantTold(t, late)
		beat(t, g, http.MethodGet, "/notify/k?beat=nightly", "", http.StatusOK)
		time.Sleep(time.Second)
		p.WantTold(t, late, "success: nightly is back | The beat has come. It was late since 2000-01-03 05:15 UTC.")
	})
}

// TestRun checks that a run that does not end is told once, also over a restart, that a start is
// no beat, and that the end is told with how long it took.
func TestRun(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, runKey(t, p))
		gatewaytest.Until(t, "2000-01-01 03:15:00")
		got := beat(t, g, http.MethodGet, "/notify/k?beat=nightly&state=start", "", http.StatusOK)
		if !strings.Contains(got.Body, "Beat nightly has started. It has to end by 2000-01-01 04:15 UTC.") {
			t.Errorf("the answer is %s", got.Body)
		}
		gatewaytest.Until(t, "2000-01-01 03:35:00")
		g.Stop()
		g = newGateway(t, dir, runKey(t, p))
		gatewaytest.Until(t, "2000-01-01 04:14:50")
		p.WantTold(t)
		gatewaytest.Until(t, "2000-01-01 05:14:50")
		long := "failure: nightly has not ended after 1h | nightly started at 2000-01-01 03:15 UTC and has not ended after 1h."
		p.WantTold(t, long)
		gatewaytest.Until(t, "2000-01-01 05:15:10")
		late := "failure: nightly is late | No beat has come yet. A run started at 2000-01-01 03:15 UTC and has not ended. One was due at " +
			"2000-01-01 03:15 UTC, with a grace of 2h."
		p.WantTold(t, long, late)
		gatewaytest.Until(t, "2000-01-01 06:20:00")
		got = beat(t, g, http.MethodGet, "/notify/k?beat=nightly", "", http.StatusOK)
		if !strings.Contains(got.Body, "Beat nightly has come after a run of 3h5m. The next one is due by 2000-01-02 03:15 UTC.") {
			t.Errorf("the answer is %s", got.Body)
		}
		time.Sleep(time.Second)
		back := "success: nightly is back | The beat has come after a run of 3h5m. It was late since 2000-01-01 05:15 UTC."
		p.WantTold(t, long, late, back)

		// A second start begins the time anew.
		gatewaytest.Until(t, "2000-01-02 03:15:00")
		beat(t, g, http.MethodGet, "/notify/k?beat=nightly&state=start", "", http.StatusOK)
		gatewaytest.Until(t, "2000-01-02 03:45:00")
		beat(t, g, http.MethodPost, "/notify/k?beat=nightly&state=start", "", http.StatusOK)
		gatewaytest.Until(t, "2000-01-02 04:44:50")
		p.WantTold(t, long, late, back)
		gatewaytest.Until(t, "2000-01-02 04:50:00")
		second := "failure: nightly has not ended after 1h | nightly started at 2000-01-02 03:45 UTC and has not ended after 1h."
		p.WantTold(t, long, late, back, second)
		beat(t, g, http.MethodGet, "/notify/k?beat=nightly&state=end", "", http.StatusOK)
		time.Sleep(time.Second)
		p.WantTold(t, long, late, back, second,
			"success: nightly is back | The beat has come after a run of 1h5m. It had not ended by 2000-01-02 04:45 UTC.")
	})
}

// TestExitCode checks that an exit code other than 0 is a failure that says it, with how long
// the run took, and that 0 is none.
func TestExitCode(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, runKey(t, p))
		var want []string
		tell := func(texts ...string) {
			t.Helper()
			time.Sleep(time.Second)
			want = append(want, texts...)
			p.WantTold(t, want...)
		}
		beat(t, g, http.MethodGet, "/notify/k?beat=nightly&exit=0", "", http.StatusOK)
		tell()
		if got := beat(t, g, http.MethodGet, "/notify/k?beat=nightly&exit=3", "", http.StatusOK).
			Body; !strings.Contains(got, "Beat nightly has come, and has failed with the exit code 3. The next one") {
			t.Errorf("the answer is %s", got)
		}
		tell("failure: nightly has failed, exit 3 | The beat came with the exit code 3.")
		beat(t, g, http.MethodGet, "/notify/k?beat=nightly&state=start", "", http.StatusOK)
		time.Sleep(12 * time.Minute)
		if got := g.Post("/notify/k?beat=nightly&state=end&exit=-1", "text/plain", "no space left"); got.Status != http.StatusOK ||
			!strings.Contains(got.Body, "has come after a run of 12m, and has failed with the exit code -1.") {
			t.Errorf("status %d: %s", got.Status, got.Body)
		}
		tell("failure: nightly has failed after 12m, exit -1 | no space left")
		beat(t, g, http.MethodGet, "/notify/k?beat=nightly&state=start", "", http.StatusOK)
		time.Sleep(42 * time.Second)
		if got := g.Post("/notify/k?beat=nightly&type=failure&exit=0", gatewaytest.TypeJSON,
			`{"title": "backup", "body": "disk full"}`); got.Status != http.StatusOK {
			t.Errorf("status %d: %s", got.Status, got.Body)
		}
		tell("failure: backup: failed after 42s | disk full")
		beat(t, g, http.MethodGet, "/notify/k?beat=nightly&exit=0", "", http.StatusOK)
		tell("success: nightly is back | The beat has come. It failed at " + time.Now().Add(-time.Second).Format("2006-01-02 15:04") + " UTC.")
	})
}

// TestRunRefused checks which starts, ends and exit codes are refused, and that a refused one
// changes nothing.
func TestRunRefused(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, runKey(t, p))
		for query, want := range map[string]string{
			"state=begin":              "state: it must be start or end",
			"state=":                   "state: it must be start or end",
			"exit=":                    "exit: it must be the exit code of the job, an integer such as 0 or 3",
			"exit=one":                 "exit: it must be the exit code",
			"exit=1.5":                 "exit: it must be the exit code",
			"exit=99999999999":         "exit: it must be the exit code",
			"state=start&exit=0":       "a start cannot fail and has no exit code",
			"state=start&type=failure": "a start cannot fail and has no exit code",
		} {
			if got := beat(t, g, http.MethodGet, "/notify/k?beat=nightly&"+query, "", http.StatusBadRequest); !strings.Contains(got.Body, want) {
				t.Errorf("%s: %s, want %s", query, got.Body, want)
			}
		}
		beats, err := g.Rooms().Beats.AllBeats(t.Context())
		if err != nil || len(beats) != 1 || !beats[0].Beat.Last.IsZero() || !beats[0].Beat.Started.IsZero() {
			t.Errorf("%+v, %v", beats, err)
		}
		p.WantTold(t)
	})
}

// TestRunShown checks that the admin API and the page of the key show the schedule, a run, how
// long the last one took and its exit code.
func TestRunShown(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newConsole(t, &outbox.Settings{Path: dir}, runKey(t, p))
		shown := func(admin string, page ...string) {
			t.Helper()
			beats, err := g.Rooms().Beats.AllBeats(t.Context())
			if err != nil || len(beats) != 1 {
				t.Fatalf("%v, %v", beats, err)
			}
			if b, err := json.Marshal(beats[0].Admin(time.Now())); err != nil || string(b) != admin {
				t.Errorf("%s, %v, want %s", b, err, admin)
			}
			for _, path := range []string{"/notify/console/keys/k", "/notify/console"} {
				if body := g.Get(path).Body; !strings.Contains(body, page[0]) {
					t.Errorf("%s lacks %s: %s", path, page[0], body)
				}
				page = page[len(page)-1:]
			}
		}
		gatewaytest.Until(t, "2000-01-01 03:15:00")
		beat(t, g, http.MethodGet, "/notify/k?beat=nightly&state=start", "", http.StatusOK)
		shown(`{"key":"k","scope":"global","name":"nightly","cron":"15 3 * * *","zone":"UTC","grace":"2h","max_run":"1h","state":"in_grace",`+
			`"due":"2000-01-01T03:15:00Z","late":"2000-01-01T05:15:00Z","started":"2000-01-01T03:15:00Z","run_ends":"2000-01-01T04:15:00Z",`+
			`"runs":[{"at":"2000-01-01T03:15:00Z","outcome":"running"}]}`,
			"cron 15 3 * * * UTC, grace 2h · no run has come yet · runs <time", "keys/k")
		gatewaytest.Until(t, "2000-01-01 04:16:00")
		shown(`{"key":"k","scope":"global","name":"nightly","cron":"15 3 * * `+
			`*","zone":"UTC","grace":"2h","max_run":"1h","state":"too_long","since":"2000-01-01T04:15:00Z",`+
			`"due":"2000-01-01T03:15:00Z","late":"2000-01-01T05:15:00Z","started":"2000-01-01T03:15:00Z","run_ends":"2000-01-01T04:15:00Z",`+
			`"runs":[{"at":"2000-01-01T03:15:00Z","outcome":"too_long","ran":"1h1m"}]}`,
			"Not ended <time", "The beat nightly takes too long, <time")
		beat(t, g, http.MethodGet, "/notify/k?beat=nightly&exit=3", "", http.StatusOK)
		shown(`{"key":"k","scope":"global","name":"nightly","cron":"15 3 * * `+
			`*","zone":"UTC","grace":"2h","max_run":"1h","state":"failed","since":"2000-01-01T04:16:00Z",`+
			`"last":"2000-01-01T04:16:00Z","ran":"1h1m","exit":3,"due":"2000-01-02T03:15:00Z","late":"2000-01-02T05:15:00Z",`+
			`"runs":[{"at":"2000-01-01T04:16:00Z","outcome":"failed","ran":"1h1m","exit":3}]}`,
			"</time>, took 1h1m, exit code 3 · next <time", "The beat nightly has failed, <time")
	})
}
