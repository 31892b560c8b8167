package planned

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Due sends the planned message of a record.
func (p *Messages) Due(ctx context.Context, conf *outbox.Configuration, name queue.Hash, _ []byte, crowded bool) error {
	if crowded {
		return nil
	}
	p.some.Note()
	err := p.due(ctx, conf, name)
	if errors.Is(err, errChanged) {
		return nil // it is due again
	}
	return err
}

// errChanged is returned when a planned message has changed since it was read.
var errChanged = fmt.Errorf("the planned message: %w", queue.ErrChanged)

// checkGone is how often a planned message without recipients is looked at.
const checkGone = time.Minute

// due sends a planned message. If it has no recipients, due turns it into a delivery that fails
// until the queue gives it up.
func (p *Messages) due(ctx context.Context, conf *outbox.Configuration, name queue.Hash) error {
	before, err := p.outbox.Queue.Records.Get(ctx, name)
	if err != nil {
		return err
	}
	x := records.Decode(before)
	if x == nil {
		return unknown(before)
	}
	e, err := p.outbox.Queue.Get(ctx, x.ID)
	if errors.Is(err, queue.ErrNotFound) || err == nil && (len(e.Jobs) != 1 || !e.Jobs[0].Status.Waits()) {
		return p.forget(ctx, x.ID)
	}
	if err != nil {
		return err
	}
	if x.ahead(p.outbox.Queue.Now()) {
		return p.moveBack(ctx, x)
	}
	m, release, err := p.outbox.Queue.Load(ctx, x.ID)
	if errors.Is(err, queue.ErrNotFound) {
		return p.forget(ctx, x.ID) // it was cancelled meanwhile
	}
	if _, damaged := errors.AsType[*queue.DamagedError](err); damaged {
		return p.letFail(ctx, x, &e.Jobs[0]) // its attempt says why
	}
	if err != nil {
		return err
	}
	d, err := p.delivery(ctx, conf, m)
	if err != nil {
		release()
		if message.IsUnavailable(err) {
			return err
		}
		return p.letFail(ctx, x, &e.Jobs[0])
	}
	d.ID, d.Released = queue.NewID(), true
	d.With = p.sent(before, x, d.ID)
	closeTargets := d.Resources
	d.Resources = dispatch.CloseFunc(func() { closeTargets.Close(); release() })
	report, _, err := p.outbox.Submit(ctx, *d, outbox.Options{})
	if report == nil {
		d.Release()
	}
	return err
}

// sent returns the change that ends a planned message, for the transaction that stores the new
// message. sent is the ID of the new message.
func (p *Messages) sent(before []byte, x *Message, sent uuid.UUID) *queue.Ruled {
	job := queue.JobID{Message: x.ID}
	return p.ruled(x, false, func(tx *queue.Tx) error {
		name := p.name(x.ID)
		status, err := tx.StatusOf(job)
		if err != nil {
			return err
		}
		if !bytes.Equal(tx.Get(name), before) || status != queue.Held && status != queue.Queued {
			return errChanged
		}
		now := p.outbox.Queue.Now()
		tx.Delete(name)
		tx.Change(job, func(j *queue.Job) {
			j.Status, j.Rule, j.By, j.Updated = queue.Superseded, string(notifier.RulePlanned), queue.JobID{Message: sent}, now
		})
		return nil
	})
}

// letFail lets the queue attempt the job of a planned message that cannot be sent.
func (p *Messages) letFail(ctx context.Context, x *Message, j *queue.Job) error {
	u := p.ruled(x, false, func(tx *queue.Tx) error {
		p.put(tx, x, p.outbox.Queue.Now().Add(checkGone))
		status, err := tx.StatusOf(j.JobID)
		if status == queue.Held {
			tx.Release(*j)
		}
		return err
	})
	u.Held = []queue.Job{*j}
	return p.outbox.Apply(ctx, u)
}

// goneError is returned when a planned message has no recipients.
type goneError struct{ reason string }

func (e *goneError) Error() string { return e.reason }

