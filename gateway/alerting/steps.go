package alerting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/ruler"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// steps does what time and silences do to the steps of incidents that escalate.
type steps struct {
	outbox    *outbox.Outbox
	records   records
	incidents *Incidents
	silences  *Silences
	lanes     *lanes
}

// due does what is due about the incident in the record with a name: the next step, the end
// of a silence or of an acknowledgement, and the end of the record.
func (s *steps) due(ctx context.Context, conf *outbox.Configuration, name queue.Hash, crowded bool) error {
	d, err := s.prepare(ctx, conf, name)
	if err != nil {
		return err
	}
	d.crowded = crowded
	x, err := s.incidents.change(ctx, name, d.decide)
	if err != nil {
		return err
	}
	s.report(conf, d, x)
	if d.step.Again {
		return s.beginAgain(ctx, x, d)
	}
	return nil
}

// dueIncident is what is due about an incident.
type dueIncident struct {
	key      *site.Key       // nil if it is gone
	settings *site.Site      // that have the key
	rule     *rules.Escalate // of the key; nil if it has none any more
	hold     time.Duration   // how long the key holds openings; 0 for not at all
	keep     time.Duration   // how long a record is kept
	crowded  bool            // there are too many records

	silent   map[string]bool // the destinations of steps that silences match, by their hashes
	silenced bool            // they are all silent
	waits    bool            // rules hold a message about it, or a silence matches it

	step      rules.StepChange // what the steps do
	forgotten *rules.Incident  // it is removed; nil if it stays
	untold    bool             // a silence has kept steps from beginning that the configuration does not have any more
}

// prepare reads what the transaction needs.
func (s *steps) prepare(ctx context.Context, conf *outbox.Configuration, name queue.Hash) (*dueIncident, error) {
	b, err := s.outbox.Queue.Records.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	d, x := &dueIncident{keep: conf.QueueSettings.Keep}, incidentRecords.Decode(b)
	if x == nil {
		return d, nil
	}
	if d.key, d.settings, err = conf.KeyOfIncident(ctx, x); err != nil {
		return nil, err
	}
	if d.key != nil && d.key.Rules != nil {
		d.rule = d.key.Rules.Escalate
		if d.key.Rules.Hold != nil {
			d.hold = d.key.Rules.Hold.For
		}
	}
	if x.Escalating() {
		if d.silent, d.silenced, err = s.silent(ctx, d.key, x); err != nil {
			return nil, err
		}
	}
	if !x.Forget.After(s.outbox.Queue.Now()) {
		d.waits, err = s.waitsAbout(ctx, x, d.key)
	}
	return d, err
}

// decide changes the incident, and reports whether its record stays.
func (d *dueIncident) decide(c *incidentChange) (stays bool) {
	d.step, d.forgotten, d.untold = rules.StepChange{}, nil, false
	if c.incident == nil {
		return false
	}
	if d.rule == nil {
		d.abandon(c)
	} else {
		d.advance(c)
	}
	return d.stays(c)
}

// abandon ends the steps, because the key has no rule for them any more.
func (d *dueIncident) abandon(c *incidentChange) {
	x := c.incident
	switch {
	case d.silenced && x.Own:
		x.Silence(c.now, true)
	case len(x.Escalation.Waiting) > 0:
		release, drop := x.Abandon()
		c.release(release)
		c.drop(drop, notifier.RuleEscalating)
	default:
		d.untold = x.Escalation.Silenced && x.Escalating()
		x.Escalation.Next, x.Acknowledged.Until, x.Escalation.Silenced = time.Time{}, time.Time{}, false
	}
}

// advance begins the next step, unless silences match its destinations.
func (d *dueIncident) advance(c *incidentChange) {
	x := c.incident
	stopped, again := x.Silence(c.now, d.silenced)
	if len(stopped) > 0 {
		c.drop(stopped, notifier.RuleSilenced)
	}
	if again {
		d.step.Again = true
		return
	}
	d.step = d.rule.Advance(c.now, x, d.hold, c.status)
	var skipped []rules.StepJob
	if d.step.Release, skipped = splitSteps(d.step.Release, d.silent); len(skipped) > 0 {
		x.Skip(c.now, skipped)
		c.drop(skipped, notifier.RuleSilenced)
	}
	c.release(d.step.Release)
	c.drop(d.step.Drop, notifier.RuleEscalating)
}

