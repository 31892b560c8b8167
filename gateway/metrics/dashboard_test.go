package metrics_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/memory"
)

// series has the labels of each metric of the gateway.
func series(t *testing.T) map[string][]string {
	t.Helper()
	m := metrics.New(new(site.InFlight), new(memory.Budget), func(context.Context) *metrics.QueueState { return nil })
	descs := make(chan *prometheus.Desc, 100)
	for _, c := range m.Collectors() {
		c.Describe(descs)
	}
	close(descs)
	out := map[string][]string{}
	form := regexp.MustCompile(`fqName: "(\w+)".*variableLabels: \{(.*)\}\}$`)
	for d := range descs {
		got := form.FindStringSubmatch(d.String())
		if got == nil {
			t.Fatalf("a metric without a name: %s", d)
		}
		labels := strings.FieldsFunc(got[2], func(r rune) bool { return r == ',' })
		out[got[1]] = labels
		if d == descOf(m.Seconds) {
			out[got[1]+"_sum"], out[got[1]+"_count"], out[got[1]+"_bucket"] = labels, labels, append(slices.Clip(labels), "le")
		}
	}
	return out
}

// descOf returns the description of a collector that has one.
func descOf(c prometheus.Collector) *prometheus.Desc {
	d := make(chan *prometheus.Desc, 1)
	c.Describe(d)
	return <-d
}

// queries returns the queries of the dashboard, the alert rules and the documentation's pages, by
// where they are.
func queries(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	var dashboard struct {
		Templating struct {
			List []struct{ Name, Definition string }
		}
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	content, err := os.ReadFile("../../deploy/grafana/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, v := range dashboard.Templating.List {
		if _, rest, ok := strings.Cut(v.Definition, "label_values("); ok {
			out["variable "+v.Name] = strings.TrimSuffix(strings.Replace(rest, ", ", " by(", 1), ")") + ")"
		}
	}
	for _, p := range dashboard.Panels {
		for _, q := range p.Targets {
			out["panel "+p.Title+" "+q.RefID] = q.Expr
		}
	}
	var alerts struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if content, err = os.ReadFile("../../deploy/prometheus/alerts.yml"); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, &alerts); err != nil {
		t.Fatal(err)
	}
	for _, g := range alerts.Groups {
		for _, r := range g.Rules {
			out["alert "+r.Alert] = r.Expr
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```(?:text|promql)\n(.*?)```")
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range block.FindAllStringSubmatch(string(content), -1) {
			if strings.Contains(found[1], "caddy_notify_") {
				out[filepath.Base(page)+" "+found[1]] = found[1]
			}
		}
	}
	return out
}

// TestDashboard checks that the queries of the dashboard, the alert rules and the
// documentation name metrics, labels and outcomes that exist, and that the dashboard
// shows each metric.
func TestDashboard(t *testing.T) {
	t.Parallel()
	known := series(t)
	selector := regexp.MustCompile(`(caddy_notify_\w+)(?:\{([^}]*)\})?`)
	matcher := regexp.MustCompile(`(\w+)(?:=~|!~|!=|=)"([^"]*)"`)
	grouping := regexp.MustCompile(`\bby ?\(([^)]*)\)`)
	values := map[string][]string{
		"caddy_notify_messages_total outcome": {
			site.OutcomeDelivered, site.OutcomeFailed, site.OutcomeQueued, site.OutcomeRepeated,
			site.OutcomeRefused, site.OutcomeOverloaded, site.OutcomeError,
		},
		"caddy_notify_refused_total reason":      metrics.AllRefusalReasons,
		"caddy_notify_queue_beats_total outcome": {metrics.BeatOK, metrics.BeatFailed, metrics.BeatWithheld},
		"caddy_notify_destinations state":        {string(metrics.StateKnown), string(metrics.StateFailing), string(metrics.StateDown)},
		"caddy_notify_beats state":               {heartbeat.StateOnTime, heartbeat.StateInGrace, "late", "failed", "too_long"},
		"caddy_notify_queue_jobs state":          {"queued", "sending", "dead"},
		"caddy_notify_deliveries_total outcome":  {string(notifier.Delivered), string(notifier.Failed), string(notifier.Skipped), "queued"},
		"caddy_notify_key_messages_total outcome": {
			site.OutcomeDelivered, site.OutcomeFailed, site.OutcomeQueued, site.OutcomeRepeated,
			site.OutcomeRefused, site.OutcomeOverloaded, site.OutcomeError,
		},
	}
	shown := map[string]bool{}
	all := queries(t)
	for where, query := range all {
		used := selector.FindAllStringSubmatch(query, -1)
		if len(used) == 0 {
			t.Errorf("%s names no metric: %s", where, query)
		}
		allowed := []string{"instance"} // of Prometheus
		for _, u := range used {
			labels, ok := known[u[1]]
			if !ok {
				t.Errorf("%s: there is no metric %s", where, u[1])
			}
			if strings.HasPrefix(where, "panel ") {
				shown[u[1]] = true
			}
			allowed = append(allowed, labels...)
			for _, m := range matcher.FindAllStringSubmatch(u[2], -1) {
				if m[1] == "instance" {
					continue
				}
				if !slices.Contains(labels, m[1]) {
					t.Errorf("%s: %s has no label %s", where, u[1], m[1])
				}
				if known := values[u[1]+" "+m[1]]; known != nil {
					for value := range strings.SplitSeq(m[2], "|") {
						if !slices.Contains(known, value) {
							t.Errorf("%s: %s of %s is never %s", where, m[1], u[1], value)
						}
					}
				}
			}
		}
		for _, g := range grouping.FindAllStringSubmatch(query, -1) {
			for label := range strings.SplitSeq(g[1], ",") {
				if !slices.Contains(allowed, strings.TrimSpace(label)) {
					t.Errorf("%s: its metrics have no label %s", where, label)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if !shown[name] && !shown[name+"_bucket"] && !strings.HasSuffix(name, "_seconds_sum") && !strings.HasSuffix(name, "_seconds_count") {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
	if len(all) < 35 {
		t.Errorf("there are only %d queries", len(all))
	}
}

// TestDeadSeries checks that the counter of dead deliveries exists for each service of the
// configuration from the start, because increase() needs the 0.
func TestDeadSeries(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, gatewaytest.Options{
		Site: site.Options{
			Keys:        []site.KeyOptions{gatewaytest.Key("k", "json://127.0.0.1:9/")},
			DefaultURLs: gatewaytest.URLs("gotify://127.0.0.1/token"),
		},
		Queue: &outbox.Settings{},
	})
	got := g.Process.Values(t)
	for _, name := range []string{"queue_dead_total service=JSON", "queue_dead_total service=Gotify", "queue_beats_total outcome=withheld"} {
		if value, ok := got[name]; !ok || value != 0 {
			t.Errorf("%s is %v (%t), want 0", name, value, ok)
		}
	}
	if got["queue_max_bytes"] != 1<<30 {
		t.Errorf("queue_max_bytes is %v", got["queue_max_bytes"])
	}
}