// delivery returns the delivery of a planned message that is due. Its Release closes the
// destinations that were made for it. The error is a [*goneError], a [*message.Error] of the kind
// Unavailable, or about a damaged message.
func (p *Messages) delivery(ctx context.Context, conf *outbox.Configuration, stored *queue.Message) (*dispatch.Delivery, error) {
	var text queued.Text
	if err := text.Decode(stored.Body); err != nil {
		return nil, fmt.Errorf("the message cannot be read from the queue: %w", err)
	}
	k, s, err := p.key(ctx, conf, &text)
	if err != nil {
		return nil, err
	}
	m, err := text.Message(stored)
	if err != nil {
		return nil, fmt.Errorf("the message cannot be read from the queue: %w", err)
	}
	m.Time = time.Now()
	l := &text.Later
	targets, err := choose(k, l)
	if err != nil {
		return nil, err
	}
	var made []notifier.Target
	if len(l.Values) > 0 {
		own := make([]notifier.Target, len(targets)) // the others belong to the key
		for i, t := range targets {
			var isNew bool
			if own[i], isNew = t.WithStored(l.Values); isNew {
				made = append(made, own[i])
			}
		}
		targets = own
	}
	d := dispatch.NewDelivery(s, text.Source, text.Site, m, &message.Selection{Targets: targets}).ToKey(k)
	d.Format = l.Format
	if l.FromPublisher {
		d.Published = &l.Published
	}
	d.Resources = dispatch.CloseFunc(func() {
		for _, t := range made {
			t.Close()
		}
	})
	p.outbox.Dispatcher.Incidents.Note(&d)
	return &d, nil
}

// key returns the key of a planned message in the present configuration, with its devices.
func (p *Messages) key(ctx context.Context, conf *outbox.Configuration, t *queued.Text) (*site.Key, *site.Site, error) {
	k, s, err := conf.KeyOfIncident(ctx, &rules.Incident{Site: t.Site, Home: t.Later.Home, Key: t.Later.First})
	if err != nil {
		return nil, nil, err
	}
	if k == nil {
		return nil, nil, &goneError{"the key " + t.Key + " is not in the configuration any more; add it again, and retry the message"}
	}
	return s.Devices.With(k), s, nil
}

// choose returns the destinations of a key that get a planned message now.
func choose(k *site.Key, l *queued.Later) ([]notifier.Target, error) {
	tags, err := notifier.ParseTags(l.Tags)
	if err != nil {
		return nil, fmt.Errorf("the tags of the message cannot be read: %w", err)
	}
	w := message.Wish{Tags: tags, Preferred: l.Preferred}
	targets, err := w.Choose(k.Choose)
	if err != nil {
		return nil, &goneError{err.Error() + "; correct that, and retry the message"}
	}
	return targets, nil
}

// unknown returns [queue.ErrUnknown] for a record that another version of the program has stored
// and this version cannot read.
func unknown(record []byte) error {
	if len(record) > 0 && records.Decode(record) == nil {
		return queue.ErrUnknown
	}
	return nil
}

// Hurry makes a waiting planned message due now, and returns the number of its deliveries. See
// [outbox.Policy].
func (p *Messages) Hurry(ctx context.Context, id uuid.UUID) (int, error) {
	e, err := p.outbox.Queue.Get(ctx, id)
	if err != nil || !outbox.IsPlanned(e) || !e.Jobs[0].Status.Waits() {
		return 0, outbox.IgnoreNotFound(err)
	}
	m, release, err := p.outbox.Queue.Load(ctx, id)
	if err != nil {
		return 0, outbox.IgnoreNotFound(err)
	}
	defer release()
	return 1, p.restore(ctx, m, p.outbox.Queue.Now())
}

