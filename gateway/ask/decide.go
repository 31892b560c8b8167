package ask

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Answer stores an answer that the caller has checked. by is the name of who answers, as others see
// it; if it is "", Answer uses the device whose link was used. It returns the question after that.
// first reports whether this answer counts.
func (q *Questions) Answer(ctx context.Context, at *At, answer, by string) (x *Question, first bool, err error) {
	x, first, err = q.change(ctx, at.ID, by, func(x *Question, now time.Time) {
		x.decide(Outcome{State: Answered, Answer: answer, By: by, Through: at.Through.URL, At: now})
	})
	return x, first, err
}

// Device returns the name of the device whose link was used, or "". The name is marked as a
// device's, because whoever subscribes the device chooses it, and it must not pass for the name of
// a user.
func (at *At) Device() string {
	if !site.IsDevice(at.Through.URL) {
		return ""
	}
	return at.Through.URL[len(site.DeviceScheme):] + " (device)"
}

// Withdraw cancels a question for its client if it is open, also if the client goes away, and returns
// the question after that.
func (q *Questions) Withdraw(ctx context.Context, id uuid.UUID) (*Question, error) {
	x, _, err := q.change(context.WithoutCancel(ctx), id, "", func(x *Question, now time.Time) {
		x.decide(Outcome{State: Cancelled, At: now})
	})
	return x, err
}

// Due does the work that is due in the record of a question.
func (q *Questions) Due(ctx context.Context, conf *outbox.Configuration, name queue.Hash, data []byte, crowded bool) (err error) {
	x := questions.Decode(data)
	if x == nil {
		return queue.ErrUnknown
	}
	now := q.outbox.Queue.Now()
	switch {
	case x.ahead(now):
		if err = q.moveBack(ctx, name); errors.Is(err, errDecided) {
			err = nil
		}
	case x.IsOpen() && !now.Before(x.Until):
		_, _, err = q.change(ctx, x.ID, "", func(*Question, time.Time) {})
		if errors.Is(err, ErrNone) {
			err = nil
		}
	case x.IsOpen():
	case x.ToCall || x.ToTell:
		err = q.tell(ctx, conf, x)
	case crowded, !now.Before(x.forget(q.outbox.Queue.Keep())):
		err = q.outbox.Apply(ctx, q.usage.Ruled(x.Place.String(), false, outbox.Removal(name)))
	}
	return err
}

// follow handles a stored decision: it logs it, emits an event, wakes the clients that wait, and
// tells the outcome.
func (q *Questions) follow(ctx context.Context, x *Question) {
	conf, o := q.outbox.Current(), x.Outcome
	key := conf.NameOf(ctx, x.Place)
	conf.Log.Info("question "+string(o.State), zap.String("key", key), zap.Stringer("id", x.ID), zap.String("by", o.By),
		zap.String("through", o.Through))
	q.outbox.Dispatcher.Metrics.Asked(string(o.State))
	q.outbox.Dispatcher.EmitEvent(event.Answered, func() map[string]any {
		return map[string]any{"key": key, "id": x.ID.String(), "state": string(o.State), "by": o.By, "through": o.Through}
	})
	if !x.ToCall && !x.ToTell {
		return
	}
	if err := q.tell(context.WithoutCancel(ctx), conf, x); err != nil {
		q.outbox.Log.Warn("the outcome of a question cannot be told now; it is tried again", zap.Stringer("id", x.ID), zap.Error(err))
	}
}

// waitsFor reports whether a question is open, for a client that waits.
func (q *Questions) waitsFor(ctx context.Context, id uuid.UUID) bool {
	x, err := q.Get(ctx, id)
	return err == nil && x.IsOpen()
}
