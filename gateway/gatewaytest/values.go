package gatewaytest

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Values returns the metrics by name and labels, such as "incidents state=open"; for a
// histogram its count.
func (p *Process) Values(t testing.TB) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	for range 2 { // a second time does no harm
		if err := p.Metrics.Register(registry); err != nil {
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
			words := []string{strings.TrimPrefix(f.GetName(), "caddy_notify_")}
			for _, l := range m.GetLabel() {
				words = append(words, l.GetName()+"="+l.GetValue())
			}
			out[strings.Join(words, " ")] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return out
}
