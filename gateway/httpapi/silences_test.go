package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/silence"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestSilenceRefused checks the errors of requests for silences.
func TestSilenceRefused(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	dir := t.TempDir()
	off := gatewaytest.Key("off", p.NotifyURL())
	off.Unqueued = true
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, gatewaytest.Options{
			Global: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("k", p.NotifyURL()+"?tz=UTC oncall"), off}},
			Site:   site.Options{Managers: gatewaytest.Everybody()},
			Queue:  &outbox.Settings{Path: dir},
		})
		for _, tt := range []struct {
			target, form string
			status       int
			want         string
		}{
			{"/notify/k/silences", "for=2h", 400, "match nothing"},
			{"/notify/k/silences", "title=x", 400, "needs an end"},
			{"/notify/k/silences", "title=x&for=2h&until=2000-01-01T03:00:00Z", 400, "not both"},
			{"/notify/k/silences", "title=x&for=-2h", 400, "duration above 0"},
			{"/notify/k/silences", "title=disk.*&for=2h", 400, "a regular expression does not work here"},
			{"/notify/k/silences", "tag=on*&for=2h", 400, "write one whole tag of URLs"},
			{"/notify/k/silences", "title=x&until=resolved", 400, "name the incident"},
			{"/notify/k/silences", "title=x&until=25:00", 400, "with a date and a zone"},
			{"/notify/k/silences", "title=x&until=tomorrow", 400, "with a date and a zone"},
			{"/notify/k/silences", "title=x&until=1999-12-31T00:00:00Z", 400, "past"},
			{"/notify/k/silences", "title=x&for=31d", 400, "30 days"},
			{"/notify/k/silences", "title=x&for=2h&from=tomorrow", 400, "from: it must be a time with a date and a zone"},
			{"/notify/k/silences", "title=x&for=2h&from=2001-01-03T00:00:00Z", 400, "in more than a year"},
			{"/notify/k/silences", "title=x&from=2000-01-03T00:00:00Z&until=2000-01-02T00:00:00Z", 400, "before it begins"},
			{"/notify/k/silences", "title=x&from=1999-12-31T00:00:00Z&for=2h", 400, "past"},
			{"/notify/k/silences", "title=x&from=2000-01-03T00:00:00Z&until=2000-02-03T00:00:00Z", 400, "30 days"},
			{"/notify/k/silences", "title=x&from=2000-01-03T00:00:00Z", 400, "needs an end"},
			{"/notify/k/silences", "title=x&for=2h&tell=maybe", 400, "tell must be true or false"},
			{"/notify/k/silences", "tag=oncal&for=2h", 400, "no destination of the key k has the tag oncal; you may mean oncall"},
			{"/notify/k/silences", "title=x&for=2h&form=2000-01-02T00:00:00Z", 400, "with the fields from, for or until"},
			{"/notify/k/silences", "tag=2:oncall&for=2h", 400, "one tag of URLs"},
			{"/notify/off/silences", "title=x&for=2h", 403, "queue off"},
			{"/notify/none/silences", "title=x&for=2h", 404, "no such key"},
		} {
			if resp := g.PostForm(tt.target, tt.form); resp.Status != tt.status || !strings.Contains(resp.Body, tt.want) {
				t.Errorf("%s: status %d, %s", tt.form, resp.Status, resp.Body)
			}
		}
		if resp := g.Post("/notify/k/silences", gatewaytest.TypeJSON, `{"for": 2}`); resp.Status != 400 ||
			!strings.Contains(resp.Body, "one JSON object") {
			t.Errorf("status %d, %s", resp.Status, resp.Body)
		}
		if resp := g.Post("/notify/k/silences", gatewaytest.TypeJSON, `{"for": "2h", "tag": "all", "tell": "yes"}`); resp.Status != 400 ||
			!strings.Contains(resp.Body, "tell, which is true or false") {
			t.Errorf("status %d, %s", resp.Status, resp.Body)
		}
		if resp := g.Post("/notify/k/silences", "text/plain", "x"); resp.Status != 415 {
			t.Errorf("status %d, %s", resp.Status, resp.Body)
		}
		if resp := g.PostForm("/notify/k/silences", "title=x&for=2h", "Sec-Fetch-Site", "cross-site"); resp.Status != 403 {
			t.Errorf("another site's page: status %d", resp.Status)
		}
		for range 200 {
			g.AddSilence("k", "title=x&for=2h")
		}
		if resp := g.PostForm("/notify/k/silences", "title=x&for=2h"); resp.Status != 409 || !strings.Contains(resp.Body, "200 silences") {
			t.Errorf("status %d, %s", resp.Status, resp.Body)
		}
	})
	keys := []site.KeyOptions{gatewaytest.Key("k", "json://localhost")}
	without := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: keys, Managers: gatewaytest.Everybody()}})
	if resp := without.PostForm("/notify/k/silences", "title=x&for=2h"); resp.Status != 403 ||
		!strings.Contains(resp.Body, "add queue to the global option") {
		t.Errorf("status %d, %s", resp.Status, resp.Body)
	}
	nobody := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: keys}})
	if resp := nobody.PostForm("/notify/k/silences", "title=x&for=2h"); resp.Status != 403 || !strings.Contains(resp.Body, "add console") {
		t.Errorf("status %d, %s", resp.Status, resp.Body)
	}
}

