package alerting

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// DueRecord does what is due in a record of alerts, and reports whether it is one.
func (q *Engine) DueRecord(ctx context.Context, name queue.Hash, data []byte, crowded bool) (ours bool, err error) {
	switch data[0] {
	case outbox.KindLane:
		if lane := decodeLane(data); crowded && (len(lane.Items) > 0 || lane.Silenced()) {
			return true, nil
		}
		return true, q.releaseLane(ctx, name)
	case outbox.KindSubject:
		return true, q.forgetSubject(ctx, name, crowded)
	case outbox.KindSilences:
		if crowded {
			return true, nil
		}
		return true, q.dueSilences(ctx, data)
	case outbox.KindIncident:
		return true, q.dueIncident(ctx, name, crowded)
	case outbox.KindIncidentID:
		return true, q.forgetIncidentID(ctx, name, data)
	}
	return false, nil
}

// forgetSubject removes a subject that matters no more.
func (q *Engine) forgetSubject(ctx context.Context, name queue.Hash, crowded bool) error {
	var forgotten *rules.Subject
	err := q.Queue.Apply(ctx, &queue.Ruled{Names: []queue.Hash{name}, Decide: func(old [][]byte, status func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		now := q.Queue.Now()
		s := decodeSubject(old[0])
		forgotten = nil
		if next := s.Next.Job; next != (queue.JobID{}) {
			statuses, err := status([]queue.JobID{next})
			if err != nil {
				return nil, err
			}
			if statuses[0].Waits() {
				s.Forget = now.Add(time.Hour)
				return &queue.RuledChange{Records: []queue.Record{subjectRecord(s)}}, nil
			}
		}
		c := &queue.RuledChange{Records: make([]queue.Record, 1)}
		if s.Forget.After(now) && !crowded && len(old[0]) > 0 {
			c.Records[0] = subjectRecord(s)
		} else {
			forgotten = s
		}
		return c, nil
	}})
	if err == nil && forgotten != nil && forgotten.Repeats > 0 {
		q.Log.Info("repetitions that dedupe has left out are told by no message, because none has followed that says otherwise",
			zap.String("key", forgotten.Key), zap.Int("messages", forgotten.Repeats), zap.Time("since", forgotten.Since))
	}
	return err
}

// heldJob is a job that a lane holds, as it was read before a transaction.
type heldJob struct {
	queue.Job
	ruled queued.Ruled
}

// errLaneChanged is returned when a lane has changed since it was read.
var errLaneChanged = errors.New("what is held has changed meanwhile")

// releaseLane sends what a lane holds no longer.
func (q *Engine) releaseLane(ctx context.Context, name queue.Hash) error {
	for range maxReleases {
		more, err := q.releaseOnce(ctx, name)
		if err != nil || !more {
			return err
		}
	}
	return errLaneChanged // the rest is released later
}

// maxReleases is the maximum number of times that a lane is looked at in a row, which
// others may change meanwhile.
const maxReleases = 1000

// releaseOnce sends what a lane releases as one message. It reports whether there may
// be more.
func (q *Engine) releaseOnce(ctx context.Context, name queue.Hash) (more bool, err error) {
	record, err := q.Queue.CallersRecord(ctx, name)
	if err != nil || record == nil {
		return false, err
	}
	now := q.Queue.Now()
	lane := decodeLane(record)
	jobs, err := q.jobsOf(ctx, lane)
	if err != nil {
		return false, err
	}
	var state queued.State
	for _, x := range lane.Items {
		if j := jobs[x.Job]; j != nil && j.Status == queue.Held {
			if state.Decode(j.State) == nil {
				break
			}
		}
	}
	if state.Key == "" && len(lane.Origin) > 0 && state.Decode(lane.Origin) != nil {
		state = queued.State{}
	}
	var r *rules.Rules
	t, err := q.App.Load().FindQueued(ctx, state.Site, state.Key, state.Hash)
	if e, ok := errors.AsType[*api.Error](err); ok && e.Status == http.StatusServiceUnavailable {
		return false, err // saved keys cannot be read
	}
	gone := err != nil
	if !gone {
		if r = t.Rules.For(t.Target.Tags); site.Numbered(t.Target.Tags) && !r.IsStep() {
			r = nil
		}
		if r, err = q.setSilences(ctx, r, lane, t, state.Site); err != nil {
			return false, err
		}
	}
	held := func(id queue.JobID) bool {
		return jobs[id] != nil && jobs[id].Status == queue.Held && jobs[id].Rule != ""
	}
	waits := func(id queue.JobID) bool {
		e, err := q.Queue.Get(ctx, id.Message)
		return err == nil && id.Index < len(e.Jobs) && e.Jobs[id.Index].Status.Waits()
	}
	way := func(subject string) bool {
		b, err := q.Queue.CallersRecord(ctx, queue.Hash([]byte(subject)))
		if err != nil {
			return true
		}
		job := decodeSubject(b).Way.Job
		return job != queue.JobID{} && waits(job)
	}
	group := r.Release(now, lane, held, waits, way)
	p := &release{q: q, now: now, name: name, key: state.Key, record: record, lane: lane, group: group, jobs: jobs}
	switch {
	case group == nil || gone || group.Single() || site.Numbered(t.Target.Tags) && !r.IsStep(): // the order of the numbers is that of each message
		err = p.releaseJobs(ctx)
	default:
		err = p.sendDigest(ctx, t, &state)
	}
	if p.changed {
		return true, nil
	}
	return group != nil, err
}

