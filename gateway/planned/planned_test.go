package planned_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/planned"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/storagetest"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// options returns the options of a gateway whose queue is in a folder.
func options(dir string, keys ...site.KeyOptions) gatewaytest.Options {
	return gatewaytest.Options{
		Global: site.Options{Keys: keys}, Site: site.Options{Stateless: new(true)},
		Queue: &outbox.Settings{Path: dir, Secret: "a secret of the tests"},
	}
}

// inBubble runs f in a bubble with a pager and a folder.
func inBubble(t *testing.T, f func(t *testing.T, p *gatewaytest.Pager, dir string)) {
	t.Parallel()
	p, dir := gatewaytest.NewPager(t, http.StatusOK), t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) { f(t, p, dir) })
}

// wait lets time pass, and then lets the gateway do what is due.
func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// post posts a form to an address.
func post(g *gatewaytest.Gateway, path, form string, header ...string) gatewaytest.Reply {
	return g.PostForm(path, form, header...)
}

// plan plans a message for the key k, and returns its ID.
func plan(t *testing.T, g *gatewaytest.Gateway, form string) string {
	t.Helper()
	got := post(g, "/notify/k", form)
	a := got.JSON(t)
	if got.Status != http.StatusOK || a.ID == "" || got.Header.Get("Location") != "/notify/messages/"+a.ID {
		t.Fatalf("status %d, Location %q: %s", got.Status, got.Header.Get("Location"), got.Body)
	}
	return a.ID
}

