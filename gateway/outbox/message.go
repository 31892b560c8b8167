package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// MaxQueuePage is the maximum number of deliveries on a page.
const MaxQueuePage = 1000

// AdminTimeout bounds how long a person waits for the store of the queue.
const AdminTimeout = 10 * time.Second

// ErrNoMessage is returned for a message that the queue does not have, or no longer.
var ErrNoMessage = message.Errorf(message.NotFound, "there is no such message; the queue keeps results for the time of its setting keep")

// Unread returns the error for somebody who cannot be shown something in the queue, or cannot
// change it, because the store has returned err.
func Unread(err error) *message.Error {
	e := message.Errorf(message.Unavailable, "the gateway cannot read the queue at the moment; try again in %s", QueueRetryAfter)
	e.Fault, e.RetryAfter = err, QueueRetryAfter
	return e
}

// Messages reads and changes the messages in an outbox for people. Its errors are
// [ErrNoMessage] and what [Unread] returns. A change is made also if who asks for it goes away.
type Messages struct {
	outbox       *Outbox
	user, client string // who changes them, for the log
}

// Messages returns the messages in the outbox.
func (q *Outbox) Messages() Messages { return Messages{outbox: q} }

// By returns the messages for a user who changes them, at the address of a client. Both are "" if
// they are not known.
func (m Messages) By(user, client string) Messages { return Messages{m.outbox, user, client} }

// retryAllTimeout bounds how long an operator waits until all is due.
const retryAllTimeout = 2 * time.Minute

// limit returns the context of a change that somebody waits for.
func limit(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), timeout)
}

// changed logs a change of n deliveries, unless it has failed. It returns the error for the caller
// who has asked for the change.
func (m Messages) changed(err error, change string, n int, about ...zap.Field) error {
	if err == nil {
		m.outbox.Log.Info("queued message changed", append(about, zap.String("change", change),
			zap.Int("deliveries", n), zap.String("user", m.user), zap.String("client_ip", m.client))...)
	}
	return messageError(err)
}

// Get returns a message that came to a site.
func (m Messages) Get(ctx context.Context, siteID string, id uuid.UUID) (*queue.Entry, error) {
	e, err := m.outbox.Queue.Get(ctx, id)
	if err == nil && queued.SiteID(e.Message) != siteID {
		err = queue.ErrNotFound
	}
	return e, messageError(err)
}

// OfAnySite returns a message, whichever site it came to.
func (m Messages) OfAnySite(ctx context.Context, id uuid.UUID) (*queue.Entry, error) {
	e, err := m.outbox.Queue.Get(ctx, id)
	return e, messageError(err)
}

// Cancel cancels the deliveries of a message that wait, and returns the message.
func (m Messages) Cancel(ctx context.Context, id uuid.UUID) (*queue.Entry, error) {
	if _, err := m.end(ctx, id, m.outbox.Queue.Cancel); err != nil {
		return nil, messageError(err)
	}
	e, err := m.outbox.Queue.Get(ctx, id)
	return e, messageError(err)
}

// change changes a message or, if it was planned and is sent, the one that it was sent as.
func (m Messages) change(ctx context.Context, id uuid.UUID, change func(context.Context, uuid.UUID) (int, error)) (n int, err error) {
	for range maxChanges {
		e, err := m.outbox.Queue.Get(ctx, id)
		if err != nil {
			return 0, err
		}
		if sent := SentAs(e); sent != (uuid.UUID{}) {
			return change(ctx, sent)
		}
		if n, err = change(ctx, id); err != nil || n > 0 || !IsPlanned(e) {
			return n, err
		}
		if e.Jobs[0].Status.Waits() {
			continue // it is sent at the moment
		}
		return 0, nil
	}
	return n, nil
}

// end ends the deliveries of a message as change does, and those that are being sent when
// their attempt has failed.
func (m Messages) end(ctx context.Context, id uuid.UUID, end func(context.Context, uuid.UUID) (int, error)) (n int, err error) {
	changed := id
	n, err = m.change(ctx, id, func(ctx context.Context, id uuid.UUID) (int, error) {
		changed = id
		return end(ctx, id)
	})
	if err != nil {
		return n, err
	}
	m.outbox.Policy.Cancelled(ctx, id)
	return n, m.outbox.cancelling.add(ctx, m.outbox, changed)
}

// maxChanges is how often a change is tried that something else comes before.
const maxChanges = 5

