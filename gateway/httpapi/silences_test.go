package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
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
