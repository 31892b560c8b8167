package alerting

import (
	"context"
	"slices"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
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

// Forget forgets an incident, and what destinations know of it, unless people are
// being told of it or somebody takes care of it. Nobody is told. It goes on if who asks for it goes away.
func (i *Incidents) Forget(ctx context.Context, at *StoredIncident) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ShareTime)
	defer cancel()
	k, _, err := i.outbox.Current().KeyOfIncident(ctx, at.Incident)
	if err != nil {
		return err
	}
	gone, err := i.memory.forget(ctx, i.memory.recordsOf(at, k))
	if err == nil && !slices.ContainsFunc(gone, func(r remembered) bool { return r.name == at.name }) {
		return ErrUnderWay
	}
	return err
}

// ForgetAll forgets the incidents of keys with these places about which nothing is under way. With
// a stage, it forgets only the incidents in that stage. Nobody is told. It goes on if who asks for it
// goes away.
func (i *Incidents) ForgetAll(ctx context.Context, places []string, stage notifier.IncidentState) (out Forgotten, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ShareTime)
	defer cancel()
	conf := i.outbox.Current()
	slices.Sort(places)
	for _, place := range slices.Compact(places) {
		found, k, err := i.forgettable(ctx, conf, place, stage, &out)
		if err != nil {
			return out, err
		}
		for some := range slices.Chunk(found, shareBatch/2) {
			var batch []remembered
			for n := range some {
				batch = append(batch, i.memory.recordsOf(&some[n], k)...)
			}
			for part := range slices.Chunk(batch, 2*shareBatch) {
				gone, err := i.memory.forget(ctx, part)
				if err != nil {
					return out, err
				}
				out.Forgotten += countIncidents(gone)
			}
		}
	}
	return out, nil
}

// forgettable returns the key with a place, and its incidents in a stage that can be forgotten; ""
// stands for all stages. It counts the others in out.
func (i *Incidents) forgettable(ctx context.Context, conf *outbox.Configuration, place string, stage notifier.IncidentState,
	out *Forgotten,
) (found []StoredIncident, k *site.Key, err error) {
	var w *waiting
	look := func(r queue.NamedRecord) (err error) {
		x := incidentRecords.Decode(r.Data)
		if x == nil {
			return nil
		}
		if w == nil {
			if w, err = i.memory.whatWaits(ctx, conf, x); err != nil {
				return err
			}
			k = w.key
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
	}
	for _, s := range rules.Stages {
		if stage != "" && s != stage {
			continue
		}
		if err := i.memory.each(ctx, i.records.incidentGroup(place, s), look); err != nil {
			return nil, nil, err
		}
	}
	return found, k, nil
}

// IsQuiet reports whether the record of an incident says that no step of it is under way,
// and that nobody takes care of it.
func IsQuiet(x *rules.Incident) bool {
	return !x.Lasts() && !hasSteps(x)
}

// hasSteps reports whether a step of an incident is under way, or others follow.
func hasSteps(x *rules.Incident) bool {
	return x.Escalating() || len(x.Escalation.Waiting)+len(x.Escalation.Sent) > 0
}
