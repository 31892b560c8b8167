package outbox

import (
	"slices"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Draft is a message that is about to be stored. [Policy] adds to it what rules decide.
type Draft struct {
	*dispatch.Delivery
	Entry    *queue.Entry
	States   []queued.State // of the targets
	Bypasses bool           // the message is sent in any case

	positions []int // of the jobs of the targets in the entry
	targets   []sentTarget
	refused   refused // by targets, before the message was stored
	text      []byte  // see textSum
	kept      func()  // called when the message is stored; nil if the key keeps none
}

// newDraft returns d as it is stored after these results of its targets, which a client sees, too.
// plan, if it is not nil, decides about it.
func (q *Outbox) newDraft(d *dispatch.Delivery, targets []sentTarget, results []notifier.Result, plan *Plan, bypasses bool) *Draft {
	x := &Draft{
		Delivery: d, States: make([]queued.State, len(targets)), Bypasses: bypasses, positions: d.To.Positions(), targets: targets,
		text: textSum(d),
	}
	m := MessageOf(d)
	m.Key, m.EarlierKey, m.Request = d.Idempotency.Key, d.Idempotency.EarlierKey, d.Idempotency.Request
	results = d.To.Report(&notifier.Report{Results: results}).Results
	jobs := make([]queue.Job, len(results))
	for i, j := range finalJobs(results) {
		jobs[i] = queue.Job{Status: j.Status, Attempts: j.Attempts, Result: j.Result}
	}
	x.Entry = &queue.Entry{Message: m, Jobs: jobs, Untrusted: d.To.Limits != nil}
	x.setJobs(q.Queue.Now())
	if plan != nil {
		plan.Decide(x)
	}
	if d.With != nil {
		x.Entry.Rules = queue.JoinRuled(x.Entry.Rules, d.With)
	}
	x.kept = q.Policy.Keep(x)
	// an alarm must not be lost because much waits
	x.Entry.Unlimited = d.Source == site.SourceExpect || d.Format == site.SourceRuler || d.Released || x.refused.only
	return x
}

// job returns the job of the i-th target.
func (x *Draft) job(i int) *queue.Job { return &x.Entry.Jobs[x.positions[i]] }

// setJobs sets the jobs of the targets that are not final or are given up.
func (x *Draft) setJobs(now time.Time) {
	chained := len(queued.NewChains(x.To.Targets, x.positions).All) > 0 // deliveries depend on each other
	for i := range x.targets {
		j := x.job(i)
		switch r := x.targets[i].result; {
		case r == nil || retryable(r):
			x.setJob(j, i, now)
			j.OwnAttempts = chained
		case r.Err != nil && !r.Optional && keepsRefused(x.Delivery):
			x.setRefused(j, i)
			j.OwnAttempts = chained
		case r.Err != nil:
			j.Destination = site.DestinationName(x.To.Targets[i], x.To.Limits)
			setIncident(x.Delivery, j)
		}
	}
	waiting := 0
	for i := range x.Entry.Jobs {
		if x.Entry.Jobs[i].Status.Waits() {
			waiting++
		}
	}
	x.refused.only = waiting > 0 && waiting == len(x.refused.targets)
}

// prepareJob sets what the queue knows of the i-th target before an attempt.
func (x *Draft) prepareJob(j *queue.Job, i int) {
	t := x.To.Targets[i]
	x.States[i] = deliveryState(x.Delivery, t, x.text)
	j.Destination, j.Host, j.Client = site.DestinationName(t, x.To.Limits), t.Host(), x.To.Limits != nil
	setIncident(x.Delivery, j)
}

// setJob sets the job of the i-th target, which is not final.
func (x *Draft) setJob(j *queue.Job, i int, now time.Time) {
	x.prepareJob(j, i)
	j.State = x.States[i].With(x.targets[i].progress)
	switch r := x.targets[i].result; {
	case r != nil:
		j.State = x.States[i].With(r.Progress)
		j.Result = queued.AppendTry(j.Result, nil, *r)
		j.TryAgain(now, r.RetryAfter)
	case x.targets[i].direct:
		j.Status = queue.Sending
	default:
		j.Status = queue.Queued
	}
}

// outcome returns the outcome of the delivery to the i-th target for the queue.
func (x *Draft) outcome(i int) queue.Outcome {
	state := x.States[i]
	state.Reported = true // as part of the outcome of the message
	return outcomeOf(x.Message, state, *x.targets[i].result, nil)
}

// MessageOf returns the message of d for the queue, without jobs.
func MessageOf(d *dispatch.Delivery) *queue.Message {
	m := d.Message
	text := queued.Text{
		Title: m.Title, Body: m.Body, Type: m.Type, Format: m.Format, Time: m.Time, Hops: m.Hops, Incident: m.Incident, Foreign: m.Foreign,
		Dialect: m.Dialect, Thread: m.Thread,
		Source: d.Source, Key: d.Key, Site: d.Site, Client: d.To.Transient, Trace: d.Trace, Asks: d.Question != nil,
		OpensAlert: d.OpenAlerts != nil,
	}
	for _, t := range d.To.Targets { // all devices have the same policy, and so have all others
		if site.IsDevice(t.String()) {
			text.DevicePolicy = t.Policy().Key()
		} else {
			text.Policy = t.Policy().Key()
		}
	}
	if d.Later != nil {
		text.Later = *d.Later
	}
	if d.To.Limits != nil {
		text.Untrusted, text.Targets = true, len(d.To.Targets)
	}
	r := &queue.Message{ID: d.ID, Created: m.Time, Summary: summaryOf(d)}
	for _, a := range m.Attachments {
		text.Files = append(text.Files, queued.File{Name: a.Name, ContentType: a.ContentType})
		r.Files = append(r.Files, queue.File{Size: a.Size, ReaderAt: a.ReaderAt()})
	}
	r.Body = text.Encode()
	return r
}

// summaryOf returns the summary of a message.
func summaryOf(d *dispatch.Delivery) []byte {
	s := finalSummaryOf(d)
	s.Chains = queued.NewChains(d.To.Targets, d.To.Positions())
	s.Known = d.KnownIncident()
	return s.Encode()
}

// finalSummaryOf returns the summary of a message that needs no chains, because it is
// final.
func finalSummaryOf(d *dispatch.Delivery) queued.Summary {
	s := queued.Summary{
		Site: d.Site, Incident: d.Message.Incident.Name, Key: d.Key, Source: d.Source, Type: d.Message.Type,
		Asks: d.Question != nil,
	}
	if d.Settings.Titles && d.Key != "" && !d.To.Transient {
		s.Title = queued.PlainTitle(d.Message, queued.MaxTitle)
	}
	if s.Title != "" || slices.ContainsFunc(d.To.Targets, func(t notifier.Target) bool { return site.IsDevice(t.String()) }) {
		s.At = d.At()
	}
	return s
}

// deliveryState returns the state of a delivery to t before its first attempt. text is the
// [textSum].
func deliveryState(d *dispatch.Delivery, t notifier.Target, text []byte) queued.State {
	s := queued.State{Key: d.Key, Source: d.Source, Site: d.Site, Incident: d.Message.Incident.Name, Tags: t.Tags, Text: text}
	if d.To.Transient {
		s.URL = t.URL()
	} else {
		s.Hash, s.Values = t.Hash(), t.Values
	}
	return s
}

// finalJobs returns the jobs of a message whose results are all final, including the results of
// URLs that cannot be used.
func finalJobs(results []notifier.Result) []queue.FinalJob {
	jobs := make([]queue.FinalJob, len(results))
	room := make([]byte, 0, queued.RoomForResult*len(results)) // one allocation for most results
	for i, r := range results {
		from := len(room)
		room = queued.AppendResult(room, r)
		j := &jobs[i]
		j.Status, j.Result = queue.Delivered, room[from:len(room):len(room)]
		if r.Err != nil {
			j.Status = queue.Failed
		}
		if r.Attempts > 0 {
			j.Attempts = 1
		}
	}
	return jobs
}