// state describes a message: its state, and for each result the service, the status, the rule
// and until when that holds.
func state(t *testing.T, g *gatewaytest.Gateway, id string) string {
	t.Helper()
	got := g.Message(http.MethodGet, id, "application/json")
	var m struct {
		State   string `json:"state"`
		Results []struct {
			Service, Destination, Status, Rule string
			Until                              *time.Time
		} `json:"results"`
	}
	if err := json.Unmarshal([]byte(got.Body), &m); err != nil || got.Status != http.StatusOK {
		return fmt.Sprintf("%d %s", got.Status, got.Body)
	}
	out := []string{m.State + ":"}
	for _, r := range m.Results {
		text := r.Service + " " + r.Status
		if r.Service == "Key" {
			text = r.Service + " " + r.Destination + " " + r.Status
		}
		if r.Rule != "" {
			text += " " + r.Rule
		}
		if r.Until != nil {
			text += " until " + r.Until.UTC().Format("2006-01-02 15:04:05")
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func wantState(t *testing.T, g *gatewaytest.Gateway, id, want string) {
	t.Helper()
	if got := state(t, g, id); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestSendAt checks that a message is sent when it is due, and what its client sees of it.
func TestSendAt(t *testing.T) {
	inBubble(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", p.NotifyURL())))
		got := post(g, "/notify/k", "title=Later&body=tea&send_at=30m")
		want := `"results":[{"service":"Key","destination":"k","name":"Key ` +
			`k","tags":[],"status":"queued","attempts":0,"elapsed_ms":0,"error":null,"rule":"planned","until":"2000-01-01T00:30:00Z"`
		if a := got.JSON(t); got.Status != http.StatusOK || !strings.Contains(got.Body, want) || a.ID == "" {
			t.Fatalf("status %d: %s", got.Status, got.Body)
		}
		id := got.JSON(t).ID
		text := g.Message(http.MethodGet, id, "text/plain").Body
		if want := "Key k: queued, it is planned for 1 Jan 2000, 00:30:00 UTC"; !strings.Contains(text, want) {
			t.Errorf("the text is %s", text)
		}
		at := plan(t, g, "body=absolute&send_at="+url.QueryEscape("2000-01-01T03:00:00+02:00"))
		query := post(g, "/notify/k?send_at=90m", "body=query").JSON(t).ID
		wait(29*time.Minute + 50*time.Second)
		p.WantTold(t)
		wantState(t, g, id, "queued: Key k queued planned until 2000-01-01 00:30:00")
		wait(12 * time.Second)
		p.WantTold(t, "info: Later | tea")
		wantState(t, g, id, "delivered: JSON delivered")
		wantState(t, g, at, "queued: Key k queued planned until 2000-01-01 01:00:00")
		wait(2 * time.Hour)
		p.WantTold(t, "info: Later | tea", "info: absolute", "info: query")
		wantState(t, g, at, "delivered: JSON delivered")
		wantState(t, g, query, "delivered: JSON delivered")
	})
}

// TestSendAtRefused checks which times are refused, and where a message cannot wait. A time that
// has passed means now.
func TestSendAtRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		unqueued := gatewaytest.Key("unqueued", p.NotifyURL())
		unqueued.Unqueued = true
		g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", p.NotifyURL()), unqueued))
		for _, tt := range []struct {
			path, sendAt string
			status       int
			want         string
		}{
			{"/notify/k", "tomorrow", http.StatusBadRequest, "a time with a date and a zone"},
			{"/notify/k", "2000-01-02 10:00", http.StatusBadRequest, "a time with a date and a zone"},
			{"/notify/k", "31d", http.StatusBadRequest, "more than 30 days"},
			{"/notify/k", "2000-02-01T00:00:00Z", http.StatusBadRequest, "more than 30 days"},
			{"/notify/k", "30d", http.StatusOK, ""},
			{"/notify", "1h", http.StatusBadRequest, "needs a key"},
			{"/notify/unqueued", "1h", http.StatusBadRequest, "needs a queue"},
			{"/notify/k", "1999-12-31T23:59:59Z", http.StatusOK, "has passed"},
		} {
			form := url.Values{"body": {"x"}, "send_at": {tt.sendAt}}
			if tt.path == "/notify" {
				form.Set("urls", p.NotifyURL())
			}
			got := g.Do(gatewaytest.NewRequest(http.MethodPost, tt.path, form.Encode(), "Content-Type", "application/x-www-form-urlencoded",
				"Accept", "application/json"))
			if got.Status != tt.status || !strings.Contains(got.Body, tt.want) || tt.status == http.StatusBadRequest &&
				!strings.Contains(got.Body, `"field":"send_at"`) {
				t.Errorf("%s %s: status %d, want %d and %q: %s", tt.path, tt.sendAt, got.Status, tt.status, tt.want, got.Body)
			}
		}
		if got := g.Post("/notify/k/grafana?send_at=1h", gatewaytest.TypeJSON,
			`{"receiver":"x","status":"firing","alerts":[{"status":"firing","labels":{"alertname":"Disk"}}],"title":"Disk","message":"full",`+
				`"orgId":1}`); got.Status != http.StatusBadRequest || !strings.Contains(got.Body, "format of another program") {
			t.Errorf("grafana: status %d: %s", got.Status, got.Body)
		}
		if got := g.Post("/notify/k", gatewaytest.TypeJSON, `{"body": "x", "send_at": 5}`); got.Status != http.StatusBadRequest {
			t.Errorf("a number: status %d: %s", got.Status, got.Body)
		}
		if got := g.Post("/notify/k", gatewaytest.TypeJSON,
			`{"body": "x", "send_at": "1h", "ask": {"text": true}}`); got.Status != http.StatusBadRequest ||
			!strings.Contains(got.Body, "a question is asked now") {
			t.Errorf("a question: status %d: %s", got.Status, got.Body)
		}
		wait(time.Second)
		p.WantTold(t, "info: x")
	})
}

// TestSendAtWithoutQueue checks that a message is refused that nobody could keep.
func TestSendAtWithoutQueue(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	g := gatewaytest.New(t, gatewaytest.Options{Global: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("k", p.NotifyURL())}}})
	if got := post(g, "/notify/k", "body=x&send_at=1h"); got.Status != http.StatusBadRequest || !strings.Contains(got.Body, "needs a queue") {
		t.Errorf("status %d: %s", got.Status, got.Body)
	}
}

