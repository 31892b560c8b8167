package metrics

import (
	"context"
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/memory"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Metrics are the Prometheus collectors. All configurations share them, so that their values
// survive a reload, even though Caddy then makes a new registry. No label has a value that clients
// choose.
type Metrics struct {
	messages   *prometheus.CounterVec
	byKey      *prometheus.CounterVec
	refusals   *prometheus.CounterVec
	deliveries *prometheus.CounterVec
	Seconds    *prometheus.HistogramVec
	attempts   *prometheus.CounterVec
	bytes      prometheus.Counter
	rules      *prometheus.CounterVec
	questions  *prometheus.CounterVec
	inFlight   prometheus.GaugeFunc
	memory     prometheus.GaugeFunc
	Queue      *queueMetrics

	// What each message needs of them.
	ofOutcome known[string, prometheus.Counter]    // of messages
	ofKey     known[[2]string, prometheus.Counter] // of byKey, by key and outcome
	ofResult  known[[2]string, prometheus.Counter] // of deliveries, by service and outcome
	ofService known[string, serviceCollectors]
}

// serviceCollectors are the collectors of one service.
type serviceCollectors struct {
	seconds  prometheus.Observer
	attempts prometheus.Counter
}

// known remembers the collectors of labels, because to look one up costs more than to count. The
// zero value is ready for use.
type known[L comparable, C any] struct {
	mu  sync.RWMutex
	all map[L]C
}

// get returns the collector of labels. find looks it up.
func (k *known[L, C]) get(labels L, find func(L) C) C {
	k.mu.RLock()
	c, ok := k.all[labels]
	k.mu.RUnlock()
	if ok {
		return c
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil {
		k.all = map[L]C{}
	}
	c = find(labels)
	k.all[labels] = c
	return c
}

// New returns the collectors. The gauges read f and memory. queue returns the state of the open
// queue, or nil if none is open.
func New(f *site.InFlight, memory *memory.Budget, queue func(context.Context) *QueueState) *Metrics {
	const ns, sub = "caddy", "notify"
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: ns, Subsystem: sub, Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, value func() float64) prometheus.GaugeFunc {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: ns, Subsystem: sub, Name: name, Help: help}, value)
	}
	m := &Metrics{
		messages: counter("messages_total", "Messages by outcome: delivered, failed (a required destination does not have the message), "+
			"queued (it is delivered later), repeated (an alert of an incident tool that is open already; nobody is told), "+
			"refused, overloaded, error.", "outcome"),
		byKey: counter("key_messages_total",
			"Messages to keys of the configuration, by key and outcome as in caddy_notify_messages_total. Saved keys have no series.", "key",
			"outcome"),
		refusals: counter("refused_total", "Requests to send a message that were answered with an error and sent nothing, by reason.",
			"reason"),
		deliveries: counter("deliveries_total",
			"Deliveries of one message to one destination, by service and outcome: delivered, failed, skipped (nothing to send), queued (failed, "+
				"and is tried again).", "service", "outcome"),
		Seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: ns, Subsystem: sub, Name: "delivery_duration_seconds",
			Help:    "Duration of deliveries including all attempts, by service.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"service"}),
		attempts: counter("attempts_total", "Attempts to deliver, including retries, by service.", "service"),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: ns, Subsystem: sub, Name: "attachment_bytes_total",
			Help: "Bytes of the attachments of messages, counted once a message.",
		}),
		rules: counter("rules_total", "Deliveries that rules of keys have decided about, by rule and outcome: suppressed (the destination "+
			"has the message), held, released (sent itself after it was held), digested (sent as part of one message), silenced (not sent "+
			"because of a silence), escalated (sent as a later step), acknowledged (an incident whose steps have ended).", "rule", "outcome"),
		questions: counter("questions_total", "Questions that were decided, by state: answered, expired, cancelled.", "state"),
		inFlight: gauge("in_flight", "Messages of clients that are not answered yet, which max_in_flight bounds.",
			func() float64 { return float64(f.Load()) }),
		memory: gauge("memory_bytes", "Bytes that the requests under way hold in memory, which client_limits memory bounds.",
			func() float64 { return float64(memory.Held()) }),
	}
	m.Queue = newQueueMetrics(queue)
	for _, outcome := range []string{
		site.OutcomeDelivered, site.OutcomeFailed, site.OutcomeQueued, site.OutcomeRepeated,
		site.OutcomeRefused, site.OutcomeOverloaded, site.OutcomeError,
	} {
		m.messages.WithLabelValues(outcome) // rate() needs the 0 before the first
	}
	for rule, outcomes := range ruleOutcomes() {
		for _, outcome := range outcomes {
			m.rules.WithLabelValues(rule, outcome)
		}
	}
	for _, reason := range AllRefusalReasons {
		m.refusals.WithLabelValues(reason)
	}
	for _, state := range []string{"answered", "expired", "cancelled"} {
		m.questions.WithLabelValues(state)
	}
	return m
}

