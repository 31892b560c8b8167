package outbox

import (
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// MakeEntry sets the entry to store. results are those that resultsSoFar
// returns. The caller holds the lock, or no delivery is in progress.
func (s *Submission) MakeEntry(results []notifier.Result) {
	m := MessageOf(&s.Delivery)
	m.Key, m.Request = s.Idempotency.Key, s.Idempotency.Request
	s.states, s.refused, s.text = make([]queued.State, len(s.targets)), refused{}, textSum(&s.Delivery)
	results = s.To.Report(&notifier.Report{Results: results}).Results
	jobs := appendFinalJobs(make([]queue.Job, 0, len(results)), make([]byte, 0, queued.RoomForResult*len(results)), results)
	s.Entry = &queue.Entry{Message: m, Jobs: jobs, Untrusted: s.To.Limits != nil}
	chained := len(queued.NewChains(s.To.Targets, s.To.Positions()).All) > 0 // deliveries depend on each other
	for i, at := range s.To.Positions() {
		j := &s.Entry.Jobs[at]
		switch r := s.targets[i].result; {
		case r == nil || retryable(r):
			s.setJob(j, i)
			j.OwnAttempts = chained
		case r.Err != nil && !r.Optional && keepsRefused(&s.Delivery):
			s.setRefused(j, i)
			j.OwnAttempts = chained
		case r.Err != nil:
			j.Destination = s.destination(i)
			setIncident(&s.Delivery, j)
		}
	}
	waiting := 0
	for i := range s.Entry.Jobs {
		if s.Entry.Jobs[i].Status.Waits() {
			waiting++
		}
	}
	s.refused.only = waiting > 0 && waiting == len(s.refused.targets)
	d := &Draft{&s.Delivery, s.Entry, s.states, s.bypasses}
	if s.Plan == nil {
		s.Plan = s.q.Policy.Plan(&s.Delivery, false)
	}
	if s.Plan != nil {
		s.Plan.Decide(d)
	}
	if s.With != nil {
		s.Entry.Rules = queue.JoinRuled(s.Entry.Rules, s.With)
	}
	s.kept = s.q.Policy.Keep(d)
	s.Entry.Unlimited = s.Source == site.SourceExpect || s.refused.only // an alarm must not be lost because much waits
}

// prepareJob sets what the queue knows of the i-th target before an attempt.
func (s *Submission) prepareJob(j *queue.Job, i int) {
	t := s.To.Targets[i]
	s.states[i] = deliveryState(&s.Delivery, t, s.text)
	j.Destination, j.Host, j.Client = s.destination(i), t.Host(), s.To.Limits != nil
	setIncident(&s.Delivery, j)
}

// setJob sets the job of the i-th target, which is not final.
func (s *Submission) setJob(j *queue.Job, i int) {
	s.prepareJob(j, i)
	j.State = s.states[i].With(s.targets[i].progress)
	switch r := s.targets[i].result; {
	case r != nil:
		j.State = s.states[i].With(r.Progress)
		j.Result = queued.AppendTry(j.Result, nil, *r)
		j.TryAgain(s.q.Queue.Now(), r.RetryAfter)
	case s.targets[i].direct:
		j.Status = queue.Sending
	default:
		j.Status = queue.Queued
	}
}

// MessageOf returns the message of d for the queue, without jobs.
func MessageOf(d *dispatch.Delivery) *queue.Message {
	m := d.Message
	text := queued.Text{
		Title: m.Title, Body: m.Body, Type: m.Type, Format: m.Format, Time: m.Time, Hops: m.Hops, Incident: m.Incident, Foreign: m.Foreign, Dialect: m.Dialect,
		Source: d.Source, Key: d.Key, Site: d.Site, Client: d.To.Transient, Trace: d.Trace,
	}
	for _, t := range d.To.Targets { // all devices have the same policy, and so have all others
		if site.IsDevice(t.String()) {
			text.DevicePolicy = t.Policy().Key()
		} else {
			text.Policy = t.Policy().Key()
		}
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
	return queued.Summary{Site: d.Site, Incident: d.Message.Incident.Name, Key: d.Key, Source: d.Source, Type: d.Message.Type}
}

// deliveryState returns the state of a delivery to t before its first attempt. text is the
// [textSum].
func deliveryState(d *dispatch.Delivery, t notifier.Target, text []byte) queued.State {
	s := queued.State{Key: d.Key, Source: d.Source, Site: d.Site, Incident: d.Message.Incident.Name, Tags: t.Tags, Text: text}
	if d.To.Transient {
		s.URL = t.URL()
	} else {
		s.Hash = t.Hash()
	}
	return s
}

// appendFinalJobs appends the jobs of a message whose results are all final,
// including the results of URLs that cannot be used. It stores the results in
// room if they fit.
func appendFinalJobs(jobs []queue.Job, room []byte, results []notifier.Result) []queue.Job {
	for _, r := range results {
		from := len(room)
		room = queued.AppendResult(room, r)
		j := queue.Job{Status: queue.Delivered, Result: room[from:len(room):len(room)]}
		if r.Err != nil {
			j.Status = queue.Failed
		}
		if r.Attempts > 0 {
			j.Attempts = 1
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// queuedNotYet returns the result of a delivery to t whose outcome is not known
// yet.
func queuedNotYet(t notifier.Target) notifier.Result {
	return notifier.Result{Service: t.Service(), Destination: t.String(), Tags: t.Tags, Status: api.StatusQueued, Optional: t.Optional()}
}