// TestCancelPlanned checks that a cancelled message is not sent, who may cancel, and that a message
// which is already sent is cancelled where it waits.
func TestCancelPlanned(t *testing.T) {
	inBubble(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		const token = "0123456789abcdef"
		k := gatewaytest.Key("k", p.NotifyURL())
		closed := gatewaytest.Key("closed", p.NotifyURL())
		closed.Tokens = []string{token}
		g := gatewaytest.New(t, options(dir, k, closed))
		id := plan(t, g, "body=x&send_at=1h")
		if got := g.Message(http.MethodDelete, id, "application/json"); got.Status != http.StatusOK {
			t.Errorf("status %d: %s", got.Status, got.Body)
		}
		wantState(t, g, id, "cancelled: Key k cancelled")
		other := post(g, "/notify/closed", "body=x&send_at=1h", "Authorization", "Bearer "+token).JSON(t).ID
		if got := g.Message(http.MethodDelete, other, "application/json"); got.Status != http.StatusUnauthorized &&
			got.Status != http.StatusForbidden {
			t.Errorf("without a token: status %d: %s", got.Status, got.Body)
		}
		r := gatewaytest.NewRequest(http.MethodDelete, "/notify/messages/"+other, "", "Authorization", "Bearer "+token)
		if got := g.Do(r); got.Status != http.StatusOK {
			t.Errorf("with a token: status %d: %s", got.Status, got.Body)
		}
		p.Answer(http.StatusServiceUnavailable)
		sent := plan(t, g, "body=y&send_at=2h")
		wait(3 * time.Hour)
		if got := state(t, g, sent); got != "queued: JSON queued" {
			t.Errorf("it fails: %s", got)
		}
		if got := g.Message(http.MethodDelete, sent, "application/json"); got.Status != http.StatusOK {
			t.Errorf("status %d: %s", got.Status, got.Body)
		}
		wantState(t, g, sent, "cancelled: JSON cancelled")
		p.Answer(http.StatusOK)
		before := p.Count()
		wait(48 * time.Hour)
		if n := p.Count(); n != before {
			t.Errorf("%d messages after they were cancelled", n-before)
		}
	})
}

// tagged returns a key with a destination for each pager, whose tags are a, b and so on.
func tagged(name string, pagers ...*gatewaytest.Pager) site.KeyOptions {
	k := gatewaytest.Key(name)
	for i, p := range pagers {
		k.URLs = append(k.URLs, site.URL{URL: p.NotifyURL(), Tags: []string{string(rune('a' + i))}})
	}
	return k
}

// TestPlannedLooksUp checks that the destinations, the rules and the silences of the time when
// a message is due count, with its tags and the values for variables.
func TestPlannedLooksUp(t *testing.T) {
	t.Parallel()
	before, after, dir := gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK), t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		k := tagged("k", before, before)
		k.Rules = &rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}
		o := options(dir, k)
		o.Site.Managers = gatewaytest.Everybody()
		g := gatewaytest.New(t, o)
		plan(t, g, "body=one&tag=a&send_at=1h")
		plan(t, g, "body=alert&type=failure&incident=disk&tag=b&send_at=2h")
		plan(t, g, "body=ok&type=success&incident=disk&tag=b&send_at=3h")
		silenced := plan(t, g, "body=silent&type=warning&tag=b&send_at=5h")
		plan(t, g, "body=twice&tag=b&send_at=9h")
		plan(t, g, "body=twice&tag=b&send_at=550m")
		if all := g.ListIncidents("k"); len(all) != 0 {
			t.Errorf("an incident is open before its message is due: %v", all[0])
		}
		g.Stop()
		o.Global.Keys[0].URLs = tagged("k", after, after).URLs
		g = gatewaytest.New(t, o)
		wait(2*time.Hour + time.Minute)
		after.WantTold(t, "info: one", "failure: alert")
		if all := g.ListIncidents("k"); len(all) != 1 || all[0].Name != "disk" {
			t.Errorf("incidents: %v", all)
		}
		wait(2 * time.Hour)
		g.AddSilence("k", "for=2h&tag=b")
		wait(90 * time.Minute)
		if got := state(t, g, silenced); !strings.Contains(got, "silenced") {
			t.Errorf("under a silence: %s", got)
		}
		wait(7 * time.Hour)
		told := strings.Join(after.Told(), "\n")
		if strings.Count(told, "twice") != 1 || !strings.Contains(told, "success: ok") {
			t.Errorf("told: %s", told)
		}
		before.WantTold(t)
	})
}

