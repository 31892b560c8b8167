package alerting_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestOpenTime checks that a resolution tells how long its incident was open, from the first
// message that opened it: when it is sent at once, later by the queue, and by a person.
// Nothing is told where it is not known.
func TestOpenTime(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, ruledKey(p, dedupeMinute()), gatewaytest.Key("plain", p.NotifyURL()))
		last := func() gatewaytest.Arrived {
			t.Helper()
			got := p.Got()
			return got[len(got)-1]
		}
		wantResult(t, g, "body=disk is filling&type=warning&incident=disk", notifier.Delivered, "")
		time.Sleep(10 * time.Minute)
		wantResult(t, g, diskFull, notifier.Delivered, "")
		if got := last(); got.OpenSeconds != 0 {
			t.Errorf("a problem that is open was open for %d s", got.OpenSeconds)
		}
		time.Sleep(4 * time.Minute)
		wantResult(t, g, diskOK, notifier.Delivered, "")
		if got := last(); got.OpenSeconds != 14*60 || got.Message != "disk has room" {
			t.Errorf("it was open for %d s: %q", got.OpenSeconds, got.Message)
		}
		time.Sleep(2 * time.Minute)
		wantResult(t, g, diskOK, notifier.Delivered, "")
		if got := last(); got.OpenSeconds != 0 {
			t.Errorf("what was not open was open for %d s", got.OpenSeconds)
		}
		for _, form := range []string{diskFull, diskOK} { // a key without rules knows of no incidents
			g.PostForm("/notify/plain", form)
		}
		if got := last(); got.OpenSeconds != 0 {
			t.Errorf("without rules, it was open for %d s", got.OpenSeconds)
		}

		wantResult(t, g, diskFull, notifier.Delivered, "")
		time.Sleep(time.Minute)
		p.Answer(http.StatusServiceUnavailable)
		g.PostForm("/notify/k", diskOK)
		p.Answer(http.StatusOK)
		time.Sleep(time.Hour)
		if got := last(); got.OpenSeconds != 60 || got.Type != "success" {
			t.Errorf("after an outage, it was open for %d s", got.OpenSeconds)
		}
	})
}

// TestOpenTimeInTemplates checks that the templates of a source of the operator's know how
// long the incident was open that a payload resolves.
func TestOpenTimeInTemplates(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		o := gatewaytest.Queued(dir, gatewaytest.RuledKey("k", rules.Rules{Dedupe: &rules.Dedupe{Window: time.Minute}}, p.NotifyURL()))
		mine, err := source.New(source.Config{Name: "backup", Templates: source.Templates{
			Title: "{{.job}}", Body: "{{.state}}{{with .OpenFor}} after {{.}}{{end}}", Type: "{{.state}}", Incident: "{{.job}}",
		}})
		if err != nil {
			t.Fatal(err)
		}
		o.Sources = source.Set{"backup": mine}
		g := gatewaytest.New(t, o)
		post := func(state string) {
			t.Helper()
			if r := g.Post("/notify/k/backup", gatewaytest.TypeJSON, `{"job":"db","state":"`+state+`"}`); r.Status != http.StatusOK {
				t.Errorf("%d %s", r.Status, r.Body)
			}
		}
		post("failure")
		time.Sleep(125 * time.Minute)
		post("success")
		time.Sleep(time.Minute)
		post("success")
		p.WantTold(t, "failure: db | failure", "success: db | success after 2 h 5 min", "success: db | success")
	})
}
