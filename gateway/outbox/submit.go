package outbox

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Options say how [Configuration.Submit] and [Outbox.Submit] send a message.
type Options struct {
	// Wait is how long to wait for the results of deliveries. What is not final then is
	// stored and made later. With 0, the message is stored before anything is sent, and
	// nobody waits. If it is nil, [Configuration.Submit] waits as long as the settings of the
	// queue say, and [Outbox.Submit] does not wait.
	Wait *time.Duration

	// Background means that nobody waits: the message is stored before anything is sent,
	// and Submit returns when the deliveries that it makes itself have ended.
	Background bool

	// Begun, if set, is called when the message is accepted, before anything is sent. If it
	// returns a function, that is the [dispatch.Delivery.Done] of the message.
	Begun func(targets []notifier.Target) (done func(i int, r notifier.Result))
}

// Submit sends a message to a key, or to none if k is nil. It is where the messages of
// requests and mails come together. It returns the report and, with a queue, the ID of the
// message. Without a queue, it waits for all results, and stores nothing.
//
// If the report is nil, nothing was sent, the error says why, and the caller releases what
// the message holds: the error is that of [Outbox.Submit], or a [*message.Error] if the queue
// is not open. Otherwise [dispatch.Delivery.Release] is called when no delivery is in
// progress any more, possibly after Submit returns. An error beside a report means that
// deliveries are in progress which could not be stored.
func (a *Configuration) Submit(ctx context.Context, k *site.Key, d dispatch.Delivery, o Options) (*notifier.Report, string, error) {
	a.Shared.Incidents.Note(&d)
	q, err := a.Durable(k)
	if err != nil {
		return nil, "", err
	}
	if q != nil {
		if wait := q.Engine.Load().QueueSettings.Wait; o.Wait == nil {
			o.Wait = &wait
		}
		return q.Submit(ctx, d, o)
	}
	if d.Release != nil {
		defer d.Release()
	}
	if o.Begun != nil {
		d.Done = o.Begun(d.To.Targets)
	}
	return a.Shared.Send(ctx, d), "", nil
}

// Submit sends a message, and stores what is not final in time. It returns the report, with
// the results so far, and the ID of the message.
//
// If the report is nil, the message is neither stored nor sent, and the error is one of
// [queue.Queue.Accept]. The caller can send the message in another way, and releases what it
// holds. [QueueError] is the error for a client. See [Configuration.Submit] for the rest.
func (q *Outbox) Submit(ctx context.Context, d dispatch.Delivery, o Options) (*notifier.Report, string, error) {
	var wait time.Duration
	if o.Wait != nil {
		wait = *o.Wait
	}
	s := newSubmission(d, q)
	if err := s.begin(ctx, wait > 0); err != nil {
		return nil, "", err
	}
	if o.Begun != nil {
		s.d.Done = o.Begun(s.d.To.Targets)
	}
	report, err := s.run(ctx, wait, o.Background)
	if err == nil && wait > 0 {
		s.logQueued(report)
	}
	return report, s.d.ID.String(), err
}

// QueueError returns the error for who asks for something after an error, which may be nil: itself if
// it says what is wrong, and otherwise that the queue's store has a fault.
func QueueError(err error) error {
	if _, ok := errors.AsType[*message.Error](err); ok || err == nil {
		return err
	}
	return ErrQueueUnavailable(err)
}

// Entry returns a message of the gateway itself, which the caller stores with
// [queue.Queue.Accept], often together with records that say what the message tells. The
// queue sends it. The caller calls stored after that. Entry sets d.ID if it is zero.
func (q *Outbox) Entry(d *dispatch.Delivery) (e *queue.Entry, stored func()) {
	q.prepare(d)
	results := make([]notifier.Result, len(d.To.Targets))
	for i, t := range d.To.Targets {
		results[i] = queuedNotYet(t)
	}
	plan := q.Policy.Plan(d, false)
	x := q.newDraft(d, make([]sentTarget, len(results)), results, plan, false)
	return x.Entry, func() {
		if plan != nil {
			plan.Stored(d)
		}
	}
}

// ErrQueueFull is returned by [Configuration.Post] when too many messages wait to be sent.
var ErrQueueFull = errors.New("too many messages wait to be sent")

// errNoTarget is returned when no destination of a key has the tag, which a device may
// have had.
var errNoTarget = errors.New("no destination of the key has the tag now")

// Post sends a message to targets of a key of the global option in the background, so that
// the code that emits an event or writes to a log does not wait for a destination. With a
// queue, it is stored first; if it cannot be, it is sent once. If log is false, the
// deliveries leave no log entries. done, if it is not nil, is called with the report, unless
// the queue takes the message.
func (a *Configuration) Post(k *site.Key, targets []notifier.Target, m *notifier.Message, source string, log bool, done func(*notifier.Report)) error {
	if len(targets) == 0 && k.Inbox == 0 {
		_, err := k.Choose(notifier.TagExpr{})
		return cmp.Or(err, errNoTarget)
	}
	d := dispatch.NewDelivery(a.Global, source, "", m, &message.Selection{Targets: targets}).ToKey(k)
	if !log {
		d.Logger = nil
	}
	ok := a.Shared.Background.Add(func() {
		ctx := context.Background()
		if q, err := a.Durable(k); err == nil && q != nil {
			_, _, err := q.Submit(ctx, d, Options{Background: true})
			if err == nil {
				return
			}
			q.Log.Error("message not stored; it is sent once instead", zap.String("key", d.Key), zap.String("source", d.Source), zap.Error(err))
		}
		report := a.Shared.Send(ctx, d)
		if done != nil {
			done(report)
		}
	})
	if !ok {
		return ErrQueueFull
	}
	return nil
}
