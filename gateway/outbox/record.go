package outbox

import (
	"context"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// The records of the rooms above begin with a kind.

// EncodeRecord returns the content of a record of a kind.
func EncodeRecord(kind byte, data []byte) []byte { return append([]byte{kind}, data...) }

// RemoveRecord removes a record.
func (q *Outbox) RemoveRecord(ctx context.Context, name queue.Hash) error {
	return q.Queue.Apply(ctx, &queue.Ruled{Names: []queue.Hash{name}, Decide: func([][]byte, func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		return &queue.RuledChange{Records: make([]queue.Record, 1)}, nil
	}})
}

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

// KindQuestion is the kind of the record of a question.
const KindQuestion = 'Q'

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

// A key with rules has a record of each of its incidents, and one that maps the public ID
// of an incident to the name of the first.
const (
	KindIncident   = 'i'
	KindIncidentID = 'n'
)

// What is known of a beat is a record that is due when the beat is late, so that one of
// the gateways that share a queue tells it. A further record tells when one of them last
// ran; each change of a beat reads it.
const (
	KindBeat   = 'B'
	KindUptime = 'U'
)

// KindPlanned begins the record of a message that is sent later.
const KindPlanned = 'P'

// KindTally begins the record of what a gateway has counted in a half hour.
const KindTally = 't'

// KindAlertGroup begins the record of a group of alerts that rulers post.
const KindAlertGroup = 'a'

// The silences of a key are one record. Another record changes with each of them, so that
// gateways that share a store see in one read that there is something new.
const (
	KindSilences        = 'q'
	KindSilencesVersion = 'v'
)

// PageSize is the number of records that are read at once.
const PageSize = 500

// A message to a key with rules is stored before it is sent. In the same transaction,
// the rules decide about each of its jobs. Their records begin with a kind.
const (
	KindLane    = 'l' // what is held for a destination of a key
	KindSubject = 's' // what a destination knows of an incident or a text
)

// HoldRule returns how results name why a message is held.
func HoldRule(h rules.Hold) notifier.Rule {
	switch h {
	case rules.ByDigest:
		return notifier.RuleDigested
	case rules.BySilence:
		return notifier.RuleSilenced
	}
	return notifier.RuleHeld
}
