package caddyhttp

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// values returns the metrics by name and labels; for a histogram its count.
func values(t *testing.T, e *dispatch.Dispatcher) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	for range 2 { // a second time does no harm
		if err := e.Metrics.Register(registry); err != nil {
			t.Fatal(err)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "caddy_notify_")
			for _, l := range m.GetLabel() {
				name += " " + l.GetName() + "=" + l.GetValue()
			}
			out[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return out
}

// TestMetrics checks that every message is counted once by its outcome, and
// every delivery by its service.
func TestMetrics(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, open+"max_in_flight 1\nkey k {\nurl "+s.NotifyURL("/k")+" ok\nurl "+s.NotifyURL("/refuse?retry=2&wait=0")+" bad\n}\nstateless on", "")
	const json = `{"attachments": [{"base64": "QUJD", "filename": "a.txt"}], `
	for _, tt := range []struct {
		name, path, body string
		status           int
		want             map[string]float64
	}{
		{"delivered", "/notify/k", json + `"body": "x", "tag": "ok"}`, 200, map[string]float64{
			"messages_total outcome=delivered": 1, "key_messages_total key=k outcome=delivered": 1, "deliveries_total outcome=delivered service=JSON": 1,
			"delivery_duration_seconds service=JSON": 1, "attempts_total service=JSON": 1, "attachment_bytes_total": 3,
		}},
		{"one of two failed", "/notify/k", `{"body": "x"}`, 424, map[string]float64{
			"messages_total outcome=failed": 1, "key_messages_total key=k outcome=failed": 1, "deliveries_total outcome=delivered service=JSON": 1, "deliveries_total outcome=failed service=JSON": 1,
			"delivery_duration_seconds service=JSON": 2, "attempts_total service=JSON": 4,
		}},
		{"an unusable URL", "/notify", `{"body": "x", "urls": "` + s.NotifyURL("/m") + `, nonsense://x"}`, 424, map[string]float64{
			"messages_total outcome=failed": 1, "deliveries_total outcome=delivered service=JSON": 1,
			"delivery_duration_seconds service=JSON": 1, "attempts_total service=JSON": 1,
		}},
		{"refused", "/notify/k", json + `"type": "loud"}`, 400, map[string]float64{"messages_total outcome=refused": 1, "key_messages_total key=k outcome=refused": 1, "refused_total reason=bad_request": 1}},
		{"an unknown key", "/notify/none", `{}`, 404, map[string]float64{"messages_total outcome=refused": 1, "refused_total reason=unknown_key": 1}},
		{"no such tag", "/notify/k", `{"body": "x", "tag": "none"}`, 424, map[string]float64{"messages_total outcome=refused": 1, "key_messages_total key=k outcome=refused": 1, "refused_total reason=no_destination": 1}},
	} {
		before := values(t, h.shared.Dispatcher)
		if got := post(t, h, tt.path, typeJSON, tt.body); got.status != tt.status {
			t.Fatalf("%s: status %d, want %d: %s", tt.name, got.status, tt.status, got.body)
		}
		after := values(t, h.shared.Dispatcher)
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
	j := newStalled(t)
	h := newGateway(t, "max_in_flight 1\nkey k {\nurl "+j.NotifyURL()+"\n}", "")
	done := make(chan int)
	go func() { done <- post(t, h, "/notify/k", typeForm, "body=x").status }()
	<-j.arrived
	before := values(t, h.shared.Dispatcher)
	if before["in_flight"] != 1 {
		t.Errorf("in flight: %v, want 1", before["in_flight"])
	}
	if got := post(t, h, "/notify/k", typeForm, "body=x"); got.status != http.StatusServiceUnavailable {
		t.Errorf("status %d", got.status)
	}
	j.release()
	<-done
	after := values(t, h.shared.Dispatcher)
	const overloaded = "messages_total outcome=overloaded"
	if after[overloaded]-before[overloaded] != 1 || after["in_flight"] != 0 {
		t.Errorf("overloaded: %v more; in flight: %v", after[overloaded]-before[overloaded], after["in_flight"])
	}
}

// TestMetricsOfServices checks the deliveries of a message to several services,
// whose collectors are not looked up for each delivery.
func TestMetricsOfServices(t *testing.T) {
	replaceShared(t)
	h := newGateway(t, open, "")
	result := func(service string, status notifier.Status) notifier.Result {
		return notifier.Result{Service: service, Status: status, Attempts: 1}
	}
	h.shared.Metrics.Made([]notifier.Result{
		result("A", notifier.Delivered), result("A", notifier.Failed), result("B", notifier.Failed), result("B", notifier.Failed), result("A", notifier.Failed),
	})
	after := values(t, h.shared.Dispatcher)
	for name, want := range map[string]float64{
		"deliveries_total outcome=delivered service=A": 1, "deliveries_total outcome=failed service=A": 2, "deliveries_total outcome=failed service=B": 2,
		"delivery_duration_seconds service=A": 3, "delivery_duration_seconds service=B": 2,
		"attempts_total service=A": 3, "attempts_total service=B": 2,
	} {
		if after[name] != want {
			t.Errorf("%s: %v, want %v", name, after[name], want)
		}
	}
}
