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
	owner   string
}

// bound is what keeps the records of a kind within their limits.
type bound int

const (
	// Each change goes through the [Usage] of the kind, which refuses what is too much.
	byUsage bound = iota + 1
	// Each change goes through the [Usage] of the kind, which forgets the oldest.
	byForgetting
	// The room of the kind forgets the oldest.
	byRoom
	// Each record goes with another record or with a message, which is larger or counts for
	// it, too. See [Kind.Owner].
	byOwner
	// Only the configuration decides how many there are, and a record has a bounded size.
	byConfiguration
	// The records are not those of keys: there is one, or a few of each gateway.
	notOfKeys
)

const (
	day     = 24 * time.Hour
	lasting = 100 * 366 * day // the record is there as long as what it is about
)

// The kinds of records. The records of a kind that one key has take at most half of the part of
// max_size that the share is the divisor of. Those of all keys take at most that part, if the
// kind has a [Usage] or is that of inboxes: then each key has less as soon as they are too many.
// So what one key has of all kinds leaves room for the messages of others. The number is that of
// one key. The time is the longest until something is decided about a record; see [Kind.Due].
// What is forgotten is so within seconds, and at once if a message finds the queue full.
var (
	// A message that is sent later. It counts with its text and files.
	KindPlanned = countedKind('P', "planned messages", 4, 1000, 31*day, "wait until one is sent, or cancel one with DELETE")

	// A question of a message. The number is that of open ones. Decided ones are kept as long
	// as results.
	KindQuestion = countedKind('Q', "open questions", 8, 100, 8*day, "wait until one is answered or forgotten, or withdraw one with DELETE")

	// A group of alerts that rulers post. A time that is further away is asked for again.
	KindAlertGroup = countedKind('a', "groups of alerts", 8, 10_000, day, "wait until alerts have ended, or have the ruler post fewer labels and annotations")

	// The alerts of a large group are in pieces. They count with its record, and go with it.
	KindAlertPiece = ownedKind('A', "pieces of groups of alerts", lasting, "the record of the group counts for them")

	// An invitation to a key.
	KindInvitation = countedKind('j', "invitations", 64, 1000, day, "wait until some are used or a day old")

	// The devices of a key are one record, as its silences are. A further record changes with
	// each of them, so that gateways that share a store see in one read that there is
	// something new.
	KindDevices        = countedKind('d', "devices", 16, 500, lasting, "revoke one with caddy notify devices revoke")
	KindDevicesVersion = ownKind('D', "version of all devices")

	// What changes with each push is a record of each device. Each message that was pushed to
	// a device has one, too, which waits for its receipt.
	KindDeviceState = ownedKind('e', "states of devices", day, "the record of the devices counts for them")
	KindReceipt     = rememberedKind('r', "receipts", 8, 100_000)
	KindPushKey     = ownKind('K', "key of pushes")

	// A key with rules has a record of each of its incidents, and one for each of its openings that
	// maps the public ID to the name of the first. What is under way stays: see package alerting.
	KindIncident   = sharedKind('i', "incidents", 4, 100_000, lasting)
	KindIncidentID = sharedKind('n', "IDs of incidents", 4, 100_000, lasting)

	// What a destination knows of an incident or a text. It has its share together with the
	// incidents.
	KindSubject = sharedKind('s', "subjects", 4, 100_000, lasting)

	// What is held for a destination of a key, and what was sent to it in the time of a rate. A
	// message to a key with rules is stored before it is sent. In the same transaction, the
	// rules decide about each of its jobs. What is held goes with its messages, which are larger.
	// What was sent has its share together with the incidents.
	KindLane = sharedKind('l', "lanes", 4, 100_000, lasting)

	KindSilences        = countedKind('q', "silences", 16, 200, lasting, "end one, or wait until one has ended")
	KindSilencesVersion = ownKind('v', "version of all silences")

	// What is known of a beat is due when the beat is late, so that one of the gateways that
	// share a queue tells it. A further record tells when one of them last ran; each change
	// of a beat reads it. Only expect of a key makes a beat.
	KindBeat   = configuredKind('B', "beats")
	KindUptime = ownKind('U', "uptime")

	// A message that a key keeps for readers, and what is known of all that it keeps. Only the
	// configuration gives a key an inbox.
	KindInboxMessage = sharedKind('m', "messages of inboxes", 4, 10_000, lasting)
	KindInbox        = ownedKind('I', "inboxes", lasting, "there is one of each key with messages")

	// What a destination of a key has given up. See given_up.go.
	KindGivenUp = rememberedKind('g', "records of what was given up", 16, 10_000)

	// An open alert of an incident tool, of which repetitions are not told.
	KindOpenAlert = rememberedKind('o', "open alerts", 32, 10_000)

	// A message that was cancelled while it was sent. See cancelled.go.
	KindCancelled = ownedKind('x', "messages cancelled during an attempt", lasting, "the message that is being sent is larger")

	KindTally    = ownKind('t', "tallies")  // what a gateway has counted in a half hour
	KindWatchdog = ownKind('W', "watchdog") // due when a gateway calls the watchdog
	KindUsage    = ownKind('u', "usage")    // how much a key has of a kind; see [Usage]
)

// kinds are all kinds by their letters.
var kinds = map[byte]*Kind{}

// countedKind returns a kind that a [Usage] keeps within its limits. advice says what somebody
// does who has too many.
func countedKind(letter byte, name string, share int64, most int, longest time.Duration, advice string) *Kind {
	return newKind(Kind{letter: letter, name: name, share: share, most: most, longest: longest, bound: byUsage, advice: advice})
}

// rememberedKind returns a kind of which a [Usage] forgets the oldest.
func rememberedKind(letter byte, name string, share int64, most int) *Kind {
	return newKind(Kind{letter: letter, name: name, share: share, most: most, longest: lasting, bound: byForgetting})
}

// sharedKind returns a kind of which its room forgets the oldest.
func sharedKind(letter byte, name string, share int64, most int, longest time.Duration) *Kind {
	return newKind(Kind{letter: letter, name: name, share: share, most: most, longest: longest, bound: byRoom})
}

// ownedKind returns a kind of records that go with others. owner says why they have no share.
func ownedKind(letter byte, name string, longest time.Duration, owner string) *Kind {
	return newKind(Kind{letter: letter, name: name, longest: longest, bound: byOwner, owner: owner})
}

// configuredKind returns a kind of which the configuration decides how many there are.
func configuredKind(letter byte, name string) *Kind {
	return newKind(Kind{letter: letter, name: name, longest: lasting, bound: byConfiguration})
}

// ownKind returns a kind of records that are not those of keys.
func ownKind(letter byte, name string) *Kind {
	return newKind(Kind{letter: letter, name: name, bound: notOfKeys})
}

func newKind(k Kind) *Kind {
	if kinds[k.letter] != nil || (k.bound == byUsage || k.bound == byForgetting || k.bound == byRoom) && (k.share <= 0 || k.most <= 0 || k.longest <= 0) || (k.bound == byUsage) != (k.advice != "") {
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

// Limits reports whether a key has a share of max_size for the records.
func (k *Kind) Limits() bool { return k.share > 0 }

// Owner says which record or message counts for the records of the kind; "" for none.
func (k *Kind) Owner() string { return k.owner }

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
