package outbox

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Room is what keeps records in an open queue: a package below gateway/ that looks after kinds of
// its own. Package gateway has the list of all rooms, and calls them for the queue. A room that has
// nothing to do on an occasion embeds one of the types below.
type Room interface {
	// Kinds returns the kinds of its records. No other room has them.
	Kinds() []*Kind

	// Arm begins to wait for what may be due. It is called when the queue is opened, when a
	// configuration takes over, and after a jump of the clock; after an error, again.
	Arm(ctx context.Context, conf *Configuration) error

	// Refresh reads what the room remembers and other gateways may have changed, and does what
	// nothing else begins. It is called each second.
	Refresh(ctx context.Context, conf *Configuration)

	// Punctual returns a function that reports whether something may be due that cannot wait for
	// half a minute; nil if nothing ever is. It is called each second, and reads no record.
	Punctual(conf *Configuration) func() bool

	// Due does what is due in a record of one of its kinds. After an error it is called again
	// later; [queue.ErrUnknown] leaves the record to a gateway that can read it. crowded means that
	// there are too many records: a record that is dispensable is removed then.
	Due(ctx context.Context, conf *Configuration, name queue.Hash, record []byte, crowded bool) error

	// Ahead reports whether a record was written when the clock was ahead. It is due then, and
	// Due counts its time from now.
	Ahead(record []byte, now time.Time) bool

	// Turn returns the turn of a record that is due. Due is called for one record of a turn after
	// the other. See [Spread].
	Turn(name queue.Hash, record []byte) string

	// Ended returns what changes when a job ends, or nil. Its Decide reads the final status.
	Ended(conf *Configuration, j *queue.Job) *queue.Ruled

	// Recheck looks at the jobs that the room holds, after the occasions of Arm, and returns the
	// jobs of other rooms. If the record of a job is lost, Recheck makes it again or releases the
	// job.
	Recheck(ctx context.Context, conf *Configuration, held []queue.Job) (others []queue.Job)

	// Forget removes what is kept of a key that was deleted, before its time ends. by is the user
	// who has deleted it; "" if nobody is known. No other key gets what is left: a key that is
	// moved keeps its place, and one that is saved again has another one.
	Forget(ctx context.Context, conf *Configuration, of site.Place, by string) error
}

// A room that has nothing to do on an occasion embeds the type of that method of [Room].
type (
	NoArm      struct{} // what is due is known by its time alone
	NoRefresh  struct{} // nothing is remembered that others can change
	NoPunctual struct{} // half a minute does not matter
	NoAhead    struct{} // no time was counted by the clock, or none matters
	NoTurn     struct{} // the records do not depend on one another
	NoEnded    struct{} // no record depends on jobs
	NoRecheck  struct{} // no jobs are held
	NoForget   struct{} // what is left ends by its time
)

func (NoArm) Arm(context.Context, *Configuration) error                           { return nil }
func (NoRefresh) Refresh(context.Context, *Configuration)                         {}
func (NoPunctual) Punctual(*Configuration) func() bool                            { return nil }
func (NoAhead) Ahead([]byte, time.Time) bool                                      { return false }
func (NoTurn) Turn(name queue.Hash, _ []byte) string                              { return Spread(name, "") }
func (NoEnded) Ended(*Configuration, *queue.Job) *queue.Ruled                     { return nil }
func (NoForget) Forget(context.Context, *Configuration, site.Place, string) error { return nil }

func (NoRecheck) Recheck(_ context.Context, _ *Configuration, held []queue.Job) []queue.Job {
	return held
}

// Always is the [Room.Punctual] of a room that always has something to do in time.
func Always() bool { return true }

// spread is the number of turns that the records of one key have.
const spread = 4

// Spread returns the turn of a record of the key with a place: one of several, because the records
// of the key do not depend on one another, and so several of them are worked on at once.
func Spread(name queue.Hash, place string) string { return place + string('0'+name[0]%spread) }

