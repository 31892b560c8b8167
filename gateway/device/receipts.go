package device

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Receipts stores the receipts of devices. A receipt that does not come in time counts against the
// device, and lets an incident escalate.
type Receipts struct {
	records   Records
	incidents *alerting.Incidents
	memory    *outbox.Memory
}

// newReceipts returns the receipts. If a key has too many, its oldest ones are removed.
func newReceipts(records Records, incidents *alerting.Incidents) *Receipts {
	rank := func(record []byte) time.Time {
		x := receipts.Decode(record)
		switch {
		case x == nil:
			return time.Time{}
		case !x.Checked: // somebody may wait for it
			return x.Sent.Add(records.outbox.Queue.Keep())
		}
		return x.Sent
	}
	forget := func([]byte) queue.Record { return queue.Record{} }
	return &Receipts{records, incidents, records.outbox.NewMemory(KindReceipt, records.receipts, rank, forget)}
}

// ReceiptFuncs returns the functions with which alerts look up the receipts in an outbox.
func ReceiptFuncs(o *outbox.Outbox) alerting.Receipts {
	records := Records{o}
	return alerting.Receipts{
		Name: records.Receipt,
		Confirms: func(record []byte, now time.Time) (delivered, decided bool) {
			return receipts.Decode(record).confirms(now)
		},
	}
}

// token returns the token by which a device confirms a message: the ID of the message, and
// a hash that only the gateway can make.
func (q *Receipts) token(device, message string) string {
	sum := q.records.outbox.Queue.Hash("receipt token\x00" + device + "\x00" + message)
	return message + "." + base64.RawURLEncoding.EncodeToString(sum[:])
}

// checkToken returns the ID of the message in a token, and reports whether the gateway has made the
// token for the device.
func (q *Receipts) checkToken(device, token string) (message string, ok bool) {
	message, _, _ = strings.Cut(token, ".")
	return message, subtle.ConstantTimeCompare([]byte(token), []byte(q.token(device, message))) == 1
}

// pushed notes that a push service has taken a message for a device of a key. began is when
// the push began.
func (q *Receipts) pushed(ctx context.Context, key site.Place, d *Device, m *notifier.Message, began time.Time) error {
	id, err := uuid.Parse(m.ID)
	if err != nil {
		return err
	}
	_, err = q.change(ctx, key, d, id, func(now time.Time, before *Receipt, s *State) *Receipt {
		s.pushed(d, key, now)
		return d.pushed(key, id, before, began, now)
	})
	return err
}

// received notes that a device of a key has confirmed a message.
func (q *Receipts) received(ctx context.Context, key site.Place, d *Device, message string) error {
	id, err := uuid.Parse(message)
	if err != nil {
		return err
	}
	x, err := q.change(ctx, key, d, id, func(now time.Time, before *Receipt, s *State) *Receipt {
		s.confirmed(d, key, now)
		return d.confirmed(key, id, before, now)
	})
	if err != nil {
		return err
	}
	return q.confirmStep(ctx, x)
}

// change changes the receipt for a message to a device, and the state of the device. f gets the
// present receipt, or nil, and returns the new one. It may be called several times.
func (q *Receipts) change(ctx context.Context, key site.Place, d *Device, message uuid.UUID,
	f func(now time.Time, before *Receipt, s *State) *Receipt,
) (x *Receipt, err error) {
	receipt, state := q.records.Receipt(Hash(d.ID), message.String()), q.records.state(d.ID)
	err = q.records.outbox.Apply(ctx, q.memory.Ruled(key.String(), true,
		&queue.Ruled{Names: []queue.Hash{receipt, state}, Decide: func(tx *queue.Tx) error {
			now, s := q.records.outbox.Queue.Now(), states.GetOrNew(tx, state)
			x = f(now, receipts.Get(tx, receipt), s)
			q.records.putReceipt(tx, receipt, x)
			q.records.putState(tx, state, s, now)
			return nil
		}}))
	return x, err
}

// Due counts a missing receipt, and removes an old one. It removes the record if before is nil.
func (q *Receipts) Due(ctx context.Context, name queue.Hash, before *Receipt) error {
	if before == nil {
		return q.records.outbox.RemoveRecord(ctx, name)
	}
	if before.overdue(q.records.outbox.Queue.Now()) {
		if err := q.confirmStep(ctx, before); err != nil {
			return err
		}
	}
	state := q.records.state(before.Device)
	return q.records.outbox.Apply(ctx, q.memory.Ruled(before.Place.String(), true,
		&queue.Ruled{Names: []queue.Hash{name, state}, Decide: func(tx *queue.Tx) error {
			now, s := q.records.outbox.Queue.Now(), states.GetOrNew(tx, state)
			if x := receipts.Get(tx, name); x != nil && x.expire(s, q.records.outbox.Queue.Keep(), now) {
				q.records.putReceipt(tx, name, x)
			} else {
				tx.Delete(name)
			}
			if s.ID != "" {
				q.records.putState(tx, state, s, now)
			}
			return nil
		}}))
}

// confirmStep tells the incident of a message, if it escalates, whether the device has
// confirmed it.
func (q *Receipts) confirmStep(ctx context.Context, x *Receipt) error {
	e, err := q.records.outbox.Queue.Get(ctx, x.Message)
	if err != nil {
		return outbox.IgnoreNotFound(err)
	}
	i := slices.IndexFunc(e.Jobs, func(j queue.Job) bool { return site.DestinationHash(j.Destination) == x.Target })
	if i < 0 || len(e.Jobs[i].Ruled) == 0 {
		return nil
	}
	r, err := queued.DecodeRuled(e.Jobs[i].Ruled)
	if err != nil || r.Step == 0 {
		return nil //nolint:nilerr // the record of the message is damaged; the steps go on by time
	}
	return q.incidents.NoteReceipt(ctx, alerting.StepReceipt{Job: r, Message: x.Message, Target: x.Target, Shown: x.answered()})
}
