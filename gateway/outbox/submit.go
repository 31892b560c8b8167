package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Options say how [Outbox.Submit] sends a message. Submit of a gateway takes Wait from the settings
// of the queue if it is nil. Without a queue, it sends all at once.
type Options struct {
	// Wait is how long to wait for the results of deliveries. What is not final then is
	// stored and made later. With 0, the message is stored before anything is sent, and
	// nobody waits, as with nil.
	Wait *time.Duration

	// Background means that nobody waits: the message is stored before anything is sent,
	// and Submit returns when the deliveries that it makes itself have ended.
	Background bool

	// Begun, if set, is called when the message is accepted, before anything is sent. If it
	// returns a function, that is the [dispatch.Delivery.Done] of the message.
	Begun func(targets []notifier.Target) (done func(i int, r notifier.Result))
}

// Submit sends a message, and stores what is not final in time. It returns the report, with
// the results so far, and the ID of the message.
//
// If the report is nil, the message is neither stored nor sent, and the error is one of
// [queue.Queue.Accept]. The caller can send the message in another way, and releases what it holds.
// [QueueError] is the error for a client. Otherwise [dispatch.Hooks.Release] is called when no
// delivery is in progress any more, possibly after Submit returns. An error beside a report means
// that deliveries are in progress which could not be stored.
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
	return report, s.d.Message.ID, err
}

// QueueError returns the error for somebody whose request has failed with err, which may be nil. It
// is err if that says what is wrong, and otherwise an error which says that the queue's store has a
// fault.
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

// ErrQueueFull is returned when too many messages wait to be sent.
var ErrQueueFull = errors.New("too many messages wait to be sent")

// QueueRetryAfter is how long a client should wait when the queue cannot take its message.
const QueueRetryAfter = 10 * time.Second

// ErrQueueUnavailable returns the error for a client whose message or silence cannot be
// stored because of err.
func ErrQueueUnavailable(err error) *message.Error {
	e := message.Errorf(message.Unavailable, "the gateway cannot store messages at the moment; try again in %s", QueueRetryAfter)
	e.RetryAfter = QueueRetryAfter
	if share, ok := errors.AsType[*ShareError](err); ok {
		return tooMuch(message.Full, "%s", share.Reason)
	}
	if errors.Is(err, queue.ErrFull) {
		e.Err = fmt.Errorf("the queue is full: the messages that wait to be delivered, and the alerts and silences that it knows, take as "+
			"much as max_size allows; try again in %s", QueueRetryAfter)
		return e
	}
	if errors.Is(err, queue.ErrDiskFull) {
		e.Err = fmt.Errorf("the gateway cannot store anything new, because its disk is full; try again in %s", QueueRetryAfter)
	}
	e.Fault = err
	return e
}