// Kind is a kind of the records that the gateway keeps in the queue, and what they may take.
// A record begins with the letter of its kind. Each [Room] has kinds of its own.
//
// All records of a kind take at most the part of max_size of which share is the divisor, and the
// records of one key at most half of that part. If the kind has a [Usage], or is the kind of
// inboxes, each key has less as soon as all keys together have too much. So there is room left for
// the messages of others. The number is the maximum for one key. The time is the longest until
// something is decided about a record; see [Kind.Due]. Records are forgotten within seconds, and at
// once if a message finds the queue full.
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
	// The records belong to no key: there is one, or a few of each gateway.
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

// CountedKind returns a kind that a [Usage] keeps within its limits. advice says what to do for
// somebody who has too many.
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

// OwnKind returns a kind of records that belong to no key.
func OwnKind(letter byte, name string) *Kind {
	return newKind(Kind{letter: letter, name: name, bound: notOfKeys})
}

func newKind(k Kind) *Kind {
	if kinds[k.letter] != nil || (k.bound == byUsage || k.bound == byForgetting || k.bound == byRoom) &&
		(k.share <= 0 || k.most <= 0 || k.longest <= 0) || k.bound == byOwner && k.owner == "" || (k.bound == byUsage) != (k.advice != "") {
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

// OfKeys reports whether the records belong to keys.
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

// Due returns when a record is due that should be due at a time: not later than the kind allows.
// Whoever does what is due finds out that it is early.
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

// EncodeRecord returns the content of a record of a kind.
func EncodeRecord(kind *Kind, data []byte) []byte { return append(kind.Begin(), data...) }

// RemoveRecord removes a record.
func (q *Outbox) RemoveRecord(ctx context.Context, name queue.Hash) error {
	return q.Queue.Records.Apply(ctx, Removal(name))
}

// Removal returns the change that removes a record.
func Removal(name queue.Hash) *queue.Ruled {
	return &queue.Ruled{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
		tx.Delete(name)
		return nil
	}}
}

// Typed reads and writes the records of a kind that have a T each.
type Typed[T any] struct {
	Kind   *Kind
	Fields func(*T, *wire.Codec) // of a record
}

// Decode returns what a record has: nil for none, for one of another kind and for a damaged one.
func (t Typed[T]) Decode(record []byte) *T {
	if KindOf(record) != t.Kind {
		return nil
	}
	x := new(T)
	if wire.Decode(record[1:], x, t.Fields) != nil {
		return nil
	}
	return x
}

// DecodeOrNew returns what a record has, or an empty T instead of nil.
func (t Typed[T]) DecodeOrNew(record []byte) *T {
	if x := t.Decode(record); x != nil {
		return x
	}
	return new(T)
}

// Get returns what a record has in a transaction, as Decode does.
func (t Typed[T]) Get(tx *queue.Tx, name queue.Hash) *T { return t.Decode(tx.Get(name)) }

// GetOrNew returns what a record has in a transaction, as DecodeOrNew does.
func (t Typed[T]) GetOrNew(tx *queue.Tx, name queue.Hash) *T { return t.DecodeOrNew(tx.Get(name)) }

// Read returns what a record has outside of a transaction, as Decode does.
func (t Typed[T]) Read(ctx context.Context, q *Outbox, name queue.Hash) (*T, error) {
	b, err := q.Queue.Records.Get(ctx, name)
	return t.Decode(b), err
}

// Put puts x into a record, which is due at a time. group is the zero value for none.
func (t Typed[T]) Put(tx *queue.Tx, name queue.Hash, x *T, due time.Time, group queue.Hash) {
	tx.Put(name, t.Record(x, due, group))
}

// Record returns the record that Put puts.
func (t Typed[T]) Record(x *T, due time.Time, group queue.Hash) queue.Record {
	return queue.Record{Data: wire.Append(t.Kind.Begin(), x, t.Fields), Due: due, Group: group}
}

// FarAway is the due time of records for which nothing has to be done.
func FarAway(now time.Time) time.Time { return now.AddDate(100, 0, 0) }

// PageSize is the number of records that are read at once.
const PageSize = 500

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