// stays reports whether the record is still needed, and sets until when.
func (d *dueIncident) stays(c *incidentChange) bool {
	x := c.incident
	if x.Lasts() || d.waits {
		x.Forget = c.now.Add(d.keep)
	}
	// What is open stays, and so does what people may still look at.
	surplus := d.crowded && !x.IsOpen() && c.now.Sub(x.Changed) > time.Hour
	if !surplus && x.Forget.After(c.now) {
		return true
	}
	if !x.Lasts() && len(x.Escalation.Sent) == 0 {
		d.forgotten = x
		return false
	}
	x.Forget = c.now.Add(d.keep)
	return true
}

// report tells the log, the metrics and events what has happened to the incident.
func (s *steps) report(conf *outbox.Configuration, d *dueIncident, x *rules.Incident) {
	if d.untold {
		s.outbox.Log.Warn("the steps of an incident that a silence has stopped are told by nobody, because the key has no escalate any more",
			zap.String("key", x.Key), zap.String("incident", x.Name))
	}
	switch f := d.forgotten; {
	case f == nil:
	case f.IsOpen():
		s.outbox.Log.Info("an incident that is still open is forgotten, because nothing was heard of it", zap.String("key", f.Key),
			zap.String("incident", f.Name))
	default:
		s.outbox.Log.Debug("an incident that is resolved is forgotten", zap.String("key", f.Key), zap.String("incident", f.Name))
	}
	if n := len(d.step.Release); n > 0 {
		s.outbox.Dispatcher.Metrics.Ruled(metrics.RuleEscalate, metrics.RuleOutcomeEscalated, n)
	}
	if d.step.Round > 0 {
		s.incidents.tell(conf, event.IncidentEscalated, x, "")
	}
	if d.step.Exhausted {
		s.incidents.tell(conf, event.IncidentExhausted, x, "")
	}
}

// before does what [Engine.Before] says.
func (s *steps) before(ctx context.Context, j *queue.Job) (*rules.Incident, *queue.Outcome) {
	r, err := queued.DecodeRuled(j.Ruled)
	if err != nil || r.Incident == (queue.Hash{}) {
		return nil, nil
	}
	b, err := s.outbox.Queue.Records.Get(ctx, r.Incident)
	if err != nil {
		return nil, &queue.Outcome{Postponed: true, RetryAfter: outbox.PostponeChain}
	}
	x := incidentRecords.Decode(b)
	over := x != nil && r.Opening != "" && r.Opening != x.ID // it has opened again
	if x == nil || r.Step == 0 && !over || x.Sends() && !over {
		return x, nil // a damaged record stops no alert
	}
	if r.Step == 0 {
		return nil, nil // the link would lead to another opening
	}
	o := &queue.Outcome{Status: queue.Superseded, Result: j.Result, NotSent: true}
	if !over && x.IsOpen() && x.IsAcknowledged() {
		o.Rule = string(notifier.RuleAcknowledged)
		s.outbox.Dispatcher.Metrics.Ruled(metrics.RuleEscalate, metrics.RuleOutcomeAcknowledged, 1)
	}
	return x, o
}

// silent returns which destinations of the steps of an incident silences match, by
// their hashes, and whether they are all. k is the key, or nil if it is gone.
func (s *steps) silent(ctx context.Context, k *site.Key, x *rules.Incident) (silent map[string]bool, all bool, err error) {
	silences, err := s.silences.At(ctx, PlaceOfIncident(x), k.SilenceWindows())
	if err != nil || len(silences) == 0 || k == nil {
		return nil, false, err
	}
	silent = map[string]bool{}
	for _, t := range k.Targets {
		if silences.MatchIncident(s.outbox.Queue.Now(), x, t.Tags) != nil {
			silent[t.Hash()] = true
		}
	}
	loud := func(t rules.StepTarget) bool { return t.Step != 0 && !silent[t.Hash] }
	return silent, !slices.ContainsFunc(x.Escalation.Targets, loud), nil
}

