package outbox

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Kind is a kind of the records that the gateway keeps in the queue, and what they may take.
// A record begins with the letter of its kind. Each [Room] has kinds of its own.
//
// The records of a kind that one key has take at most half of the part of max_size that the share
// is the divisor of. Those of all keys take at most that part, if the kind has a [Usage] or is that
// of inboxes: then each key has less as soon as they are too many. So what one key has of all kinds
// leaves room for the messages of others. The number is that of one key. The time is the longest
// until something is decided about a record; see [Kind.Due]. What is forgotten is so within seconds,
// and at once if a message finds the queue full.
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

// Times of kinds.
const (
	Day     = 24 * time.Hour
	Lasting = 100 * 366 * Day // the record is there as long as what it is about
)

// The kinds of records of the outbox itself. Each room has its own, beside what encodes them.
var (
	// What a destination of a key has given up. See given_up.go.
	KindGivenUp = RememberedKind('g', "records of what was given up", 16, 10_000)

	// An open alert of an incident tool, of which repetitions are not told.
	KindOpenAlert = RememberedKind('o', "open alerts", 32, 10_000)

	// A message that was cancelled while it was sent. See cancelled.go.
	KindCancelled = OwnedKind('x', "messages cancelled during an attempt", Lasting, "the message that is being sent is larger")

	KindUsage = OwnKind('u', "usage") // how much a key has of a kind; see [Usage]
)

// kinds are all kinds by their letters.
var kinds = map[byte]*Kind{}

// CountedKind returns a kind that a [Usage] keeps within its limits. advice says what somebody
// does who has too many.
func CountedKind(letter byte, name string, share int64, most int, longest time.Duration, advice string) *Kind {
	return newKind(Kind{letter: letter, name: name, share: share, most: most, longest: longest, bound: byUsage, advice: advice})
}

// RememberedKind returns a kind of which a [Usage] forgets the oldest.
func RememberedKind(letter byte, name string, share int64, most int) *Kind {
	return newKind(Kind{letter: letter, name: name, share: share, most: most, longest: Lasting, bound: byForgetting})
}

// SharedKind returns a kind of which its room forgets the oldest.
func SharedKind(letter byte, name string, share int64, most int, longest time.Duration) *Kind {
	return newKind(Kind{letter: letter, name: name, share: share, most: most, longest: longest, bound: byRoom})
}

// OwnedKind returns a kind of records that go with others. owner says why they have no share.
func OwnedKind(letter byte, name string, longest time.Duration, owner string) *Kind {
	return newKind(Kind{letter: letter, name: name, longest: longest, bound: byOwner, owner: owner})
}

// ConfiguredKind returns a kind of which the configuration decides how many there are.
func ConfiguredKind(letter byte, name string) *Kind {
	return newKind(Kind{letter: letter, name: name, longest: Lasting, bound: byConfiguration})
}

// OwnKind returns a kind of records that are not those of keys.
func OwnKind(letter byte, name string) *Kind {
	return newKind(Kind{letter: letter, name: name, bound: notOfKeys})
}

func newKind(k Kind) *Kind {
	if kinds[k.letter] != nil || (k.bound == byUsage || k.bound == byForgetting || k.bound == byRoom) && (k.share <= 0 || k.most <= 0 || k.longest <= 0) || k.bound == byOwner && k.owner == "" || (k.bound == byUsage) != (k.advice != "") {
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