// TestPlannedGone checks that a message whose key or destinations are gone waits for them, is
// given up and told, and can be retried.
func TestPlannedGone(t *testing.T) {
	t.Parallel()
	p, other, dir := gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK), t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		k, fallback := tagged("k", p, p), gatewaytest.Key("fallback", other.NotifyURL())
		k.Fallback = "fallback"
		o := options(dir, k, fallback)
		start := func(urls ...site.URL) *gatewaytest.Gateway {
			o.Global.Keys[0].URLs = urls
			return gatewaytest.New(t, o)
		}
		both, one := tagged("k", p, p).URLs, tagged("k", p).URLs
		g := start(both...)
		late, dead := plan(t, g, "body=late&tag=a&send_at=1h"), plan(t, g, "body=dead&tag=b&send_at=10h")
		g.Stop()
		g = start(gatewaytest.URLs(p.NotifyURL())...)
		wait(time.Hour + 5*time.Minute)
		wantState(t, g, late, "queued: Key k queued")
		g.Stop()
		g = start(one...)
		wait(12 * time.Minute)
		p.WantTold(t, "info: late")
		wantState(t, g, late, "delivered: JSON delivered")
		wait(10 * time.Hour)
		if got := state(t, g, dead); got != "failed: Key k failed" {
			t.Errorf("given up: %s", got)
		}
		if told := strings.Join(other.Told(), "\n"); strings.Count(told, "A planned message for the key k was not sent") != 1 ||
			!strings.Contains(told, "has the requested tag") {
			t.Errorf("the fallback is told: %s", told)
		}
		g.Stop()
		g = start(both...)
		wait(time.Hour)
		p.WantTold(t, "info: late")
		retry(t, g, dead)
		wait(time.Minute)
		p.WantTold(t, "info: late", "info: dead")
		wantState(t, g, dead, "delivered: JSON delivered")
	})
}

// retry makes the deliveries of a message due, as the command and the console do.
func retry(t *testing.T, g *gatewaytest.Gateway, id string) {
	t.Helper()
	if _, err := g.Rooms().Outbox.Messages().Retry(t.Context(), uuid.MustParse(id)); err != nil {
		t.Error(err)
	}
}

// TestPlannedNow checks that a message that is planned can be sent now, once.
func TestPlannedNow(t *testing.T) {
	inBubble(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", p.NotifyURL())))
		id := plan(t, g, "body=x&send_at=1h")
		retry(t, g, id)
		wait(10 * time.Second)
		p.WantTold(t, "info: x")
		wantState(t, g, id, "delivered: JSON delivered")
		wait(2 * time.Hour)
		p.WantTold(t, "info: x")
	})
}

// TestPlannedKilled checks that a message is sent once, also if nothing runs when it is due,
// and if a gateway is killed before or after that.
func TestPlannedKilled(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{time.Minute, time.Hour + time.Second, time.Hour + 5*time.Second} {
		p, dirs := gatewaytest.NewPager(t, http.StatusOK), []string{t.TempDir(), t.TempDir()}
		gatewaytest.InBubble(t, func(t *testing.T) {
			o := options(dirs[0], gatewaytest.Key("k", p.NotifyURL()))
			g := gatewaytest.New(t, o)
			r := gatewaytest.NewRequest(http.MethodPost, "/notify/k", "body=x&send_at=1h", "Content-Type", "application/x-www-form-urlencoded",
				"Accept", "application/json", "Idempotency-Key", "one")
			id := g.Do(r).JSON(t).ID
			wait(after)
			o.Queue.Path = g.BackUp(dirs[1])
			told := p.Count()
			g.Stop()
			wait(2 * time.Hour)
			next := gatewaytest.New(t, o)
			again := gatewaytest.NewRequest(http.MethodPost, "/notify/k", "body=x&send_at=1h", "Content-Type", "application/x-www-form-urlencoded",
				"Accept", "application/json", "Idempotency-Key", "one")
			if got := next.Do(again).JSON(t).ID; got != id {
				t.Errorf("%s: the idempotency key leads to %s, want %s", after, got, id)
			}
			wait(time.Minute)
			if n := p.Count(); n != 1 && told == 1 || n < 1 {
				t.Errorf("killed after %s: %d messages, %d before", after, n, told)
			}
			wantState(t, next, id, "delivered: JSON delivered")
		})
	}
}

