package device

import (
	"context"
	"errors"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Ahead reports whether a record is a receipt that began to wait when the clock was ahead.
func (q *Registry) Ahead(record []byte, now time.Time) bool {
	x := receipts.Decode(record)
	return x != nil && !x.Checked && queue.WrittenAhead(x.Sent, now)
}

// Kinds returns the kinds of devices, states, receipts, invitations and the VAPID key.
func (q *Registry) Kinds() []*outbox.Kind {
	return []*outbox.Kind{KindDevices, KindDevicesVersion, KindState, KindInvitation, KindReceipt, KindPushKey}
}

// Punctual returns a function that reports whether a receipt may be waited for: always if there can
// be devices.
func (q *Registry) Punctual(conf *outbox.Configuration) func() bool {
	if conf.Global.Push != nil {
		return outbox.Always
	}
	return nil
}

// Due does the work that is due in a record of this package.
func (q *Registry) Due(ctx context.Context, conf *outbox.Configuration, name queue.Hash, data []byte, crowded bool) error {
	switch outbox.KindOf(data) {
	case KindReceipt:
		x := receipts.Decode(data)
		if crowded && x != nil && !x.Checked {
			return nil
		}
		if crowded {
			x = nil // the oldest go first
		}
		return q.Receipts.Due(ctx, name, x)
	case KindState:
		if crowded {
			return nil
		}
		return q.dueDeviceState(ctx, conf, name, states.DecodeOrNew(data))
	case KindInvitation:
		x := invitations.Decode(data)
		switch {
		case x == nil:
			return q.outbox.RemoveRecord(ctx, name)
		case crowded && x.Until.After(q.outbox.Queue.Now()):
			return nil
		}
		return q.outbox.Apply(ctx, q.Invitations.usage.Ruled(x.Place.String(), false, outbox.Removal(name)))
	}
	return nil
}

// dueDeviceState tells a key that one of its devices does not answer. It removes a state that is
// damaged or whose device is gone: the next message stores a new one.
func (q *Registry) dueDeviceState(ctx context.Context, conf *outbox.Configuration, name queue.Hash, before *State) error {
	devices, err := q.Of(ctx, before.Place)
	if err != nil && !errors.Is(err, ErrDamaged) {
		return err
	}
	d := devices.Find(before.ID)
	told := false
	change := &queue.Ruled{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
		now, s := q.outbox.Queue.Now(), states.GetOrNew(tx, name)
		if d == nil || s.ID == "" {
			tx.Delete(name)
			return nil
		}
		told = s.tell(now)
		q.Records.putState(tx, name, s, now)
		return nil
	}}
	if d == nil || !before.silent(q.outbox.Queue.Now()) {
		return q.outbox.Queue.Records.Apply(ctx, change)
	}
	stored := q.tell(ctx, conf, SiteSettings{}, before.Place, before.ID, before.noAnswer(d.Name), change)
	if !stored {
		if err := q.outbox.Queue.Records.Apply(ctx, change); err != nil {
			return err
		}
	}
	if told {
		q.changed(conf, silent, conf.NameOf(ctx, before.Place), d.Name, "")
	}
	return nil
}
