package metrics_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/memory"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestMetrics checks that every message is counted once by its outcome, and
// every delivery by its service.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{
		Egress: gatewaytest.Loopback(), MaxInFlight: 1, Stateless: new(true),
		Keys: []site.KeyOptions{gatewaytest.Key("k", s.NotifyURL("/k")+" ok", s.NotifyURL("/refuse?retry=2&wait=0")+" bad")},
	}})
	const json = `{"attachments": [{"base64": "QUJD", "filename": "a.txt"}], `
	for _, tt := range []struct {
		name, path, body string
		status           int
		want             map[string]float64
	}{
		{"delivered", "/notify/k", json + `"body": "x", "tag": "ok"}`, 200, map[string]float64{
			"messages_total outcome=delivered": 1, "key_messages_total key=k outcome=delivered": 1,
			"deliveries_total outcome=delivered service=JSON": 1,
			"delivery_duration_seconds service=JSON":          1, "attempts_total service=JSON": 1, "attachment_bytes_total": 3,
		}},
		{"one of two failed", "/notify/k", `{"body": "x"}`, 424, map[string]float64{
			"messages_total outcome=failed": 1, "key_messages_total key=k outcome=failed": 1, "deliveries_total outcome=delivered service=JSON": 1,
			"deliveries_total outcome=failed service=JSON": 1,
			"delivery_duration_seconds service=JSON":       2, "attempts_total service=JSON": 4,
		}},
		{"an unusable URL", "/notify", `{"body": "x", "urls": "` + s.NotifyURL("/m") + `, nonsense://x"}`, 424, map[string]float64{
			"messages_total outcome=failed": 1, "deliveries_total outcome=delivered service=JSON": 1,
			"delivery_duration_seconds service=JSON": 1, "attempts_total service=JSON": 1,
		}},
		{
			"refused", "/notify/k", json + `"type": "loud"}`, 400,
			map[string]float64{
				"messages_total outcome=refused": 1, "key_messages_total key=k outcome=refused": 1,
				"refused_total reason=bad_request": 1,
			},
		},
		{
			"an unknown key", "/notify/none", `{}`, 404,
			map[string]float64{"messages_total outcome=refused": 1, "refused_total reason=unknown_key": 1},
		},
		{
			"no such tag", "/notify/k", `{"body": "x", "tag": "none"}`, 424,
			map[string]float64{
				"messages_total outcome=refused": 1, "key_messages_total key=k outcome=refused": 1,
				"refused_total reason=no_destination": 1,
			},
		},
	} {
		before := g.Process.Values(t)
		if got := g.Post(tt.path, gatewaytest.TypeJSON, tt.body); got.Status != tt.status {
			t.Fatalf("%s: status %d, want %d: %s", tt.name, got.Status, tt.status, got.Body)
		}
		after := g.Process.Values(t)
		for name, value := range after {
			if got := value - before[name]; got != tt.want[name] {
				t.Errorf("%s: %s: %v more, want %v", tt.name, name, got, tt.want[name])
			}
			delete(tt.want, name)
		}
		if len(tt.want) > 0 {
			t.Errorf("%s: there is no %v", tt.name, tt.want)
		}
	}
}

func TestMetricsOfOverload(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	release := p.Hold()
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{
		MaxInFlight: 1,
		Keys:        []site.KeyOptions{gatewaytest.Key("k", p.NotifyURL())},
	}})
	done := make(chan int)
	go func() { done <- g.Post("/notify/k", gatewaytest.TypeForm, "body=x").Status }()
	gatewaytest.Eventually(t, func() bool { return p.Count() == 1 })
	before := g.Process.Values(t)
	if before["in_flight"] != 1 {
		t.Errorf("in flight: %v, want 1", before["in_flight"])
	}
	if got := g.Post("/notify/k", gatewaytest.TypeForm, "body=x"); got.Status != http.StatusServiceUnavailable {
		t.Errorf("status %d", got.Status)
	}
	release()
	<-done
	after := g.Process.Values(t)
	const overloaded = "messages_total outcome=overloaded"
	if after[overloaded]-before[overloaded] != 1 || after["in_flight"] != 0 {
		t.Errorf("overloaded: %v more; in flight: %v", after[overloaded]-before[overloaded], after["in_flight"])
	}
}

// TestMetricsOfServices checks the deliveries of a message to several services,
// whose collectors are not looked up for each delivery.
func TestMetricsOfServices(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, gatewaytest.Options{})
	result := func(service string, status notifier.Status) notifier.Result {
		return notifier.Result{Service: service, Status: status, Attempts: 1}
	}
	g.Process.Metrics.Made([]notifier.Result{
		result("A", notifier.Delivered), result("A", notifier.Failed), result("B", notifier.Failed), result("B", notifier.Failed),
		result("A", notifier.Failed),
	})
	after := g.Process.Values(t)
	for name, want := range map[string]float64{
		"deliveries_total outcome=delivered service=A": 1, "deliveries_total outcome=failed service=A": 2,
		"deliveries_total outcome=failed service=B": 2,
		"delivery_duration_seconds service=A":       3, "delivery_duration_seconds service=B": 2,
		"attempts_total service=A": 3, "attempts_total service=B": 2,
	} {
		if after[name] != want {
			t.Errorf("%s: %v, want %v", name, after[name], want)
		}
	}
}

// TestMetricOfOldSecrets checks that the metric is above 0 while an old secret of the queue is needed for
// anything, and that there is none if the configuration has no old secret.
func TestMetricOfOldSecrets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		old  *queue.OldSecrets
		want string
	}{
		{nil, ""},
		{&queue.OldSecrets{Set: true}, "0"},
		{&queue.OldSecrets{Set: true, Records: 3}, "3"},
		{&queue.OldSecrets{Set: true, Used: true}, "1"},
		{&queue.OldSecrets{Set: true, Records: 3, Used: true}, "4"},
	} {
		m := metrics.New(new(site.InFlight), new(memory.Budget), func(context.Context) *metrics.QueueState {
			return &metrics.QueueState{OldSecrets: tt.old} // also while the store does not answer
		})
		r := prometheus.NewRegistry()
		if err := m.Register(r); err != nil {
			t.Fatal(err)
		}
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range families {
			if f.GetName() == "caddy_notify_queue_old_secret_records" {
				got = fmt.Sprint(f.GetMetric()[0].GetGauge().GetValue())
			}
		}
		if got != tt.want {
			t.Errorf("%+v: the metric is %q, want %q", tt.old, got, tt.want)
		}
	}
}