// TestPlannedIdempotency checks that the key of a message counts for as long as it waits.
func TestPlannedIdempotency(t *testing.T) {
	inBubble(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		o := options(dir, gatewaytest.Key("k", p.NotifyURL()))
		o.Queue.Keep = time.Hour
		g := gatewaytest.New(t, o)
		do := func(body string) gatewaytest.Reply {
			return g.Do(gatewaytest.NewRequest(http.MethodPost, "/notify/k", body, "Content-Type", "application/x-www-form-urlencoded", "Accept",
				"application/json", "Idempotency-Key", "one"))
		}
		id := do("body=x&send_at=6h").JSON(t).ID
		wait(4 * time.Hour)
		if got := do("body=x&send_at=6h"); got.JSON(t).ID != id || got.Status != http.StatusOK {
			t.Errorf("status %d: %s", got.Status, got.Body)
		}
		if got := do("body=y&send_at=6h"); got.Status != http.StatusUnprocessableEntity {
			t.Errorf("another message: status %d: %s", got.Status, got.Body)
		}
		wait(4 * time.Hour)
		p.WantTold(t, "info: x")
	})
}

// TestPlannedLimit checks that a key has a bounded number of planned messages, and room again
// when one is cancelled.
func TestPlannedLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", p.NotifyURL()), gatewaytest.Key("other", p.NotifyURL())))
		var first string
		for i := range planned.Kind.Most() {
			if id := plan(t, g, "body=x&send_at=1h"); i == 0 {
				first = id
			}
		}
		if got := post(g, "/notify/k", "body=x&send_at=1h"); got.Status != http.StatusTooManyRequests ||
			!strings.Contains(got.Body, "1000 planned messages") {
			t.Errorf("status %d: %s", got.Status, got.Body)
		}
		if got := post(g, "/notify/other", "body=x&send_at=1h"); got.Status != http.StatusOK {
			t.Errorf("another key: status %d: %s", got.Status, got.Body)
		}
		g.Message(http.MethodDelete, first, "application/json")
		plan(t, g, "body=x&send_at=1h")
	})
}

// TestPlannedFiles checks that a message keeps its files.
func TestPlannedFiles(t *testing.T) {
	inBubble(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", p.NotifyURL())))
		body := `{"body": "x", "send_at": "1h", "attach": [{"filename": "a.txt", "base64": "aGVsbG8="}]}`
		if got := g.Post("/notify/k", gatewaytest.TypeJSON, body); got.Status != http.StatusOK {
			t.Fatalf("status %d: %s", got.Status, got.Body)
		}
		wait(time.Hour + 5*time.Second)
		if got := p.Got(); len(got) != 1 || got[0].Files() != "a.txt text/plain hello" {
			t.Errorf("got %v", got)
		}
	})
}

// TestPlannedSavedKey checks that a message to a saved key is sent under the name that the key has
// when the message is due, and that a message to a deleted key is given up.
func TestPlannedSavedKey(t *testing.T) {
	inBubble(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		o := options(dir)
		o.Saved, o.Storage = &saved.Options{Manage: true, Trusted: true, Refresh: time.Nanosecond}, storagetest.New(t.TempDir())
		o.Site.Managers, o.Site.Egress = gatewaytest.Everybody(), gatewaytest.Loopback()
		g := gatewaytest.New(t, o)
		if got := g.PostForm("/add/k", "urls="+p.NotifyURL()); got.Status != http.StatusOK {
			t.Fatal(got.Body)
		}
		plan(t, g, "body=moved&send_at=1h")
		gone := plan(t, g, "body=gone&send_at=3h")
		if got := g.Ask(http.MethodPost, "/move/k", map[string]string{"to": "other"}); got.Status != http.StatusOK {
			t.Fatal(got.Body)
		}
		wait(2 * time.Hour)
		p.WantTold(t, "info: moved")
		if got := g.Ask(http.MethodPost, "/del/other", nil); got.Status != http.StatusOK {
			t.Fatal(got.Body)
		}
		wait(2 * time.Hour)
		p.WantTold(t, "info: moved")
		wantState(t, g, gone, "failed: Key k failed")
	})
}
