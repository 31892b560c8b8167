package alerting

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// lanes releases what rules hold, when a time has come or the rules have changed. A lane is
// what they hold for one destination of a key (see [rules.Lane]).
type lanes struct {
	outbox   *outbox.Outbox
	silences *Silences
}

// heldJob is a job that a lane holds, as it was read before a transaction.
type heldJob struct {
	queue.Job
	ruled queued.Ruled
}

// errLaneChanged is returned when a lane has changed since it was read.
var errLaneChanged = fmt.Errorf("what is held: %w", queue.ErrChanged)

// release sends what the lane in the record with a name does not hold any more.
func (l *lanes) release(ctx context.Context, conf *outbox.Configuration, name queue.Hash) error {
	for range maxChanges {
		more, err := l.releaseOnce(ctx, conf, name)
		if err != nil || !more {
			return err
		}
	}
	return errLaneChanged // the rest is released later
}

// releaseOnce sends what a lane releases as one message. It reports whether there may
// be more.
func (l *lanes) releaseOnce(ctx context.Context, conf *outbox.Configuration, name queue.Hash) (more bool, err error) {
	p, err := l.read(ctx, conf, name)
	if p == nil || err != nil {
		return false, err
	}
	if err := p.findTarget(ctx); err != nil {
		return false, err
	}
	p.group = p.rules.Release(p.now, p.lane, rules.Lookup{Held: p.held, Waits: p.waits(ctx), OnWay: p.isOnWay(ctx)})
	if p.goesAlone() {
		err = p.releaseJobs(ctx)
	} else {
		err = p.sendDigest(ctx)
	}
	if p.changed {
		return true, nil
	}
	return p.group != nil, err
}

// release is a group that a lane releases, and the lane without it.
type release struct {
	lanes  *lanes
	conf   *outbox.Configuration
	now    time.Time
	name   queue.Hash
	record []byte // of the lane before
	lane   *rules.Lane
	jobs   map[queue.JobID]*heldJob // of the items

	state  queued.State       // of one of the messages, which names the destination
	target outbox.QueueTarget // the destination
	gone   bool               // the configuration does not have it any more
	rules  *rules.Rules       // of the destination, with silences; nil for none

	group   *rules.Group // nil for nothing
	changed bool         // the lane was changed by somebody else meanwhile

	subjects []queue.Hash // that the group is about
	newest   []rules.Mark // of each
}

// read reads a lane and the jobs in it. It returns nil if there is no lane.
func (l *lanes) read(ctx context.Context, conf *outbox.Configuration, name queue.Hash) (*release, error) {
	record, err := l.outbox.Queue.Records.Get(ctx, name)
	if err != nil || record == nil {
		return nil, err
	}
	p := &release{lanes: l, conf: conf, now: l.outbox.Queue.Now(), name: name, record: record, lane: laneRecords.DecodeOrNew(record)}
	p.jobs, err = l.jobs(ctx, p.lane)
	return p, err
}

