package caddyhttp

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// The kinds of records about devices. The devices of a key are one record, as its silences
// are. Another record changes with each of them, so that gateways that share a store see in
// one read that there is something new. What changes with each push is a record of each
// device, and each message that was pushed to a device has a record, which waits for its
// receipt.
const (
	kindDevices        = 'd'
	kindDevicesVersion = 'D'
	kindDeviceState    = 'e'
	kindInvitation     = 'j'
	kindReceipt        = 'r'
	kindPushKey        = 'K'
)

// isDeviceKind reports whether a record is about devices.
func isDeviceKind(kind byte) bool {
	switch kind {
	case kindDevices, kindDevicesVersion, kindDeviceState, kindInvitation, kindReceipt, kindPushKey:
		return true
	}
	return false
}

// decodeKind returns what decode reads in a record of a kind: nil for none, for one of
// another kind and for a damaged one.
func decodeKind[T any](kind byte, record []byte, decode func([]byte) (*T, error)) *T {
	if len(record) == 0 || record[0] != kind {
		return nil
	}
	x, err := decode(record[1:])
	if err != nil {
		return nil
	}
	return x
}

func decodeInvitation(record []byte) *device.Invitation {
	return decodeKind(kindInvitation, record, device.DecodeInvitation)
}

func decodeReceipt(record []byte) *device.Receipt {
	return decodeKind(kindReceipt, record, device.DecodeReceipt)
}

// decodeDeviceState returns the state in a record. It has no ID if there is none, or a
// damaged one.
func decodeDeviceState(record []byte) *device.State {
	if s := decodeKind(kindDeviceState, record, device.DecodeState); s != nil {
		return s
	}
	return new(device.State)
}

// decodeDevices returns the devices in a record. The error is errDevicesDamaged if it
// cannot be read; then the list has the place of the key, if that can be read.
func decodeDevices(record []byte) (*device.List, error) {
	if len(record) == 0 {
		return new(device.List), nil
	}
	if record[0] != kindDevices {
		return new(device.List), fmt.Errorf("%w: it is of another kind", errDevicesDamaged)
	}
	l, err := device.DecodeList(record[1:])
	if err != nil {
		err = fmt.Errorf("%w: %w", errDevicesDamaged, err)
	}
	return l, err
}

// devicesName returns the name of the record of the devices of a key.
func (q *registry) devicesName(of site.Place) queue.Hash {
	return q.Hash("devices\x00" + of.String())
}

// devicesGroup returns the group of all records of devices.
func (q *registry) devicesGroup() queue.Hash { return q.Hash("all devices") }

func (q *registry) devicesVersion() queue.Hash { return q.Hash("the version of all devices") }

func (q *registry) deviceStateName(id string) queue.Hash { return q.Hash("device state\x00" + id) }

func (q *registry) invitationName(token string) queue.Hash { return q.Hash("invitation\x00" + token) }

// receiptRecordName returns the name of the record of a message to the destination with a
// hash.
func (q *registry) receiptRecordName(target, message string) queue.Hash {
	return q.Hash("receipt\x00" + target + "\x00" + message)
}

// receiptGroup returns the group of the receipts for a message.
func (q *registry) receiptGroup(message string) queue.Hash { return q.Hash("receipts\x00" + message) }

// farAway is when records are due that nothing is due about.
func farAway(now time.Time) time.Time { return now.AddDate(100, 0, 0) }

// devicesRecord returns the record of the devices of a key.
func (q *registry) devicesRecord(l *device.List, now time.Time) queue.Record {
	if len(l.All) == 0 {
		return queue.Record{}
	}
	return queue.Record{Data: encodeRecord(kindDevices, l.Encode()), Due: farAway(now), Group: q.devicesGroup()}
}

// devicesVersionRecord returns a record that differs from all before.
func devicesVersionRecord(now time.Time) queue.Record {
	version := uuid.New()
	return queue.Record{Data: encodeRecord(kindDevicesVersion, version[:]), Due: farAway(now)}
}

func deviceStateRecord(s *device.State, now time.Time) queue.Record {
	due := s.Due(now)
	if due.IsZero() {
		due = farAway(now)
	}
	return queue.Record{Data: encodeRecord(kindDeviceState, s.Encode()), Due: due}
}

// receiptRecord returns the record of a receipt, which is kept as long as results are.
func (q *registry) receiptRecord(x *device.Receipt) queue.Record {
	return queue.Record{
		Data: encodeRecord(kindReceipt, x.Encode()), Due: x.Due(q.app.Load().queueSettings.keep), Group: q.receiptGroup(x.Message.String()),
	}
}

// keepReceipt returns a stored receipt as it is.
func (q *registry) keepReceipt(old []byte) queue.Record {
	x := decodeReceipt(old)
	if x == nil {
		return queue.Record{}
	}
	return q.receiptRecord(x)
}