// jobsOf returns the jobs of the items of a lane, as far as they are there.
func (q *Engine) jobsOf(ctx context.Context, lane *rules.Lane) (map[queue.JobID]*heldJob, error) {
	jobs := map[queue.JobID]*heldJob{}
	for _, x := range lane.Items {
		e, err := q.Queue.Get(ctx, x.Job.Message)
		if errors.Is(err, queue.ErrNotFound) || err == nil && x.Job.Index >= len(e.Jobs) {
			continue
		}
		if err != nil {
			return nil, err
		}
		j := &heldJob{Job: e.Jobs[x.Job.Index]}
		if j.ruled, err = queued.DecodeRuled(j.Ruled); err == nil {
			jobs[x.Job] = j
		}
	}
	return jobs, nil
}

// release is a group that a lane releases, and the lane without it.
type release struct {
	q       *Engine
	now     time.Time
	name    queue.Hash
	key     string // of the messages
	record  []byte // of the lane before
	lane    *rules.Lane
	group   *rules.Group
	jobs    map[queue.JobID]*heldJob
	changed bool // the lane was changed by somebody else meanwhile

	subjects []queue.Hash // that the group is about
	newest   []rules.Mark // of each
}

// names returns the names of the records that change.
func (p *release) names() []queue.Hash {
	if p.group != nil {
		for _, x := range p.group.Items {
			if x.Subject == "" {
				continue
			}
			name := queue.Hash([]byte(x.Subject))
			if i := slices.Index(p.subjects, name); i >= 0 {
				p.newest[i] = x.Mark()
			} else {
				p.subjects, p.newest = append(p.subjects, name), append(p.newest, x.Mark())
			}
		}
	}
	return append([]queue.Hash{p.name}, p.subjects...)
}

// check returns an error if the lane or one of the jobs has changed.
func (p *release) check(old [][]byte, status func([]queue.JobID) ([]queue.Status, error)) error {
	p.changed = !bytes.Equal(old[0], p.record)
	if p.changed {
		return errLaneChanged
	}
	if p.group == nil || len(p.group.Items) == 0 {
		return nil
	}
	ids := make([]queue.JobID, len(p.group.Items))
	for i, x := range p.group.Items {
		ids[i] = x.Job
	}
	statuses, err := status(ids)
	if err != nil {
		return err
	}
	if p.changed = slices.ContainsFunc(statuses, func(s queue.Status) bool { return s != queue.Held }); p.changed {
		return errLaneChanged
	}
	return nil
}

// records returns the new records. job is that of the digest, or nil.
func (p *release) records(old [][]byte, job *queue.JobID) []queue.Record {
	records := []queue.Record{laneRecord(p.lane, p.now)}
	for i, m := range p.newest {
		if job != nil {
			m = m.In(*job)
		}
		s := decodeSubject(old[i+1])
		s.Sent(m)
		if forget := p.now.Add(time.Hour); s.Forget.Before(forget) {
			s.Forget = forget
		}
		records = append(records, subjectRecord(s))
	}
	return records
}

// releaseJobs makes the jobs of the group due themselves.
func (p *release) releaseJobs(ctx context.Context) error {
	u := &queue.Ruled{Names: p.names()}
	if p.group != nil {
		for _, x := range p.group.Items {
			u.Held = append(u.Held, p.jobs[x.Job].Job)
		}
	}
	u.Decide = func(old [][]byte, status func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		if err := p.check(old, status); err != nil {
			return nil, err
		}
		return &queue.RuledChange{Records: p.records(old, nil), Release: u.Held}, nil
	}
	if err := p.q.Queue.Apply(ctx, u); err != nil {
		return err
	}
	if p.group != nil && p.group.More.Counts.Total() > 0 {
		p.q.Log.Warn("messages are told by nobody, because the destination that was to get their number is gone", zap.String("key", p.key), zap.Int("messages", p.group.More.Counts.Total()))
	}
	p.count(metrics.RuleOutcomeReleased)
	return nil
}

