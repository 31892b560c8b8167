package alerting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// errIncidentChanged is returned when an incident has changed since it was read.
var errIncidentChanged = fmt.Errorf("the incident: %w", queue.ErrChanged)

// maxChanges is the maximum number of times in a row that a change of records is tried
// again, because somebody else has changed them meanwhile.
const maxChanges = 1000

// incidentChange is a change of an incident, and of jobs of its steps, in one transaction.
type incidentChange struct {
	records  records
	now      time.Time
	incident *rules.Incident // as it is read, and as change leaves it; nil if there is none

	jobs map[queue.JobID]*queue.Job // that wait for a step, as they were before

	// silenced are jobs that silences hold of a message which is an incident of its own.
	silenced []rules.StepJob

	name     queue.Hash   // of the record of the incident
	known    []queue.Hash // the names of what destinations of jobs know
	tx       *queue.Tx
	statuses map[queue.JobID]queue.Status
	released []queue.Job
}

// change changes the incident in the record with a name, and returns it; nil if there is
// none. f changes the incident and jobs of its steps, and reports whether the record stays.
// It may be called several times.
func (i *Incidents) change(ctx context.Context, name queue.Hash, f func(*incidentChange) (stays bool)) (*rules.Incident, error) {
	return i.changeWith(ctx, name, nil, f)
}

// changeWith is change together with a change of other records, which may be nil.
func (i *Incidents) changeWith(ctx context.Context, name queue.Hash, with *queue.Ruled,
	f func(*incidentChange) (stays bool),
) (*rules.Incident, error) {
	for range maxChanges {
		c, err := i.prepare(ctx, name)
		if err != nil {
			return nil, err
		}
		held := make([]queue.Job, 0, len(c.jobs))
		for _, j := range c.jobs {
			held = append(held, *j)
		}
		err = i.outbox.Queue.Records.Apply(ctx, queue.JoinRuled(&queue.Ruled{
			Names: append([]queue.Hash{name}, c.known...), Held: held,
			Decide: func(tx *queue.Tx) error { return c.decide(tx, i.outbox.Queue.Now(), f) },
		}, with))
		if !errors.Is(err, errIncidentChanged) {
			return c.incident, err
		}
	}
	return nil, errIncidentChanged
}

// EndOwn resolves the incident that a message of the key with a place is of its own, in the same
// transaction as a change of other records. by is who has ended it. The incident may be gone.
func (i *Incidents) EndOwn(ctx context.Context, place string, message uuid.UUID, by string, with *queue.Ruled) error {
	conf, name := i.outbox.Current(), i.records.incidentName(place, dispatch.OwnIncident(message))
	ended := false
	x, err := i.changeWith(ctx, name, with, func(c *incidentChange) (stays bool) {
		if ended = c.incident != nil && c.incident.IsOpen(); ended {
			c.drop(slices.Concat(c.incident.Close(c.now, by), c.silenced), notifier.RuleAcknowledged)
		}
		return c.incident != nil
	})
	if err == nil && ended {
		i.tell(conf, event.IncidentResolved, x, by)
	}
	return err
}

// prepare reads what a change of an incident needs before its transaction.
func (i *Incidents) prepare(ctx context.Context, name queue.Hash) (*incidentChange, error) {
	x, err := incidentRecords.Read(ctx, i.outbox, name)
	if err != nil {
		return nil, err
	}
	c := &incidentChange{records: i.records, name: name}
	if c.jobs, err = i.stepJobs(ctx, x); err != nil {
		return nil, err
	}
	if c.silenced, err = i.silencedJobs(ctx, x); err != nil {
		return nil, err
	}
	for _, j := range c.jobs {
		r, err := queued.DecodeRuled(j.Ruled)
		if err != nil {
			continue
		}
		for _, s := range r.Subjects {
			if !slices.Contains(c.known, s.Name) {
				c.known = append(c.known, s.Name)
			}
		}
	}
	return c, nil
}

// stepJobs returns the jobs that wait for steps of an incident, which may be nil.
func (i *Incidents) stepJobs(ctx context.Context, x *rules.Incident) (map[queue.JobID]*queue.Job, error) {
	jobs := map[queue.JobID]*queue.Job{}
	if x == nil {
		return jobs, nil
	}
	entries := map[uuid.UUID]*queue.Entry{}
	for _, s := range x.Escalation.Waiting {
		e, ok := entries[s.Job.Message]
		if !ok {
			var err error
			if e, err = i.outbox.Queue.Get(ctx, s.Job.Message); err != nil && !errors.Is(err, queue.ErrNotFound) {
				return nil, err
			}
			entries[s.Job.Message] = e
		}
		if e != nil && s.Job.Index < len(e.Jobs) {
			jobs[s.Job] = &e.Jobs[s.Job.Index]
		}
	}
	return jobs, nil
}

