package alerting

import (
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// jobEnds changes records when jobs end.
type jobEnds struct {
	outbox   *outbox.Outbox
	records  records
	receipts Receipts
}

// jobEnd is the end of a job that rules have decided about.
type jobEnd struct {
	*jobEnds
	job     *queue.Job
	ruled   queued.Ruled // what the job stores about the rules
	receipt queue.Hash   // the name of its record, if a device has to confirm that it has the message
}

// ended does what [Engine.Ended] says.
func (ends *jobEnds) ended(j *queue.Job) *queue.Ruled {
	if len(j.Ruled) == 0 {
		return nil
	}
	r, err := queued.DecodeRuled(j.Ruled)
	if err != nil || len(r.Subjects) == 0 && !r.Digest && r.Step == 0 {
		return nil
	}
	e := &jobEnd{jobEnds: ends, job: j, ruled: r}
	var names []queue.Hash
	for _, s := range r.Subjects {
		names = append(names, s.Name)
	}
	switch {
	case r.Digest:
		names = append(names, r.Lane)
	case r.Step != 0:
		names = append(names, r.Incident)
	}
	if r.Step != 0 && j.Status == queue.Delivered && site.IsDevice(queued.DecodeResult(j.Result).Destination) {
		e.receipt = ends.receipts.Name(site.DestinationHash(j.Destination), j.Message.String())
		names = append(names, e.receipt)
	}
	return &queue.Ruled{Names: names, Decide: e.decide}
}

// decide runs in the transaction that stores the end of the job.
func (e *jobEnd) decide(tx *queue.Tx) error {
	now := e.outbox.Queue.Now()
	e.noteKnown(tx, now)
	switch {
	case e.ruled.Digest:
		e.endDigest(tx, now)
	case e.ruled.Step != 0:
		e.endStep(tx, now)
	}
	return nil
}

// noteKnown notes what the destination knows now.
func (e *jobEnd) noteKnown(tx *queue.Tx, now time.Time) {
	for _, s := range e.ruled.Subjects {
		subject := subjectRecords.Get(tx, s.Name)
		if subject == nil {
			subject = &rules.Subject{Forget: now.Add(e.outbox.Queue.Keep())}
		}
		subject.Ended(s.Mark, e.job.Status == queue.Delivered)
		putSubject(tx, s.Name, subject)
	}
}

// endDigest makes due what waits in the lane until the digest has ended.
func (e *jobEnd) endDigest(tx *queue.Tx, now time.Time) {
	lane := laneRecords.GetOrNew(tx, e.ruled.Lane)
	lane.Ended(e.job.JobID, now)
	putLane(tx, e.ruled.Lane, lane, now, queue.Hash{})
}

// endStep notes the outcome of a job of a step in its incident. A device has the message
// when it has confirmed it.
func (e *jobEnd) endStep(tx *queue.Tx, now time.Time) {
	j := e.job
	delivered, decided := j.Status == queue.Delivered, true
	if e.receipt != (queue.Hash{}) {
		delivered, decided = e.receipts.Confirms(tx.Get(e.receipt), now)
	}
	x := incidentRecords.Get(tx, e.ruled.Incident)
	if x == nil {
		return
	}
	if decided {
		x.NoteOutcome(j.JobID, e.ruled.Step, delivered)
		x.Ended(now, j.JobID, delivered)
	} else {
		x.EndedUnconfirmed(now, rules.StepJob{Job: j.JobID, Step: e.ruled.Step, Target: site.DestinationHash(j.Destination)})
	}
	e.records.putIncident(tx, e.ruled.Incident, x)
}
