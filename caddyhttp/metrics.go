package caddyhttp

import (
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// The outcomes of messages. Those of deliveries are the notifier's statuses.
const (
	outcomeDelivered  = "delivered"  // no required destination failed
	outcomeFailed     = "failed"     // a required destination has it not
	outcomeRefused    = "refused"    // the request was wrong: nothing was sent
	outcomeOverloaded = "overloaded" // too many were under way: nothing was read
	outcomeError      = "error"      // a fault of the gateway's own
)

// metrics are the collectors of the gateway. They are shared, so that
// values survive a reload, with which Caddy makes a new registry. No label
// holds what a client or a key can name freely.
type metrics struct {
	messages   *prometheus.CounterVec
	deliveries *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
	attempts   *prometheus.CounterVec
	bytes      prometheus.Counter
	inFlight   prometheus.GaugeFunc
}

func newMetrics(f *inFlight) *metrics {
	const ns, sub = "caddy", "notify"
	m := &metrics{
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: ns, Subsystem: sub, Name: "messages_total",
			Help: "Messages by what became of them: delivered, failed (a required destination does not have it), refused, overloaded, error.",
		}, []string{"outcome"}),
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: ns, Subsystem: sub, Name: "deliveries_total",
			Help: "Deliveries of one message to one destination, by service and by what became of them: delivered, failed, skipped (nothing was to be sent).",
		}, []string{"service", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: ns, Subsystem: sub, Name: "delivery_duration_seconds",
			Help:    "How long deliveries took, all attempts together, by service.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"service"}),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: ns, Subsystem: sub, Name: "attempts_total",
			Help: "Attempts to deliver, retries included, by service.",
		}, []string{"service"}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: ns, Subsystem: sub, Name: "attachment_bytes_total",
			Help: "Bytes of the files that went along with messages, once a message.",
		}),
		inFlight: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: ns, Subsystem: sub, Name: "in_flight",
			Help: "Messages of clients that are not answered yet; what max_in_flight bounds.",
		}, func() float64 { return float64(f.load()) }),
	}
	for _, outcome := range []string{outcomeDelivered, outcomeFailed, outcomeRefused, outcomeOverloaded, outcomeError} {
		m.messages.WithLabelValues(outcome) // a rate needs the 0 before the first
	}
	return m
}

// register adds the collectors to the registry of a configuration, which may
// have them.
func (m *metrics) register(r prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{m.messages, m.deliveries, m.seconds, m.attempts, m.bytes, m.inFlight} {
		err := r.Register(c)
		if _, again := errors.AsType[prometheus.AlreadyRegisteredError](err); err != nil && !again {
			return err
		}
	}
	return nil
}

// sent counts a message that has been sent, with its deliveries.
func (m *metrics) sent(message *notifier.Message, report *notifier.Report, ok bool) {
	outcome := outcomeDelivered
	if !ok {
		outcome = outcomeFailed
	}
	m.messages.WithLabelValues(outcome).Inc()
	for _, a := range message.Attachments {
		m.bytes.Add(float64(a.Size))
	}
	for _, r := range report.Results {
		m.deliveries.WithLabelValues(r.Service, string(r.Status)).Inc()
		m.seconds.WithLabelValues(r.Service).Observe(r.Elapsed.Seconds())
		m.attempts.WithLabelValues(r.Service).Add(float64(r.Attempts))
	}
}

// notSent counts a message that was answered without being sent.
func (m *metrics) notSent(status int) {
	outcome := outcomeRefused
	switch {
	case status == http.StatusServiceUnavailable:
		outcome = outcomeOverloaded
	case status >= 500 && status != http.StatusLoopDetected:
		outcome = outcomeError
	}
	m.messages.WithLabelValues(outcome).Inc()
}
