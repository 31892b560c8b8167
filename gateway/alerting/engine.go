package alerting

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Engine applies the rules of keys to the messages of an outbox: to a new message (Plan),
// before an attempt to send it (Before), when a job has ended (Ended), and as time passes
// (Due, Recheck, Refresh). Front ends use its Incidents and Silences.
type Engine struct {
	outbox.NoForget

	Incidents *Incidents
	Silences  *Silences

	outbox  *outbox.Outbox
	planner *planner
	lanes   *lanes
	steps   *steps
	jobEnds *jobEnds
	memory  *memory
	shares  *shares
}

// Receipts are what the engine needs to know of the receipts of devices: a device has a
// message when it has confirmed it, not when its push service has taken it.
type Receipts struct {
	// Name returns the name of the record of the receipt for a message at the destination
	// with a hash.
	Name func(target, message string) queue.Hash

	// Confirms reports whether a receipt confirms that the device has shown the message;
	// decided is false as long as it may do so later.
	Confirms func(record []byte, now time.Time) (delivered, decided bool)
}

// New returns the engine of an outbox. The queue of the outbox may be set later.
func New(o *outbox.Outbox, receipts Receipts) *Engine {
	r := records{o}
	s := &Silences{outbox: o, records: r}
	s.usage = o.NewUsage(KindSilences, outbox.Weigh, func(ctx context.Context, place string, f func([]byte)) error {
		b, err := o.Queue.Records.Get(ctx, r.silencesName(place))
		f(b)
		return err
	})
	l := &lanes{outbox: o, silences: s}
	s.lanes = l
	m := &memory{outbox: o, records: r, silences: s}
	i := &Incidents{outbox: o, records: r, memory: m, silences: s}
	sh := &shares{outbox: o, records: r, memory: m}
	return &Engine{
		Incidents: i,
		Silences:  s,
		outbox:    o,
		planner:   &planner{outbox: o, records: r, incidents: i, silences: s, shares: sh},
		lanes:     l,
		steps:     &steps{outbox: o, records: r, incidents: i, silences: s, lanes: l},
		jobEnds:   &jobEnds{outbox: o, records: r, receipts: receipts},
		memory:    m,
		shares:    sh,
	}
}

// Plan returns what rules decide about a message, or nil if they decide nothing. asked
// means that silences may keep the message.
func (e *Engine) Plan(d *dispatch.Delivery, asked bool) *outbox.Plan { return e.planner.plan(d, asked) }

// Before reads the incident of a job of a message that escalates, if there is one, before an
// attempt. The outcome is not nil if the job belongs to a step and is not sent, because somebody
// takes care of the incident, or it is resolved.
func (e *Engine) Before(ctx context.Context, j *queue.Job) (*rules.Incident, *queue.Outcome) {
	return e.steps.before(ctx, j)
}

// Ended returns what the rules change when a job ends, or nil.
func (e *Engine) Ended(_ *outbox.Configuration, j *queue.Job) *queue.Ruled { return e.jobEnds.ended(j) }

// Kinds returns the kinds of what rules and silences remember.
func (e *Engine) Kinds() []*outbox.Kind {
	return []*outbox.Kind{KindIncident, KindIncidentID, KindSubject, KindLane, KindSilences, KindSilencesVersion}
}

// Arm takes over the silences of the configuration.
func (e *Engine) Arm(ctx context.Context, conf *outbox.Configuration) error {
	return e.Silences.arm(ctx, conf)
}

// Punctual returns a function that reports whether a rule or a silence may have something to do in
// time. It always does if a key of the configuration, or the saved keys of a site, have rules.
func (e *Engine) Punctual(conf *outbox.Configuration) func() bool {
	for _, s := range conf.All() {
		for _, k := range s.Keys {
			if k.Rules != nil {
				return outbox.Always
			}
		}
		if !s.Saved.Rules.Empty() {
			return outbox.Always
		}
	}
	return e.Silences.cache.isNear.Load
}