// TestPlannedSilenceJSON checks the JSON of a planned silence, and of one that would begin in the
// past.
func TestPlannedSilenceJSON(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := gatewaytest.New(t, gatewaytest.Options{
			Site:  site.Options{Keys: []site.KeyOptions{gatewaytest.Key("k", p.NotifyURL())}, Managers: gatewaytest.Everybody()},
			Queue: &outbox.Settings{Path: dir},
		})
		resp := g.Post("/notify/k/silences", gatewaytest.TypeJSON,
			`{"from": "2000-01-02T03:00:00+01:00", "for": "2h", "tag": "all", "tell": true}`)
		const planned = `"key":"k","state":"planned","made":"2000-01-01T00:00:00Z","from":"2000-01-02T02:00:00Z",` +
			`"until":"2000-01-02T04:00:00Z","tag":"all","tell":true,"messages":0}`
		if resp.Status != http.StatusCreated || !strings.HasSuffix(strings.TrimSpace(resp.Body), planned) {
			t.Errorf("status %d, %s", resp.Status, resp.Body)
		}
		if got := g.Get(resp.Header.Get("Location")); got.Status != http.StatusOK || got.Body != resp.Body {
			t.Errorf("status %d, %s", got.Status, got.Body)
		}
		resp = g.Post("/notify/k/silences", gatewaytest.TypeJSON, `{"from": "1999-12-31T23:00:00Z", "for": "2h", "title": "x"}`)
		if !strings.Contains(resp.Body,
			`"state":"active","made":"2000-01-01T00:00:00Z","from":"2000-01-01T00:00:00Z","until":"2000-01-01T01:00:00Z"`) {
			t.Errorf("status %d, %s", resp.Status, resp.Body)
		}
	})
}

// TestSilenceExtended checks that a silence can be made longer, by a duration and until a time, and
// that what it holds waits until then.
func TestSilenceExtended(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		ops := gatewaytest.Key("k", p.NotifyURL())
		ops.Rules = &rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}
		g := gatewaytest.New(t, gatewaytest.Options{
			Site:  site.Options{Keys: []site.KeyOptions{ops}, Managers: gatewaytest.Everybody()},
			Queue: &outbox.Settings{Path: dir},
		})
		resp := g.PostForm("/notify/k/silences", "title=*disk&for=1h")
		at := resp.Header.Get("Location")
		g.PostForm("/notify/k", "title=A+disk+is+full&body=x&type=failure&incident=db1")
		for _, tt := range []struct {
			form   string
			status int
			want   string
		}{
			{"for=30m", 200, `"until":"2000-01-01T01:30:00Z"`},
			{"until=2000-01-01T02:00:00Z", 200, `"until":"2000-01-01T02:00:00Z"`},
			{"until=2000-01-01T01:00:00Z", 400, "write a later time"},
			{"for=31d", 400, "more than 30 days"},
			{"until=resolved", 400, "a silence is made longer by for"},
			{"for=1h&title=x", 400, "and nothing else"},
			{"for=1h&until=08:00", 400, "a silence is made longer by for"},
			{"for=-1h", 400, "a silence is made longer by for"},
			{"", 400, "a silence is made longer by for"},
		} {
			if r := g.PostForm(at, tt.form); r.Status != tt.status || !strings.Contains(r.Body, tt.want) {
				t.Errorf("%s: %d %s", tt.form, r.Status, r.Body)
			}
		}
		time.Sleep(119 * time.Minute)
		synctest.Wait()
		if p.Count() != 0 {
			t.Error("the first end of the silence counts")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if p.Count() != 1 {
			t.Errorf("%d messages came at the end", p.Count())
		}
		if r := g.PostForm(at, "for=1h"); r.Status != http.StatusNotFound {
			t.Errorf("a silence that has ended: %d", r.Status)
		}
	})
}

