package device

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// The kinds of records of devices.
var (
	KindInvitation = outbox.CountedKind('j', "invitations", 64, 1000, outbox.Day, "wait until some are used or a day old")

	// The devices of a key are one record. A version record changes with each of them, so that
	// gateways that share a store see all changes by one read.
	KindDevices        = outbox.CountedKind('d', "devices", 16, 500, outbox.Lasting, "revoke one with caddy notify devices revoke")
	KindDevicesVersion = outbox.OwnKind('D', "version of all devices")

	// Each device has a record of the state that changes with each push, and a record of each
	// pushed message that waits for its receipt.
	KindState   = outbox.OwnedKind('e', "states of devices", outbox.Day, "the record of the devices counts for them")
	KindReceipt = outbox.RememberedKind('r', "receipts", 8, 100_000)
	KindPushKey = outbox.OwnKind('K', "key of pushes")
)

// Records with one value each. A damaged state has no ID.
var (
	invitations = outbox.Typed[Invitation]{Kind: KindInvitation, Fields: (*Invitation).fields}
	receipts    = outbox.Typed[Receipt]{Kind: KindReceipt, Fields: (*Receipt).fields}
	states      = outbox.Typed[State]{Kind: KindState, Fields: (*State).fields}
	lists       = outbox.Typed[List]{Kind: KindDevices, Fields: (*List).fields}
)

// decodeDevices returns the devices in a record. For a damaged record, the list has only the place
// of the key, if that can be read.
func decodeDevices(record []byte) (*List, error) {
	if len(record) == 0 {
		return new(List), nil
	}
	if outbox.KindOf(record) != KindDevices {
		return new(List), errors.New("it is of another kind")
	}
	return decodeList(record[1:])
}

// Records makes the records of devices and their names.
type Records struct{ outbox *outbox.Outbox }

// Devices returns the name of the record of the devices of a key.
func (q Records) Devices(of site.Place) queue.Hash { return q.devices(of.String()) }

func (q Records) devices(place string) queue.Hash {
	return q.outbox.Queue.Hash("devices\x00" + place)
}

// Group returns the group of the records of the devices of all keys.
func (q Records) Group() queue.Hash { return q.outbox.Queue.Hash("all devices") }

// Version returns the name of the record that changes with the devices of any key.
func (q Records) Version() queue.Hash { return q.outbox.Queue.Hash("the version of all devices") }

// NewVersion returns a version that differs from all before.
func (Records) NewVersion(now time.Time) queue.Record {
	version := uuid.New()
	return queue.Record{Data: outbox.EncodeRecord(KindDevicesVersion, version[:]), Due: outbox.FarAway(now)}
}

// Receipt returns the name of the record of the receipt for a message at the destination
// with a hash.
func (q Records) Receipt(target, message string) queue.Hash {
	return q.outbox.Queue.Hash("receipt\x00" + target + "\x00" + message)
}

// receipts returns the group of the receipts of the key with a place.
func (q Records) receipts(place string) queue.Hash {
	return q.outbox.Queue.Hash("receipts of\x00" + place)
}

func (q Records) state(id string) queue.Hash {
	return q.outbox.Queue.Hash("device state\x00" + id)
}

// invitations is the group of the invitations to the key with a place.
func (q Records) invitations(place string) queue.Hash {
	return q.outbox.Queue.Hash("invitations\x00" + place)
}

func (q Records) invitation(token string) queue.Hash {
	return q.outbox.Queue.Hash("invitation\x00" + token)
}

// putDevices stores the devices of a key.
func (q Records) putDevices(tx *queue.Tx, name queue.Hash, l *List, now time.Time) {
	if len(l.All) == 0 {
		tx.Delete(name)
	} else {
		lists.Put(tx, name, l, outbox.FarAway(now), q.Group())
	}
}

// putState stores a state. It is due each day, in case the device is gone.
func (Records) putState(tx *queue.Tx, name queue.Hash, s *State, now time.Time) {
	due := s.due(now)
	if due.IsZero() {
		due = outbox.FarAway(now)
	}
	states.Put(tx, name, s, KindState.Due(due, now), queue.Hash{})
}

// putReceipt stores a receipt, which is kept as long as results are.
func (q Records) putReceipt(tx *queue.Tx, name queue.Hash, x *Receipt) {
	receipts.Put(tx, name, x, x.due(q.outbox.Queue.Keep()), q.receipts(x.Place.String()))
}