// Due does what is due in a record. crowded means that there are too many records: what is
// dispensable is removed.
func (e *Engine) Due(ctx context.Context, conf *outbox.Configuration, name queue.Hash, data []byte, crowded bool) error {
	switch outbox.KindOf(data) {
	case KindLane:
		if lane := laneRecords.DecodeOrNew(data); crowded && (len(lane.Items) > 0 || lane.Silenced()) {
			return nil
		}
		return e.lanes.release(ctx, conf, name)
	case KindSubject:
		return e.memory.dueSubject(ctx, name, crowded)
	case KindSilences:
		if crowded {
			return nil
		}
		return e.Silences.due(ctx, conf, data)
	case KindIncident:
		return e.steps.due(ctx, conf, name, crowded)
	case KindIncidentID:
		return e.Incidents.dueID(ctx, name, data)
	}
	return nil
}

// Turn returns the turn of a record. The open incidents of a key share one turn, and its resolved
// ones another: these only have to be forgotten, and do not delay the open ones.
func (e *Engine) Turn(name queue.Hash, record []byte) string {
	switch x := incidentRecords.Decode(record); {
	case x == nil:
		return outbox.Spread(name, "")
	case !x.IsOpen():
		return outbox.Spread(name, PlaceOfIncident(x)+"\x00over")
	default:
		return outbox.Spread(name, PlaceOfIncident(x))
	}
}

// Ahead reports whether a record has silences that were made when the clock was ahead, or an open
// incident that changed then. The acknowledgement of such an incident would not end.
func (e *Engine) Ahead(record []byte, now time.Time) bool {
	if x := incidentRecords.Decode(record); x != nil {
		return x.IsOpen() && (queue.WrittenAhead(x.Changed, now) || queue.WrittenAhead(x.Acknowledged.At, now))
	}
	return silencesRecords.DecodeOrNew(record).IsAhead(now)
}

// Recheck releases jobs that a damaged or lost record has held, and looks at the records
// that hold the others. It returns the jobs that other rooms hold.
func (e *Engine) Recheck(ctx context.Context, conf *outbox.Configuration, held []queue.Job) (others []queue.Job) {
	lanes, incidents := map[queue.Hash][]queue.Job{}, map[queue.Hash][]queue.Job{}
	for _, j := range held {
		switch notifier.Rule(j.Rule) {
		case notifier.RuleHeld, notifier.RuleDigested, notifier.RuleSilenced, notifier.RuleEscalating:
		default:
			others = append(others, j)
			continue
		}
		r, err := queued.DecodeRuled(j.Ruled)
		if err != nil {
			r = queued.Ruled{}
		}
		if r.Incident != (queue.Hash{}) && j.Rule == string(notifier.RuleEscalating) {
			incidents[r.Incident] = append(incidents[r.Incident], j)
			continue
		}
		lanes[r.Lane] = append(lanes[r.Lane], j)
	}
	e.steps.recheck(ctx, conf, incidents)
	e.lanes.recheck(ctx, conf, lanes)
	return others
}

// Refresh reads the silences, and keeps what is remembered of each key within its share of the
// queue.
func (e *Engine) Refresh(ctx context.Context, conf *outbox.Configuration) {
	e.Silences.Refresh(ctx, conf)
	if err := e.shares.watch(ctx, conf); err != nil && ctx.Err() == nil {
		e.outbox.Log.Debug("what rules remember cannot be compared with the share of each key", zap.Error(err))
	}
}

// MakeRoom forgets what keys remember beyond their share, because the queue was full at the time
// full. It reports whether there may be room since then.
func (e *Engine) MakeRoom(ctx context.Context, full time.Time) bool {
	return e.shares.makeRoom(ctx, e.outbox.Current(), full)
}

// maxStepJobs is the maximum number of deliveries in all rounds of a message that
// escalates.
const maxStepJobs = 500
