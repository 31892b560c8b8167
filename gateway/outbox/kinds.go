package outbox

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Kind is a kind of the records that the gateway keeps in the queue, and what they may take.
// A record begins with the letter of its kind. The table below has all of them.
type Kind struct {
	letter  byte
	name    string
	share   int64
	most    int
	longest time.Duration
	bound   bound
	advice  string
}

// bound is what keeps the records of a kind within their limits.
type bound int

const (
	// Each change goes through the [Usage] of the kind, which refuses what is too much.
	byUsage bound = iota + 1
	// The room of the kind forgets the oldest, or keeps one record of bounded size.
	byRoom
	// The records are not those of keys: there is one, or a few of each gateway.
	notOfKeys
)

const (
	day     = 24 * time.Hour
	lasting = 100 * 366 * day // the record is there as long as what it is about
)

// The kinds of records. Of max_size, all records of a kind take at most the part that its
// share is the divisor of, and those of one key half of that. So what one key has of all
// kinds leaves room for the messages of others. The number is that of one key. The time is
// the longest until something is decided about a record; see [Kind.Due].
var (
	// A message that is sent later. It counts with its text and files.
	KindPlanned = countedKind('P', "planned messages", 4, 1000, 31*day, "wait until one is sent, or cancel one with DELETE")

	// A question of a message. The number is that of open ones. Decided ones are kept as long
	// as results.
	KindQuestion = countedKind('Q', "open questions", 8, 100, 8*day, "wait until one is answered or forgotten, or withdraw one with DELETE")

	// A group of alerts that rulers post. A time that is further away is asked for again.
	KindAlertGroup = countedKind('a', "groups of alerts", 8, 10_000, day, "wait until alerts have ended, or have the ruler post fewer labels and annotations")

	// The alerts of a large group are in pieces. They count with its record, and go with it.
	KindAlertPiece = boundedKind('A', "pieces of groups of alerts", 8, 10_000*128, lasting)

	// An invitation to a key.
	KindInvitation = countedKind('j', "invitations", 64, 1000, day, "wait until some are used or a day old")

	// The devices of a key are one record, as its silences are. A further record changes with
	// each of them, so that gateways that share a store see in one read that there is
	// something new.
	KindDevices        = countedKind('d', "devices", 16, 500, lasting, "revoke one with caddy notify devices revoke")
	KindDevicesVersion = ownKind('D', "version of all devices")

	// What changes with each push is a record of each device. Each message that was pushed to
	// a device has one, too, which waits for its receipt.
	KindDeviceState = boundedKind('e', "states of devices", 16, 500, lasting)
	KindReceipt     = boundedKind('r', "receipts", 8, 100_000, lasting)
	KindPushKey     = ownKind('K', "key of pushes")

	// A key with rules has a record of each of its incidents, and one that maps the public ID
	// of an incident to the name of the first.
	KindIncident   = boundedKind('i', "incidents", 4, 100_000, lasting)
	KindIncidentID = boundedKind('n', "IDs of incidents", 4, 100_000, lasting)

	// A message to a key with rules is stored before it is sent. In the same transaction, the
	// rules decide about each of its jobs.
	KindLane    = boundedKind('l', "lanes", 4, 100_000, lasting)    // what is held for a destination of a key
	KindSubject = boundedKind('s', "subjects", 4, 100_000, lasting) // what a destination knows of an incident or a text

	KindSilences        = boundedKind('q', "silences", 16, 200, lasting)
	KindSilencesVersion = ownKind('v', "version of all silences")

	// What is known of a beat is due when the beat is late, so that one of the gateways that
	// share a queue tells it. A further record tells when one of them last ran; each change
	// of a beat reads it.
	KindBeat   = boundedKind('B', "beats", 16, 10_000, lasting)
	KindUptime = ownKind('U', "uptime")

	// A message that a key keeps for readers, and what is known of all that it keeps.
	KindInboxMessage = boundedKind('m', "messages of inboxes", 4, 10_000, lasting)
	KindInbox        = boundedKind('I', "inboxes", 64, 1, lasting)

	// What a destination of a key has given up. See given_up.go.
	KindGivenUp = boundedKind('g', "given up", 16, 10_000, lasting)

	// A message that was cancelled while it was sent. See cancelled.go.
	KindCancelled = boundedKind('x', "messages cancelled during an attempt", 64, 1000, lasting)

	KindTally    = ownKind('t', "tallies")  // what a gateway has counted in a half hour
	KindWatchdog = ownKind('W', "watchdog") // due when a gateway calls the watchdog
	KindUsage    = ownKind('u', "usage")    // how much a key has of a kind; see [Usage]
)

// kinds are all kinds by their letters.
var kinds = map[byte]*Kind{}

// countedKind returns a kind that a [Usage] keeps within its limits. advice says what somebody
// does who has too many.
func countedKind(letter byte, name string, share int64, most int, longest time.Duration, advice string) *Kind {
	return newKind(Kind{letter, name, share, most, longest, byUsage, advice})
}

// boundedKind returns a kind that its room keeps within its limits.
func boundedKind(letter byte, name string, share int64, most int, longest time.Duration) *Kind {
	return newKind(Kind{letter, name, share, most, longest, byRoom, ""})
}

// ownKind returns a kind of records that are not those of keys.
func ownKind(letter byte, name string) *Kind {
	return newKind(Kind{letter: letter, name: name, bound: notOfKeys})
}

func newKind(k Kind) *Kind {
	if kinds[k.letter] != nil || k.bound != notOfKeys && (k.share <= 0 || k.most <= 0 || k.longest <= 0) || k.bound == byUsage && k.advice == "" {
		panic(fmt.Sprintf("the kind %q of records is there already, or lacks a limit", k.name))
	}
	kinds[k.letter] = &k
	return &k
}

// Begin returns the beginning of a record of the kind.
func (k *Kind) Begin() []byte { return []byte{k.letter} }

// Kinds returns all kinds, in the order of their letters.
func Kinds() []*Kind {
	all := slices.Collect(maps.Values(kinds))
	slices.SortFunc(all, func(a, b *Kind) int { return int(a.letter) - int(b.letter) })
	return all
}

// KindOf returns the kind of a record, or nil for none and for one that this version does
// not know.
func KindOf(record []byte) *Kind {
	if len(record) == 0 {
		return nil
	}
	return kinds[record[0]]
}

// String returns the name of the kind.
func (k *Kind) String() string { return k.name }

// OfKeys reports whether the records are those of keys.
func (k *Kind) OfKeys() bool { return k.bound != notOfKeys }

// Refuses reports whether what is too much is refused. Of other kinds, the oldest is forgotten, or
// there are few.
func (k *Kind) Refuses() bool { return k.bound == byUsage }

// Most returns how many records one key can have.
func (k *Kind) Most() int { return k.most }

// Due returns when a record is due that would be at a time: not later than the kind allows.
// Whoever does what is due then finds out that it is early.
func (k *Kind) Due(at, now time.Time) time.Time {
	if latest := now.Add(k.longest); at.After(latest) {
		return latest
	}
	return at
}

// Share returns how many bytes all records may take of a queue with a maximum size.
func (k *Kind) Share(maxSize int64) int64 { return maxSize / k.share }

// KeyShare returns how many bytes the records of one key may take.
func (k *Kind) KeyShare(maxSize int64) int64 { return k.Share(maxSize) / 2 }