// count counts the messages of the group by the rules that held them. Those that had no
// room were held with the others.
func (p *release) count(outcome string) {
	if p.group == nil {
		return
	}
	m := p.q.App.Load().Shared.Metrics
	last := rules.ByDigest
	for _, x := range p.group.Items {
		last = x.Hold
		m.Ruled(last.Rule(), outcome, 1)
	}
	if n := p.group.More.Counts.Total(); n > 0 && outcome == metrics.RuleOutcomeDigested {
		m.Ruled(last.Rule(), outcome, n)
	}
}

// Recheck releases jobs that a damaged or lost lane has held, and looks at the lanes of
// the others.
func (q *Engine) Recheck(ctx context.Context, held []queue.Job) {
	lanes, steps := map[queue.Hash][]queue.Job{}, map[queue.Hash][]queue.Job{}
	for _, j := range held {
		r, err := queued.DecodeRuled(j.Ruled)
		if err != nil {
			r = queued.Ruled{}
		}
		if r.Incident != (queue.Hash{}) && j.Rule == string(notifier.RuleEscalating) {
			steps[r.Incident] = append(steps[r.Incident], j)
			continue
		}
		lanes[r.Lane] = append(lanes[r.Lane], j)
	}
	q.recheckSteps(ctx, steps)
	for name, jobs := range lanes {
		record, err := q.Queue.CallersRecord(ctx, name)
		if err != nil {
			return
		}
		lane := decodeLane(record)
		lost := slices.DeleteFunc(jobs, func(j queue.Job) bool {
			return slices.ContainsFunc(lane.Items, func(x rules.Item) bool { return x.Job == j.JobID })
		})
		if len(lost) > 0 {
			q.releaseLost(ctx, lost)
		}
		if err := q.releaseLane(ctx, name); err != nil {
			q.Log.Error("what rules hold cannot be looked at", zap.Error(err))
		}
	}
}

// releaseLost releases jobs that no lane holds.
func (q *Engine) releaseLost(ctx context.Context, jobs []queue.Job) {
	err := q.Queue.Apply(ctx, &queue.Ruled{Held: jobs, Decide: func(_ [][]byte, status func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		ids := make([]queue.JobID, len(jobs))
		for i := range jobs {
			ids[i] = jobs[i].JobID
		}
		statuses, err := status(ids)
		if err != nil {
			return nil, err
		}
		c := new(queue.RuledChange)
		for i, j := range jobs {
			if statuses[i] == queue.Held {
				c.Release = append(c.Release, j)
			}
		}
		return c, nil
	}})
	if err != nil {
		q.Log.Error("messages that rules held cannot be released", zap.Error(err))
	}
}

// sendDigest replaces the messages of the group by one.
func (p *release) sendDigest(ctx context.Context, t outbox.QueueTarget, state *queued.State) error {
	m, done, err := p.digest(ctx, &t, state)
	if err != nil {
		return err
	}
	defer done()
	if t.Own {
		defer t.Target.Close()
	}
	target := t.Target
	d := dispatch.NewDelivery(t.Settings, site.SourceDigest, state.Site, m, &api.Selection{Targets: []notifier.Target{target}}).ToKey(t.Key)
	if p.group.More.Counts.Total() > 0 {
		d.ID = p.group.More.ID
	}
	d.Rules = nil // they have released it
	e, _ := p.q.Entry(&d)
	e.Untrusted, e.Unlimited = false, true
	own := queue.JobID{Message: d.ID}
	names := p.names()
	ruled := queued.Ruled{Lane: p.name, Digest: true}
	for i, m := range p.newest {
		ruled.Subjects = append(ruled.Subjects, queued.Subject{Name: p.subjects[i], Mark: m.In(own)})
	}
	e.Jobs[0].Ruled = ruled.Encode()
	e.Rules = &queue.Ruled{Names: names, Decide: func(old [][]byte, status func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		if err := p.check(old, status); err != nil {
			return nil, err
		}
		p.lane.Follow(p.group, own)
		c := &queue.RuledChange{Records: p.records(old, &own)}
		for _, x := range p.group.Items {
			c.Jobs = append(c.Jobs, queue.JobChange{ID: x.Job, Apply: func(j *queue.Job) {
				j.Status, j.Rule, j.By, j.Updated = queue.Superseded, string(notifier.RuleDigested), own, p.now
			}})
		}
		return c, nil
	}}
	if err := p.q.Queue.Accept(ctx, e); err != nil {
		return err
	}
	p.count(metrics.RuleOutcomeDigested)
	return nil
}