// TestSilenceUntilResolved checks that a silence of an incident ends with it, whether a message or a
// person resolves it, and that its next opening is told.
func TestSilenceUntilResolved(t *testing.T) {
	for name, tt := range map[string]struct {
		rules   *rules.Rules
		resolve func(g *gatewaytest.Gateway)
	}{
		"a message": {nil, func(g *gatewaytest.Gateway) { g.PostForm("/notify/k", "title=OK&body=x&type=success&incident=db1") }},
		"a message, with a rule": {
			&rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}},
			func(g *gatewaytest.Gateway) { g.PostForm("/notify/k", "title=OK&body=x&type=success&incident=db1") },
		},
		"a person": {&rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}, func(g *gatewaytest.Gateway) {
			g.PostForm("/notify/incidents/"+g.ListIncidents("k")[0].ID, "do=resolve")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
				k := gatewaytest.Key("k", p.NotifyURL())
				k.Rules = tt.rules
				g := gatewaytest.New(t, gatewaytest.Options{
					Global: site.Options{Keys: []site.KeyOptions{k}},
					Site:   site.Options{Managers: gatewaytest.Everybody()},
					Queue:  &outbox.Settings{Path: dir},
				})
				g.PostForm("/notify/k", "title=Disk&body=x&type=warning&incident=db1")
				if r := g.PostForm("/notify/k/silences", "until=resolved&incident=db1"); r.Status != http.StatusCreated ||
					!strings.Contains(r.Body, `"until_resolved":true`) {
					t.Fatalf("%d %s", r.Status, r.Body)
				}
				g.PostForm("/notify/k", "title=Disk&body=x&type=failure&incident=db1")
				g.PostForm("/notify/k", "title=OK&body=x&type=success&incident=db2")
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if n := len(g.ListSilences("k")); n != 1 || p.Count() != 2 {
					t.Fatalf("after the resolution of another: %d silences, %d messages", n, p.Count())
				}
				tt.resolve(g)
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if n := len(g.ListSilences("k")); n != 0 || p.Count() != 3 {
					t.Errorf("after the resolution: %d silences, %d messages", n, p.Count())
				}
				g.PostForm("/notify/k", "title=Disk&body=x&type=failure&incident=db1")
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if p.Count() != 4 {
					t.Errorf("after the next opening: %d messages", p.Count())
				}
			})
		})
	}
}

// TestSilenceUntilClock checks that a time of the day is the next one in the zone of the server.
func TestSilenceUntilClock(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 3, 28, 22, 30, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"08:00": time.Date(2026, 3, 29, 8, 0, 0, 0, time.Local),
		"23:15": time.Date(2026, 3, 28, 23, 15, 0, 0, time.Local),
		"22:30": time.Date(2026, 3, 29, 22, 30, 0, 0, time.Local),
	} {
		if got, err := silence.ReadEnd(text, from); err != nil || !got.Equal(want) {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}

// TestSilenceOnFullDisk checks the answer to a request for a silence when the disk of the
// queue is full.
func TestSilenceOnFullDisk(t *testing.T) {
	t.Parallel()
	e, ok := api.ErrorOf(httpapi.Answer(&queue.UnavailableError{Err: queue.ErrDiskFull}))
	if !ok || e.Status != http.StatusServiceUnavailable || e.RetryAfter <= 0 || !strings.Contains(e.Error(), "disk is full") ||
		e.Fault == nil {
		t.Errorf("%+v", e)
	}
}