// splitSteps returns the jobs whose destinations are not silent, and the others.
func splitSteps(jobs []rules.StepJob, silent map[string]bool) (send, skipped []rules.StepJob) {
	for _, j := range jobs {
		if silent[j.Target] {
			skipped = append(skipped, j)
		} else {
			send = append(send, j)
		}
	}
	return send, skipped
}

// beginAgain sends a message about an incident that is still open when its acknowledgement
// or a silence ends. Its steps begin again.
func (s *steps) beginAgain(ctx context.Context, x *rules.Incident, d *dueIncident) error {
	body := fmt.Sprintf("This is open since %s. A silence has ended.", FormatDay(x.Opened))
	if x.IsAcknowledged() {
		body = fmt.Sprintf("This is open since %s. %s acknowledged it at %s.", FormatDay(x.Opened), Person(x.Acknowledged.By),
			FormatDay(x.Acknowledged.At))
	}
	to := x.Escalation.Targets
	if x.Escalation.Silenced && x.Escalation.Step == 0 { // those without a number are told what the silence has held
		to = slices.DeleteFunc(slices.Clone(to), func(t rules.StepTarget) bool { return t.Step == 0 })
	}
	err := s.incidents.accept(ctx, x, &notice{
		message: &notifier.Message{Title: "Still open: " + strings.TrimPrefix(x.Title, "Still open: "), Body: body, Type: x.Type},
		key:     d.key, settings: d.settings, to: to,
	})
	if errors.Is(err, errIncidentChanged) {
		return nil // another gateway has sent it, or it is resolved
	}
	return err
}

// waitsAbout reports whether rules hold a message about an incident, a silence matches it, or
// a ruler still reports it. k is its key, or nil if that is gone.
func (s *steps) waitsAbout(ctx context.Context, x *rules.Incident, k *site.Key) (bool, error) {
	if k == nil {
		return false, nil
	}
	if x.IsOpen() {
		if x.Source == site.SourceRuler {
			if open, err := ruler.IsOpen(ctx, s.outbox, PlaceOfIncident(x), x.Name); open || err != nil {
				return true, err
			}
		}
		silences, err := s.silences.At(ctx, PlaceOfIncident(x), k.SilenceWindows())
		if err != nil || silences.MatchIncident(s.outbox.Queue.Now(), x, x.Tags) != nil {
			return true, err
		}
	}
	for _, t := range k.Targets {
		b, err := s.outbox.Queue.Records.Get(ctx, s.records.knowledgeName(x, k, t))
		if err != nil {
			return false, err
		}
		next := subjectRecords.DecodeOrNew(b).Next.Job
		if next == (queue.JobID{}) {
			continue
		}
		e, err := s.outbox.Queue.Get(ctx, next.Message)
		if err == nil && next.Index < len(e.Jobs) && e.Jobs[next.Index].Status == queue.Held {
			return true, nil
		}
		if err != nil && !errors.Is(err, queue.ErrNotFound) {
			return false, err
		}
	}
	return false, nil
}

// recheck looks at the incidents of jobs that wait for a step. Jobs that no incident
// knows are released, because a damaged record must not lose an alert.
func (s *steps) recheck(ctx context.Context, conf *outbox.Configuration, incidents map[queue.Hash][]queue.Job) {
	for name, jobs := range incidents {
		b, err := s.outbox.Queue.Records.Get(ctx, name)
		if err != nil {
			return
		}
		x := incidentRecords.Decode(b)
		lost := slices.DeleteFunc(jobs, func(j queue.Job) bool {
			return x != nil && slices.ContainsFunc(x.Escalation.Waiting, func(w rules.StepJob) bool { return w.Job == j.JobID })
		})
		if len(lost) > 0 {
			s.lanes.releaseLost(ctx, lost)
		}
		if err := s.due(ctx, conf, name, false); err != nil {
			s.outbox.Log.Error("the steps of an incident cannot be looked at", zap.Error(err))
		}
	}
}