// jobs returns the jobs of the items of a lane, as far as they are there.
func (l *lanes) jobs(ctx context.Context, lane *rules.Lane) (map[queue.JobID]*heldJob, error) {
	jobs := map[queue.JobID]*heldJob{}
	for _, x := range lane.Items {
		e, err := l.outbox.Queue.Get(ctx, x.Job.Message)
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

// findTarget finds the destination in the configuration, and its rules with silences.
func (p *release) findTarget(ctx context.Context) (err error) {
	p.decodeState()
	p.target, err = p.conf.FindQueued(ctx, &p.state)
	if message.IsUnavailable(err) {
		return err // saved keys cannot be read
	}
	if p.gone = err != nil; p.gone {
		return nil
	}
	r := targetRules(p.target.Rules, p.target.Target.Tags)
	p.rules, err = p.lanes.silences.apply(ctx, p.conf, r, p.lane, p.target, p.state.Site)
	return err
}

// decodeState reads which destination the lane is for: from a job that it holds, or from
// the lane itself.
func (p *release) decodeState() {
	for _, x := range p.lane.Items {
		if j := p.jobs[x.Job]; j != nil && j.Status == queue.Held && p.state.Decode(j.State) == nil {
			break
		}
	}
	if p.state.Key == "" && len(p.lane.Origin) > 0 && p.state.Decode(p.lane.Origin) != nil {
		p.state = queued.State{}
	}
}

// held reports whether a job is still held.
func (p *release) held(id queue.JobID) bool {
	j := p.jobs[id]
	return j != nil && j.Status == queue.Held && j.Rule != ""
}

// waits returns a function that reports whether a job is not final.
func (p *release) waits(ctx context.Context) func(queue.JobID) bool {
	return func(id queue.JobID) bool {
		e, err := p.lanes.outbox.Queue.Get(ctx, id.Message)
		return err == nil && id.Index < len(e.Jobs) && e.Jobs[id.Index].Status.Waits()
	}
}

// isOnWay returns a function that reports whether an older message about a subject is on
// its way to the destination.
func (p *release) isOnWay(ctx context.Context) func(subject string) bool {
	waits := p.waits(ctx)
	return func(subject string) bool {
		b, err := p.lanes.outbox.Queue.Records.Get(ctx, queue.Hash([]byte(subject)))
		if err != nil {
			return true
		}
		job := subjectRecords.DecodeOrNew(b).Way.Job
		return job != queue.JobID{} && waits(job)
	}
}

// goesAlone reports whether the messages of the group are sent themselves instead of a digest. They
// are if the tags of the destination have a number that is no step: each message is then sent in
// the order of the numbers.
func (p *release) goesAlone() bool {
	return p.group == nil || p.gone || p.group.Single() || rules.StepOf(p.target.Target.Tags) != 0 && !p.rules.IsStep()
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
func (p *release) check(tx *queue.Tx) error {
	p.changed = !bytes.Equal(tx.Get(p.name), p.record)
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
	statuses, err := tx.Status(ids...)
	if err != nil {
		return err
	}
	if p.changed = slices.ContainsFunc(statuses, func(s queue.Status) bool { return s != queue.Held }); p.changed {
		return errLaneChanged
	}
	return nil
}

// put stores what has changed. job is the job of the digest, or nil.
func (p *release) put(tx *queue.Tx, job *queue.JobID) {
	putLane(tx, p.name, p.lane, p.now, queue.Hash{})
	for i, m := range p.newest {
		if job != nil {
			m = m.In(*job)
		}
		s := subjectRecords.GetOrNew(tx, p.subjects[i])
		s.Sent(m)
		if forget := p.now.Add(time.Hour); s.Forget.Before(forget) {
			s.Forget = forget
		}
		putSubject(tx, p.subjects[i], s)
	}
}

// releaseJobs makes the jobs of the group due themselves.
func (p *release) releaseJobs(ctx context.Context) error {
	u := &queue.Ruled{Names: p.names()}
	if p.group != nil {
		for _, x := range p.group.Items {
			u.Held = append(u.Held, p.jobs[x.Job].Job)
		}
	}
	u.Decide = func(tx *queue.Tx) error {
		if err := p.check(tx); err != nil {
			return err
		}
		p.put(tx, nil)
		tx.Release(u.Held...)
		return nil
	}
	if err := p.lanes.outbox.Queue.Records.Apply(ctx, u); err != nil {
		return err
	}
	if p.group != nil && p.group.More.Counts.Total() > 0 {
		p.lanes.outbox.Log.Warn("messages are told by nobody, because the destination that was to get their number is gone",
			zap.String("key", p.state.Key), zap.Int("messages", p.group.More.Counts.Total()))
	}
	p.count(metrics.RuleOutcomeReleased)
	return nil
}

// count counts the messages of the group by the rules that held them. Messages for which there was
// no room count like the last one.
func (p *release) count(outcome string) {
	if p.group == nil {
		return
	}
	m := p.lanes.outbox.Dispatcher.Metrics
	last := rules.ByDigest
	for _, x := range p.group.Items {
		last = x.Hold
		m.Ruled(last.Rule(), outcome, 1)
	}
	if n := p.group.More.Counts.Total(); n > 0 && outcome == metrics.RuleOutcomeDigested {
		m.Ruled(last.Rule(), outcome, n)
	}
}

// recheck releases jobs that no lane holds any more, and looks at the lanes of the others.
func (l *lanes) recheck(ctx context.Context, conf *outbox.Configuration, held map[queue.Hash][]queue.Job) {
	for name, jobs := range held {
		record, err := l.outbox.Queue.Records.Get(ctx, name)
		if err != nil {
			return
		}
		lane := laneRecords.DecodeOrNew(record)
		lost := slices.DeleteFunc(jobs, func(j queue.Job) bool {
			return slices.ContainsFunc(lane.Items, func(x rules.Item) bool { return x.Job == j.JobID })
		})
		if len(lost) > 0 {
			l.releaseLost(ctx, lost)
		}
		if err := l.release(ctx, conf, name); err != nil {
			l.outbox.Log.Error("what rules hold cannot be looked at", zap.Error(err))
		}
	}
}

// releaseLost releases jobs that no lane holds.
func (l *lanes) releaseLost(ctx context.Context, jobs []queue.Job) {
	ids := make([]queue.JobID, len(jobs))
	for i := range jobs {
		ids[i] = jobs[i].JobID
	}
	err := l.outbox.Queue.Records.Apply(ctx, &queue.Ruled{Held: jobs, Decide: func(tx *queue.Tx) error {
		statuses, err := tx.Status(ids...)
		for i, status := range statuses {
			if status == queue.Held {
				tx.Release(jobs[i])
			}
		}
		return err
	}})
	if err != nil {
		l.outbox.Log.Error("messages that rules held cannot be released", zap.Error(err))
	}
}

// sendDigest replaces the messages of the group by one.
func (p *release) sendDigest(ctx context.Context) error {
	g, err := p.newDigest(ctx)
	if err != nil {
		return err
	}
	defer g.release()
	t := p.target
	if err := t.Restrict(g.policy); err != nil {
		return err
	}
	if t.Own {
		defer t.Target.Close()
	}
	d := dispatch.NewDelivery(t.Settings, site.SourceDigest, p.state.Site, g.message,
		&message.Selection{Targets: []notifier.Target{t.Target}}).ToKey(t.Key)
	if p.group.More.Counts.Total() > 0 {
		d.ID = p.group.More.ID
	}
	d.Rules = nil // they have released it
	e, _ := p.lanes.outbox.Entry(&d)
	p.ruleDigest(e)
	if err := p.lanes.outbox.Queue.Accept(ctx, e); err != nil {
		return err
	}
	p.count(metrics.RuleOutcomeDigested)
	return nil
}

// ruleDigest makes the entry of a digest take the place of the messages of the group.
func (p *release) ruleDigest(e *queue.Entry) {
	e.Untrusted, e.Unlimited = false, true
	own := queue.JobID{Message: e.Message.ID}
	names := p.names()
	ruled := queued.Ruled{Lane: p.name, Digest: true}
	for i, m := range p.newest {
		ruled.Subjects = append(ruled.Subjects, queued.Subject{Name: p.subjects[i], Mark: m.In(own)})
	}
	e.Jobs[0].Ruled = ruled.Encode()
	e.Rules = &queue.Ruled{Names: names, Decide: func(tx *queue.Tx) error {
		if err := p.check(tx); err != nil {
			return err
		}
		p.lane.Follow(p.group, own)
		p.put(tx, &own)
		for _, x := range p.group.Items {
			tx.Change(x.Job, func(j *queue.Job) { dropStep(j, own, notifier.RuleDigested, p.now) })
		}
		return nil
	}}
}
