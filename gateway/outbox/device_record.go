package outbox

import "time"

// The kinds of records about devices. The devices of a key are one record, as its silences
// are. Another record changes with each of them, so that gateways that share a store see in
// one read that there is something new. What changes with each push is a record of each
// device, and each message that was pushed to a device has a record, which waits for its
// receipt.
const (
	KindDevices        = 'd'
	KindDevicesVersion = 'D'
	KindDeviceState    = 'e'
	KindInvitation     = 'j'
	KindReceipt        = 'r'
	KindPushKey        = 'K'
)

// DecodeKind returns what decode reads in a record of a kind: nil for none, for one of
// another kind and for a damaged one.
func DecodeKind[T any](kind byte, record []byte, decode func([]byte) (*T, error)) *T {
	if len(record) == 0 || record[0] != kind {
		return nil
	}
	x, err := decode(record[1:])
	if err != nil {
		return nil
	}
	return x
}

// FarAway is when records are due that nothing is due about.
func FarAway(now time.Time) time.Time { return now.AddDate(100, 0, 0) }
