package alerting

import (
	"context"
	"slices"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Forgotten counts incidents that somebody has asked to forget.
type Forgotten struct {
	Forgotten int  `json:"forgotten"`
	Kept      int  `json:"kept"` // something about them is under way
	More      bool `json:"more"` // there may be others; the request can be sent again
}

// maxForgotten is the maximum number of incidents that one request forgets.
const maxForgotten = 2000

// ForgetIncident forgets an incident, and what destinations know of it, unless people are
// being told of it or somebody takes care of it. Nobody is told.
func (q *Incidents) Forget(ctx context.Context, at *StoredIncident) error {
	k, _, err := q.outbox.App.Load().KeyOfIncident(ctx, at.Incident)
	if err != nil {
		return err
	}
	gone, err := q.memory.forget(ctx, q.memory.recordsOf(at, k))
	if err == nil && !slices.ContainsFunc(gone, func(r remembered) bool { return r.name == at.name }) {
		return ErrUnderWay
	}
	return err
}

// ForgetIncidents forgets the incidents of keys with these places about which nothing is
// under way, or those of them in a stage.
func (q *Incidents) ForgetAll(ctx context.Context, places []string, stage notifier.IncidentState) (out Forgotten, err error) {
	slices.Sort(places)
	for _, place := range slices.Compact(places) {
		var found []StoredIncident
		var w *waiting
		for _, s := range rules.Stages {
			if stage != "" && s != stage {
				continue
			}
			err := q.memory.each(ctx, q.records.incidentGroup(place, s), func(r queue.NamedRecord) (err error) {
				x := decodeIncident(r.Data)
				if x == nil {
					return nil
				}
				if w == nil {
					if w, err = q.memory.whatWaits(ctx, x); err != nil {
						return err
					}
				}
				switch {
				case !w.quiet(x):
					out.Kept++
				case out.Forgotten+len(found) >= maxForgotten:
					out.More = true
				default:
					found = append(found, StoredIncident{r.Name, x})
				}
				return nil
			})
			if err != nil {
				return out, err
			}
		}
		for some := range slices.Chunk(found, shareBatch/2) {
			var batch []remembered
			for i := range some {
				batch = append(batch, q.memory.recordsOf(&some[i], w.key)...)
			}
			for part := range slices.Chunk(batch, 2*shareBatch) {
				gone, err := q.memory.forget(ctx, part)
				if err != nil {
					return out, err
				}
				for _, r := range gone {
					if r.id != "" {
						out.Forgotten++
					}
				}
			}
		}
	}
	return out, nil
}

// IsQuiet reports whether the record of an incident says that no step of it is under way,
// and that nobody takes care of it.
func IsQuiet(x *rules.Incident) bool {
	return !x.Lasts() && len(x.Escalation.Waiting)+len(x.Escalation.Sent) == 0
}