// Follow sets the states of deliveries that messages of rules have taken over; see
// [Outbox.Follow].
func (m Messages) Follow(ctx context.Context, e *queue.Entry) error {
	return messageError(m.outbox.Follow(ctx, e))
}

// Page returns n messages that are older than before, the latest first. The next page begins before
// the ID next, which is zero if there is none.
func (m Messages) Page(ctx context.Context, before uuid.UUID, n int) (entries []*queue.Entry, next uuid.UUID, err error) {
	entries, next, err = m.outbox.Queue.Messages(ctx, before, n)
	return entries, next, messageError(err)
}

// Retry makes the deliveries of a message due that wait or were given up. Later steps of an
// escalation begin at their own time.
func (m Messages) Retry(ctx context.Context, id uuid.UUID) (n queue.Retried, err error) {
	ctx, cancel := limit(ctx, AdminTimeout)
	defer cancel()
	_, err = m.change(ctx, id, func(ctx context.Context, id uuid.UUID) (total int, err error) {
		n, err = m.outbox.Queue.Retry(ctx, id, string(notifier.RuleEscalating), string(notifier.RulePlanned))
		if err == nil && n == (queue.Retried{}) {
			n.Queued, err = m.outbox.Policy.Hurry(ctx, id)
		}
		return n.Dead + n.Queued, err
	})
	return n, m.changed(err, "retry", n.Dead+n.Queued, zap.String("id", id.String()))
}

// Drop cancels the deliveries of a message that wait or were given up, and returns how many
// there were.
func (m Messages) Drop(ctx context.Context, id uuid.UUID) (int, error) {
	ctx, cancel := limit(ctx, AdminTimeout)
	defer cancel()
	n, err := m.end(ctx, id, m.outbox.Queue.Drop)
	return n, m.changed(err, "drop", n, zap.String("id", id.String()))
}

// RetryDestinations makes due what waits for destinations, and those deliveries that were
// given up and that may accepts. It returns how many there were of each.
func (m Messages) RetryDestinations(ctx context.Context, ids []queue.Hash, may func(context.Context, *queue.Job) bool) (n queue.Retried,
	err error,
) {
	return m.retryDestinations(ctx, AdminTimeout, ids, may)
}

func (m Messages) retryDestinations(ctx context.Context, timeout time.Duration, ids []queue.Hash,
	may func(context.Context, *queue.Job) bool,
) (n queue.Retried, err error) {
	ctx, cancel := limit(ctx, timeout)
	defer cancel()
	if n.Queued, err = m.outbox.Queue.RetryDestinations(ctx, ids...); err == nil {
		n.Dead, err = m.outbox.Queue.RetryDead(ctx, func(j *queue.Job) bool { return may(ctx, j) })
	}
	return n, m.changed(err, "hurry", n.Queued+n.Dead, zap.Int("destinations", len(ids)))
}

// RetryAll makes due all that waits for any destination and all that was given up. It
// returns how many deliveries there were of each.
func (m Messages) RetryAll(ctx context.Context) (n queue.Retried, err error) {
	states, err := m.outbox.Queue.Destinations.All(ctx)
	if err != nil {
		return n, messageError(err)
	}
	ids := make([]queue.Hash, len(states))
	for i := range states {
		ids[i] = states[i].Destination
	}
	return m.retryDestinations(ctx, retryAllTimeout, ids, func(context.Context, *queue.Job) bool { return true })
}

// DropDestination cancels what waits for a destination and may be dropped, and returns how
// many deliveries that are.
func (m Messages) DropDestination(ctx context.Context, id queue.Hash, may func(context.Context, *queue.Job) bool) (int, error) {
	ctx, cancel := limit(ctx, AdminTimeout)
	defer cancel()
	n, _, err := m.outbox.Queue.DropDestination(ctx, id, false, func(j *queue.Job) bool { return may(ctx, j) })
	return n, m.changed(err, "drop", n, zap.Int("destinations", 1))
}

// messageError returns the error for a caller after an error of the store, which may be nil.
func messageError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, queue.ErrNotFound):
		return ErrNoMessage
	}
	return Unread(err)
}

// IgnoreNotFound returns err, or nil if it is about a message that is not there any more.
func IgnoreNotFound(err error) error {
	if errors.Is(err, queue.ErrNotFound) {
		return nil
	}
	return err
}
