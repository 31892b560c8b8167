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
	job      *queue.Job
	ruled    queued.Ruled // what the job stores about the rules
	receipt  bool         // a device has to confirm that it has the message
	names    []queue.Hash // of what destinations know, of the lane or the incident, and of the receipt
	subjects int          // how many of the names are of what destinations know
}

// ended is [Engine.Ended].
func (ends *jobEnds) ended(j *queue.Job) *queue.Ruled {
	if len(j.Ruled) == 0 {
		return nil
	}
	r, err := queued.DecodeRuled(j.Ruled)
	if err != nil || len(r.Subjects) == 0 && !r.Digest && r.Step == 0 {
		return nil
	}
	e := &jobEnd{jobEnds: ends, job: j, ruled: r, subjects: len(r.Subjects)}
	for _, s := range r.Subjects {
		e.names = append(e.names, s.Name)
	}
	switch {
	case r.Digest:
		e.names = append(e.names, r.Lane)
	case r.Step != 0:
		e.names = append(e.names, r.Incident)
	}
	e.receipt = r.Step != 0 && j.Status == queue.Delivered && site.IsDevice(queued.DecodeResult(j.Result).Destination)
	if e.receipt {
		e.names = append(e.names, ends.receipts.Name(site.DestinationHash(j.Destination), j.Message.String()))
	}
	return &queue.Ruled{Names: e.names, DecideOld: e.decide}
}

// decide is that of a [queue.Ruled].
func (e *jobEnd) decide(old [][]byte, _ queue.StatusFunc) (*queue.RuledChange, error) {
	now := e.outbox.Queue.Now()
	records := make([]queue.Record, len(old))
	e.noteKnown(now, old, records)
	switch rest := old[e.subjects:]; {
	case e.ruled.Digest:
		e.endDigest(now, rest, records[e.subjects:])
	case e.ruled.Step != 0:
		e.endStep(now, rest, records[e.subjects:])
	}
	return &queue.RuledChange{Records: records}, nil
}

// noteKnown notes what the destination knows now.
func (e *jobEnd) noteKnown(now time.Time, old [][]byte, records []queue.Record) {
	for i, s := range e.ruled.Subjects {
		subject := decodeSubject(old[i])
		if len(old[i]) == 0 {
			subject.Forget = now.Add(e.outbox.Queue.Keep())
		}
		subject.Ended(s.Mark, e.job.Status == queue.Delivered)
		records[i] = subjectRecord(subject)
	}
}

// endDigest makes due what waits in the lane until the digest has ended.
func (e *jobEnd) endDigest(now time.Time, old [][]byte, records []queue.Record) {
	lane := decodeLane(old[0])
	lane.Ended(e.job.JobID, now)
	records[0] = laneRecord(lane, now)
}

// endStep notes the outcome of a job of a step in its incident. A device has the message
// when it has confirmed it.
func (e *jobEnd) endStep(now time.Time, old [][]byte, records []queue.Record) {
	j := e.job
	delivered, decided := j.Status == queue.Delivered, true
	if e.receipt {
		records[1] = e.receipts.Keep(old[1])
		delivered, decided = e.receipts.Confirms(old[1], now)
	}
	x := decodeIncident(old[0])
	if x == nil {
		return
	}
	if decided {
		x.NoteOutcome(j.JobID, e.ruled.Step, delivered)
		x.Ended(now, j.JobID, delivered)
	} else {
		x.EndedUnconfirmed(now, rules.StepJob{Job: j.JobID, Step: e.ruled.Step, Target: site.DestinationHash(j.Destination)})
	}
	records[0] = e.records.incident(x)
}