// Collectors returns all collectors, to be registered or read.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{
		m.messages, m.byKey, m.refusals, m.deliveries, m.Seconds, m.attempts, m.bytes, m.rules, m.questions,
		m.inFlight, m.memory, m.Queue,
	}
}

// Register adds the collectors to the registry of a configuration. Collectors
// that are registered already are not an error.
func (m *Metrics) Register(r prometheus.Registerer) error {
	for _, c := range m.Collectors() {
		err := r.Register(c)
		if _, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); err != nil && !ok {
			return err
		}
	}
	return nil
}

// Sent counts a message with its files. key is a key of the configuration, or "".
func (m *Metrics) Sent(key, outcome string, files []*notifier.Attachment) {
	m.count(key, outcome)
	for _, a := range files {
		m.bytes.Add(float64(a.Size))
	}
}

// Made counts deliveries.
func (m *Metrics) Made(results []notifier.Result) {
	for i := range results {
		r := &results[i]
		of := m.ofService.get(r.Service, func(service string) serviceCollectors {
			return serviceCollectors{m.Seconds.WithLabelValues(service), m.attempts.WithLabelValues(service)}
		})
		of.seconds.Observe(r.Elapsed.Seconds())
		of.attempts.Add(float64(r.Attempts))
		m.ofResult.get([2]string{r.Service, string(r.Status)}, func(labels [2]string) prometheus.Counter {
			return m.deliveries.WithLabelValues(labels[:]...)
		}).Inc()
	}
}

// The outcomes of rules for deliveries.
const (
	RuleOutcomeSuppressed = "suppressed"
	RuleOutcomeHeld       = "held"
	RuleOutcomeReleased   = "released"
	RuleOutcomeDigested   = "digested"
	RuleOutcomeSilenced   = "silenced"

	RuleOutcomeEscalated    = "escalated"
	RuleOutcomeAcknowledged = "acknowledged"
)

// RuleDedupe is the name of the rule that suppresses, and RuleEscalate of the rule with steps.
// Rules that hold messages are named by [rules.Hold].
const (
	RuleDedupe   = "dedupe"
	RuleEscalate = "escalate"
)

// ruleOutcomes returns the outcomes that each rule can have.
func ruleOutcomes() map[string][]string {
	out := map[string][]string{RuleDedupe: {RuleOutcomeSuppressed}}
	out[RuleEscalate] = []string{RuleOutcomeEscalated, RuleOutcomeAcknowledged}
	for _, h := range []rules.Hold{rules.ByQuiet, rules.ByDigest, rules.ByRate} {
		out[h.Rule()] = []string{RuleOutcomeHeld, RuleOutcomeReleased, RuleOutcomeDigested}
	}
	out[rules.ByHold.Rule()] = []string{RuleOutcomeHeld, RuleOutcomeReleased, RuleOutcomeDigested, RuleOutcomeSuppressed}
	out[rules.BySilence.Rule()] = []string{RuleOutcomeHeld, RuleOutcomeReleased, RuleOutcomeDigested, RuleOutcomeSilenced}
	return out
}

// Ruled counts deliveries decided by a rule, which is named as in the Caddyfile.
func (m *Metrics) Ruled(rule, outcome string, n int) {
	m.rules.WithLabelValues(rule, outcome).Add(float64(n))
}

// Dead counts a delivery that the queue has given up.
func (m *Metrics) Dead(service string) { m.Queue.dead.WithLabelValues(service).Inc() }

// NotSent counts a message that was not sent: it was refused, the gateway was overloaded, or it
// had a fault. key is a key of the configuration, or "".
func (m *Metrics) NotSent(key, outcome string) { m.count(key, outcome) }

// Repeated counts a message about an alert that is already open, of which nobody is told. key is a
// key of the configuration, or "".
func (m *Metrics) Repeated(key string) { m.count(key, site.OutcomeRepeated) }

// count counts a message. key is a key of the configuration, or "" for any other, because clients
// must not be able to create series.
func (m *Metrics) count(key, outcome string) {
	m.ofOutcome.get(outcome, func(outcome string) prometheus.Counter { return m.messages.WithLabelValues(outcome) }).Inc()
	if key != "" {
		m.ofKey.get([2]string{key, outcome}, func(labels [2]string) prometheus.Counter { return m.byKey.WithLabelValues(labels[:]...) }).Inc()
	}
}

// Asked counts a question that was decided.
func (m *Metrics) Asked(state string) { m.questions.WithLabelValues(state).Inc() }

// Refused counts a request that was answered with an error status and sent
// nothing.
func (m *Metrics) Refused(reason string) { m.refusals.WithLabelValues(reason).Inc() }
