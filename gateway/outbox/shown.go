package outbox

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// A client sees what its message has come to: the results of deliveries that have ended,
// and the others as queued.

// streamQueued sends the client the state of the targets that are queued from
// the beginning.
func (s *submission) streamQueued() {
	for i := range s.targets {
		if s.d.Done != nil && !s.targets[i].direct {
			s.d.Done(i, s.shown(i))
		}
	}
}

// retryable reports whether the queue tries again after a result.
func retryable(r *notifier.Result) bool { return r != nil && r.Err != nil && r.Temporary }

// repeats reports whether the queue tries again after a result of this message.
func (s *submission) repeats(r *notifier.Result) bool { return retryable(r) && !s.unstored }

// errNotStored is the error of a delivery in progress that the queue could not
// store.
var errNotStored = errors.New("it is being sent, but the gateway cannot store it for another attempt")

// shown returns the result of the i-th target as the client sees it. The caller
// holds the lock, or no delivery is in progress.
func (s *submission) shown(i int) notifier.Result {
	stored := s.err == nil
	switch r := s.targets[i].result; {
	case r == nil:
		out := queuedNotYet(s.d.To.Targets[i])
		switch {
		case !stored:
			out.Status, out.Err = notifier.Failed, errNotStored
		case s.draft != nil && s.draft.Entry.Rules != nil:
			ruled(&out, s.draft.job(i))
		}
		return out
	case stored && s.repeats(r):
		out := *r
		out.Status = message.StatusQueued
		return out
	default:
		return *r
	}
}

// resultsSoFar returns the results of the targets as the client sees them. The
// caller holds the lock, or no delivery is in progress.
func (s *submission) resultsSoFar() []notifier.Result {
	results := make([]notifier.Result, len(s.targets))
	for i := range results {
		results[i] = s.shown(i)
	}
	return results
}

// reportOn returns the report on these results of the targets. records are the records of
// the deliveries, or nil if they are not known.
func (s *submission) reportOn(results []notifier.Result, records []notifier.Record) *notifier.Report {
	report := &notifier.Report{Results: results, Records: records}
	for _, r := range report.Results {
		switch {
		case r.Status == message.StatusQueued:
			report.Records = append(report.Records, message.QueuedRecord(r))
		case records == nil:
			report.Records = append(report.Records, message.ResultRecord(r))
		}
	}
	return dispatch.ReportOf(s.d.To, report)
}

// queuedNotYet returns the result of a delivery to t whose outcome is not known
// yet.
func queuedNotYet(t notifier.Target) notifier.Result {
	return notifier.Result{Service: t.Service(), Destination: t.String(), Name: t.Destination.Name(), Tags: t.Tags, Status: message.StatusQueued, Optional: t.Optional()}
}

// ruled sets the result of a job that a rule has decided not to send now.
func ruled(r *notifier.Result, j *queue.Job) {
	if j.Rule == "" {
		return
	}
	switch j.Status {
	case queue.Held:
		r.Status, r.Rule, r.Until = message.StatusQueued, notifier.Rule(j.Rule), j.Due
		if r.Rule == notifier.RuleEscalating {
			r.Step = queued.Step(j)
		}
	case queue.Superseded:
		r.Status, r.Rule, r.Err = notifier.Skipped, notifier.Rule(j.Rule), nil
		if j.By.Message != (uuid.UUID{}) {
			r.By = j.By.Message.String()
		}
	}
}

// inboxRecord returns the record for a client whose message has no destination besides
// the inbox.
func inboxRecord(d *dispatch.Delivery) notifier.Record {
	text := "Kept in the inbox of the key " + d.Key + " until " + time.Now().Add(d.Inbox).UTC().Format(time.RFC3339) + "."
	return notifier.Record{Time: time.Now(), Level: notifier.LevelInfo, Text: text}
}
