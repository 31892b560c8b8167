package caddyhttp

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
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
