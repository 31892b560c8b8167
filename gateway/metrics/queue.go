package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// queueMetrics are the metrics of the open queue. Without one, there are none.
type queueMetrics struct {
	state func(context.Context) *QueueState // nil if no queue is open

	jobs, oldest       *prometheus.Desc
	bytes, recordBytes *prometheus.Desc
	maxBytes           *prometheus.Desc
	destinations       *prometheus.Desc
	incidents          *prometheus.Desc
	beats              *prometheus.Desc
	oldSecrets         *prometheus.Desc
	Retries            prometheus.Counter
	dead               *prometheus.CounterVec
	Watchdog           *prometheus.CounterVec
}

func newQueueMetrics(state func(context.Context) *QueueState) *queueMetrics {
	name := func(name string) string { return prometheus.BuildFQName("caddy", "notify", "queue_"+name) }
	m := &queueMetrics{
		state: state,
		jobs: prometheus.NewDesc(name("jobs"), "Deliveries in the queue by state: queued, sending, dead (given up).",
			[]string{"state"}, nil),
		oldest: prometheus.NewDesc(name("oldest_seconds"), "Age of the oldest message that waits in the queue; 0 if none waits.", nil, nil),
		destinations: prometheus.NewDesc(prometheus.BuildFQName("caddy", "notify", "destinations"),
			"Destinations of the operator by state: known (the last attempt succeeded), failing (it failed), down (at least three in a row failed).",
			[]string{"state"}, nil),
		incidents: prometheus.NewDesc(prometheus.BuildFQName("caddy", "notify", "incidents"),
			"Incidents of keys with rules by state: open, acknowledged, resolved (and not forgotten yet).", []string{"state"}, nil),
		beats: prometheus.NewDesc(prometheus.BuildFQName("caddy", "notify", "beats"),
			"Beats that keys expect, by state: on_time, in_grace, late, failed.", []string{"state"}, nil),
		bytes: prometheus.NewDesc(name("bytes"),
			"Size of the messages that wait in the queue and of what rules remember, which max_size bounds.", nil, nil),
		recordBytes: prometheus.NewDesc(name("record_bytes"), "Size of what rules remember alone: incidents, silences, beats.", nil, nil),
		maxBytes: prometheus.NewDesc(name("max_bytes"), "The setting max_size of the queue: how large caddy_notify_queue_bytes may become.",
			nil, nil),
		oldSecrets: prometheus.NewDesc(name("old_secret_records"),
			"Records in the queue that still need an old secret of the configuration, and 1 more while a gateway may seal under one. "+
				"At 0, the old secrets can be removed. Without an old secret, there is no such metric.", nil, nil),
		Retries: prometheus.NewCounter(prometheus.CounterOpts{Name: name("retries_total"), Help: "Attempts of the queue after a failure."}),
		Watchdog: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: name("beats_total"),
			Help: "Calls of the watchdog of queue beat, by outcome: ok, failed, withheld (a delivery has waited for more than half of max_age).",
		},
			[]string{"outcome"}),
		dead: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: name("dead_total"),
			Help: "Deliveries that the queue has given up, by service.",
		}, []string{"service"}),
	}
	for _, outcome := range []string{BeatOK, BeatFailed, BeatWithheld} {
		m.Watchdog.WithLabelValues(outcome) // rate() needs the 0 before the first
	}
	return m
}

// Expect creates the series of services in use. Without an initial 0, Prometheus would not see the
// first delivery to a service that was given up.
func (m *queueMetrics) Expect(services []string) {
	for _, s := range services {
		m.dead.WithLabelValues(s)
	}
}

// Describe implements prometheus.Collector.
func (m *queueMetrics) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		m.jobs, m.oldest, m.bytes, m.recordBytes, m.maxBytes, m.destinations, m.incidents, m.beats, m.oldSecrets,
	} {
		c <- d
	}
	m.Retries.Describe(c)
	m.dead.Describe(c)
	m.Watchdog.Describe(c)
}

// statsTimeout bounds how long a scrape waits for the store.
const statsTimeout = 2 * time.Second

// Collect implements prometheus.Collector.
func (m *queueMetrics) Collect(c chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), statsTimeout)
	defer cancel()
	q := m.state(ctx)
	if q == nil {
		return
	}
	m.Retries.Collect(c)
	m.dead.Collect(c)
	m.Watchdog.Collect(c)
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(m.maxBytes, float64(q.MaxSize))
	gauge(m.destinations, float64(q.Destinations.Known), string(StateKnown))
	gauge(m.destinations, float64(q.Destinations.Failing), string(StateFailing))
	gauge(m.destinations, float64(q.Destinations.Down), string(StateDown))
	for _, stage := range rules.Stages {
		gauge(m.incidents, float64(q.Incidents[stage]), string(stage))
	}
	if old := q.OldSecrets; old != nil {
		n := old.Records
		if old.Used {
			n++
		}
		gauge(m.oldSecrets, float64(n))
	}
	s := q.Stats
	if s == nil {
		return // the queue logs the reason
	}
	gauge(m.jobs, float64(s.Queued), "queued")
	gauge(m.jobs, float64(s.Sending), "sending")
	gauge(m.jobs, float64(s.Dead), "dead")
	oldest := 0.0
	if !s.Oldest.IsZero() {
		oldest = max(q.Now.Sub(s.Oldest).Seconds(), 0)
	}
	gauge(m.oldest, oldest)
	gauge(m.bytes, float64(s.Bytes))
	gauge(m.recordBytes, float64(s.Records))
	for state, n := range q.Beats {
		gauge(m.beats, float64(n), state)
	}
}

// QueueState is the state of an open queue and its records, for metrics.
type QueueState struct {
	MaxSize      int64
	Destinations queue.Counts
	Incidents    map[notifier.IncidentState]int // by stage
	OldSecrets   *queue.OldSecrets              // nil if the configuration has none, or if it is not known yet what needs them
	Stats        *queue.Stats                   // nil if the store does not answer
	Beats        map[string]int                 // by state; nil if no key expects beats or they cannot be read
	Now          time.Time
}

// DestinationState is the state of a destination by its last attempts.
type DestinationState string

// The states of destinations, the worst first.
const (
	StateDown    DestinationState = "down"    // at least three attempts in a row have failed
	StateFailing DestinationState = "failing" // the last attempt has failed
	StateUnknown DestinationState = "unknown" // there was no conclusive attempt
	StateKnown   DestinationState = "known"   // the last attempt succeeded
)

// The outcomes of the watchdog's calls, in metrics.
const (
	BeatOK       = "ok"
	BeatFailed   = "failed"
	BeatWithheld = "withheld" // a delivery has waited for too long
)
