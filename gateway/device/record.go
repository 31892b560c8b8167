package device

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// isDeviceKind reports whether a record is about devices.
func isDeviceKind(kind byte) bool {
	switch kind {
	case outbox.KindDevices, outbox.KindDevicesVersion, outbox.KindDeviceState, outbox.KindInvitation, outbox.KindReceipt, outbox.KindPushKey:
		return true
	}
	return false
}

func InvitationOf(record []byte) *Invitation {
	return outbox.DecodeKind(outbox.KindInvitation, record, DecodeInvitation)
}

func decodeReceipt(record []byte) *Receipt {
	return outbox.DecodeKind(outbox.KindReceipt, record, DecodeReceipt)
}

// decodeDeviceState returns the state in a record. It has no ID if there is none, or a
// damaged one.
func decodeDeviceState(record []byte) *State {
	if s := outbox.DecodeKind(outbox.KindDeviceState, record, DecodeState); s != nil {
		return s
	}
	return new(State)
}

// decodeDevices returns the devices in a record. The error is ErrDevicesDamaged if it
// cannot be read; then the list has the place of the key, if that can be read.
func decodeDevices(record []byte) (*List, error) {
	if len(record) == 0 {
		return new(List), nil
	}
	if record[0] != outbox.KindDevices {
		return new(List), fmt.Errorf("%w: it is of another kind", ErrDevicesDamaged)
	}
	l, err := DecodeList(record[1:])
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrDevicesDamaged, err)
	}
	return l, err
}

// DevicesName returns the name of the record of the devices of a key.
func (q *Registry) DevicesName(of site.Place) queue.Hash {
	return q.Queue.Hash("devices\x00" + of.String())
}

// DevicesGroup returns the group of all records of devices.
func (q *Registry) DevicesGroup() queue.Hash { return q.Queue.Hash("all devices") }

func (q *Registry) DevicesVersion() queue.Hash { return q.Queue.Hash("the version of all devices") }

func (q *Registry) deviceStateName(id string) queue.Hash {
	return q.Queue.Hash("device state\x00" + id)
}

func (q *Registry) InvitationName(token string) queue.Hash {
	return q.Queue.Hash("invitation\x00" + token)
}

// ReceiptRecordName returns the name of the record of a message to the destination with a
// hash.
func (q *Registry) ReceiptRecordName(target, message string) queue.Hash {
	return q.Queue.Hash("receipt\x00" + target + "\x00" + message)
}

// receiptGroup returns the group of the receipts for a message.
func (q *Registry) receiptGroup(message string) queue.Hash {
	return q.Queue.Hash("receipts\x00" + message)
}

// devicesRecord returns the record of the devices of a key.
func (q *Registry) devicesRecord(l *List, now time.Time) queue.Record {
	if len(l.All) == 0 {
		return queue.Record{}
	}
	return queue.Record{Data: outbox.EncodeRecord(outbox.KindDevices, l.Encode()), Due: outbox.FarAway(now), Group: q.DevicesGroup()}
}

// DevicesVersionRecord returns a record that differs from all before.
func DevicesVersionRecord(now time.Time) queue.Record {
	version := uuid.New()
	return queue.Record{Data: outbox.EncodeRecord(outbox.KindDevicesVersion, version[:]), Due: outbox.FarAway(now)}
}

func deviceStateRecord(s *State, now time.Time) queue.Record {
	due := s.Due(now)
	if due.IsZero() {
		due = outbox.FarAway(now)
	}
	return queue.Record{Data: outbox.EncodeRecord(outbox.KindDeviceState, s.Encode()), Due: due}
}

// receiptRecord returns the record of a receipt, which is kept as long as results are.
func (q *Registry) receiptRecord(x *Receipt) queue.Record {
	return queue.Record{
		Data: outbox.EncodeRecord(outbox.KindReceipt, x.Encode()), Due: x.Due(q.App.Load().QueueSettings.Keep), Group: q.receiptGroup(x.Message.String()),
	}
}

// keepReceipt returns a stored receipt as it is.
func (q *Registry) keepReceipt(old []byte) queue.Record {
	x := decodeReceipt(old)
	if x == nil {
		return queue.Record{}
	}
	return q.receiptRecord(x)
}
