package alerting

import (
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

// Ended returns what the rules change when a job ends.
func (q *jobEnds) ended(j *queue.Job) *queue.Ruled {
	if len(j.Ruled) == 0 {
		return nil
	}
	r, err := queued.DecodeRuled(j.Ruled)
	if err != nil || len(r.Subjects) == 0 && !r.Digest && r.Step == 0 {
		return nil
	}
	u := new(queue.Ruled)
	for _, s := range r.Subjects {
		u.Names = append(u.Names, s.Name)
	}
	if r.Digest {
		u.Names = append(u.Names, r.Lane)
	} else if r.Step != 0 {
		u.Names = append(u.Names, r.Incident)
	}
	confirms := r.Step != 0 && j.Status == queue.Delivered && site.IsDevice(queued.DecodeResult(j.Result).Destination)
	if confirms {
		u.Names = append(u.Names, q.receipts.Name(site.DestinationHash(j.Destination), j.Message.String()))
	}
	u.Decide = func(old [][]byte, _ statusFunc) (*queue.RuledChange, error) {
		now := q.outbox.Queue.Now()
		c := &queue.RuledChange{Records: make([]queue.Record, len(old))}
		for i, s := range r.Subjects {
			subject := decodeSubject(old[i])
			if len(old[i]) == 0 {
				subject.Forget = now.Add(q.outbox.App.Load().QueueSettings.Keep)
			}
			subject.Ended(s.Mark, j.Status == queue.Delivered)
			c.Records[i] = subjectRecord(subject)
		}
		if r.Digest {
			i := len(r.Subjects)
			lane := decodeLane(old[i])
			lane.Ended(j.JobID, now)
			c.Records[i] = laneRecord(lane, now)
		} else if r.Step != 0 {
			i := len(r.Subjects)
			if x := decodeIncident(old[i]); x != nil {
				delivered, decided := j.Status == queue.Delivered, true
				if confirms {
					c.Records[i+1] = q.receipts.Keep(old[i+1])
					delivered, decided = q.receipts.Confirms(old[i+1], now)
				}
				if decided {
					x.NoteOutcome(j.JobID, r.Step, delivered)
					x.Ended(now, j.JobID, delivered)
				} else {
					x.EndedUnconfirmed(now, rules.StepJob{Job: j.JobID, Step: r.Step, Target: site.DestinationHash(j.Destination)})
				}
				c.Records[i] = q.records.incident(x)
			} else if confirms {
				c.Records[i+1] = q.receipts.Keep(old[i+1])
			}
		}
		return c, nil
	}
	return u
}