// silencedJobs returns the jobs that silences hold if x, which may be nil, is a message that is an
// incident of its own.
func (i *Incidents) silencedJobs(ctx context.Context, x *rules.Incident) (jobs []rules.StepJob, err error) {
	if x == nil || !x.Own || !x.IsOpen() {
		return nil, nil
	}
	id, err := uuid.Parse(x.Name)
	if err != nil {
		return nil, nil // the record is damaged
	}
	e, err := i.outbox.Queue.Get(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range e.Jobs {
		if j := &e.Jobs[i]; j.Status == queue.Held && j.Rule == string(notifier.RuleSilenced) {
			jobs = append(jobs, rules.StepJob{Job: j.JobID})
		}
	}
	return jobs, nil
}

// decide runs in the transaction of the change.
func (c *incidentChange) decide(tx *queue.Tx, now time.Time, f func(*incidentChange) (stays bool)) error {
	c.tx, c.now, c.incident, c.released = tx, now, incidentRecords.Get(tx, c.name), nil
	if err := c.readStatuses(); err != nil {
		return err
	}
	if f(c) && c.incident != nil {
		c.records.putIncident(tx, c.name, c.incident)
	} else {
		tx.Delete(c.name)
	}
	c.noteReleased()
	return nil
}

// readStatuses reads the statuses of the jobs that the records mention. It returns an error
// if a job waits for a step that did not wait when the change was prepared.
func (c *incidentChange) readStatuses() (err error) {
	var ids []queue.JobID
	if c.incident != nil {
		for _, s := range slices.Concat(c.incident.Escalation.Waiting, c.incident.Escalation.Sent, c.silenced) {
			ids = append(ids, s.Job)
		}
	}
	for _, name := range c.known {
		if way := subjectRecords.GetOrNew(c.tx, name).Way; way.IsDigest() {
			ids = append(ids, way.Job)
		}
	}
	if c.statuses, err = statusesOf(ids, c.tx); err != nil || c.incident == nil {
		return err
	}
	for _, s := range c.incident.Escalation.Waiting {
		if c.statuses[s.Job] == queue.Held && c.jobs[s.Job] == nil {
			return errIncidentChanged
		}
	}
	return nil
}

// status returns the status of a job that the records mention.
func (c *incidentChange) status(id queue.JobID) queue.Status { return c.statuses[id] }

// noteReleased notes that the destinations of the jobs that are released know the incident
// from now on.
func (c *incidentChange) noteReleased() {
	for _, j := range c.released {
		r, err := queued.DecodeRuled(j.Ruled)
		if err != nil {
			continue
		}
		for _, s := range r.Subjects {
			subject, mark := subjectRecords.GetOrNew(c.tx, s.Name), s.Mark
			mark.Job = j.JobID
			subject.Paged(mark, func(id queue.JobID) bool { return c.statuses[id].Waits() })
			if forget := c.now.Add(time.Hour); subject.Forget.Before(forget) {
				subject.Forget = forget
			}
			putSubject(c.tx, s.Name, subject)
		}
	}
}

// release makes jobs of steps due.
func (c *incidentChange) release(jobs []rules.StepJob) {
	for _, s := range jobs {
		if j := c.jobs[s.Job]; j != nil && c.statuses[s.Job] == queue.Held {
			c.released = append(c.released, *j)
			c.tx.Release(*j)
		}
	}
}

// drop ends jobs of steps. Those that wait for another attempt are due now: it finds that
// it is not needed.
func (c *incidentChange) drop(jobs []rules.StepJob, rule notifier.Rule) {
	now := c.now
	for _, s := range jobs {
		switch c.statuses[s.Job] {
		case queue.Held:
			c.tx.Change(s.Job, func(j *queue.Job) { dropStep(j, queue.JobID{}, rule, now) })
		case queue.Queued:
			c.tx.Change(s.Job, func(j *queue.Job) { j.Due, j.NotBefore, j.Updated = now, time.Time{}, now })
		}
	}
}

// changeOpening is change for the opening of an incident that a caller has found. It
// returns [ErrNoIncident] if the incident is gone or was opened anew.
func (i *Incidents) changeOpening(ctx context.Context, at *StoredIncident, f func(*incidentChange)) (*rules.Incident, error) {
	same := false
	x, err := i.change(ctx, at.name, func(c *incidentChange) (stays bool) {
		if same = c.incident != nil && c.incident.ID == at.Incident.ID; same {
			f(c)
		}
		return c.incident != nil
	})
	if err == nil && (!same || x == nil) {
		return nil, ErrNoIncident
	}
	return x, err
}