// wait returns the outcome of an attempt that must not be made yet, or nil if the message is due.
// That happens if another version of the program, which does not know the rule, has released the
// message early, or has stored a record that this version does not know.
func (p *Messages) wait(ctx context.Context, conf *outbox.Configuration, m *queue.Message) *queue.Outcome {
	b, err := p.outbox.Queue.Records.Get(ctx, p.name(m.ID))
	if err != nil {
		return &queue.Outcome{Postponed: true, RetryAfter: outbox.PostponeSaved}
	}
	if unknown(b) != nil {
		return &queue.Outcome{Postponed: true, RetryAfter: checkGone}
	}
	var text queued.Text
	if text.Decode(m.Body) != nil {
		return nil // the attempt reports the error
	}
	at := text.Later.At
	if x := records.Decode(b); x != nil {
		at = x.At
	}
	early := at.Sub(p.outbox.Queue.Now())
	if early <= 0 {
		return nil
	}
	if len(b) == 0 && p.restore(ctx, m, time.Time{}) != nil {
		early = outbox.PostponeSaved
	}
	return &queue.Outcome{Postponed: true, RetryAfter: early}
}

// Attempt is called when the queue attempts a planned message that had no recipients. If it has
// some now, Attempt makes it due. See [outbox.Policy].
func (p *Messages) Attempt(ctx context.Context, conf *outbox.Configuration, m *queue.Message, j *queue.Job) *queue.Outcome {
	if o := p.wait(ctx, conf, m); o != nil {
		return o
	}
	d, err := p.delivery(ctx, conf, m)
	if err == nil {
		d.Release()
		if err := p.restore(ctx, m, p.outbox.Queue.Now()); err != nil {
			return &queue.Outcome{Postponed: true, RetryAfter: outbox.PostponeSaved}
		}
		return &queue.Outcome{Postponed: true, RetryAfter: outbox.PostponeChain}
	}
	if message.IsUnavailable(err) {
		return &queue.Outcome{Postponed: true, RetryAfter: outbox.PostponeSaved}
	}
	o := &queue.Outcome{Status: queue.Dead, State: j.State, Result: j.Result, Reason: err.Error(), NotSent: true}
	_, o.Unknown = errors.AsType[*goneError](err)
	return o
}

// restore makes the record of a planned message again. The record is due at due or, if that is
// zero, when the message is.
func (p *Messages) restore(ctx context.Context, m *queue.Message, due time.Time) error {
	var text queued.Text
	if err := text.Decode(m.Body); err != nil {
		return err
	}
	x := newMessage(m, &text)
	if due.IsZero() {
		due = x.At
	}
	x.At = due
	return p.some.Adding(func() error {
		return p.apply(ctx, x, func(tx *queue.Tx) error {
			if err := unknown(tx.Get(p.name(x.ID))); err != nil {
				return err
			}
			p.put(tx, x, due)
			return nil
		})
	})
}

// Recheck makes damaged or lost records of planned messages again. held are the jobs that rules
// hold; Recheck returns the jobs of other rooms.
func (p *Messages) Recheck(ctx context.Context, _ *outbox.Configuration, held []queue.Job) (others []queue.Job) {
	var all errgroup.Group
	all.SetLimit(maxRechecks)
	for i := range held {
		j := &held[i]
		if j.Rule != string(notifier.RulePlanned) {
			others = append(others, *j)
			continue
		}
		all.Go(func() error {
			if err := p.recheck(ctx, j.Message); err != nil {
				p.outbox.Log.Error("a planned message cannot be looked at now", zap.Stringer("id", j.Message), zap.Error(err))
			}
			return nil
		})
	}
	_ = all.Wait()
	return others
}

// maxRechecks is how many records are made at once, so that they share commits.
const maxRechecks = 64

// recheck makes the record of a planned message if it has none, or if its record comes from an
// earlier version and has no size.
func (p *Messages) recheck(ctx context.Context, id uuid.UUID) error {
	b, err := p.outbox.Queue.Records.Get(ctx, p.name(id))
	if x := records.Decode(b); err != nil || unknown(b) != nil || x != nil && x.Size > 0 {
		return err
	}
	m, release, err := p.outbox.Queue.Load(ctx, id)
	if err != nil {
		return outbox.IgnoreNotFound(err) // it was sent or cancelled meanwhile
	}
	defer release()
	return p.restore(ctx, m, time.Time{})
}
