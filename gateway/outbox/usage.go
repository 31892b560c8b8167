package outbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Usage counts how much each key has of a kind of records, and refuses what is too much. The count
// of a key is a record of its own, which changes in the transactions that change the other records.
// So nobody has to count them, and several gateways agree.
type Usage struct {
	outbox  *Outbox
	kind    *Kind
	weigh   func(record []byte) Used
	records func(ctx context.Context, place string, f func(record []byte)) error
	memory  *Memory           // nil if what is too much is refused
	group   func() queue.Hash // of the records of the usage of all keys

	counting sync.Mutex // one caller counts at a time

	mu        sync.Mutex
	recounted map[string]time.Time // when those were counted again that had too much, by the places
	all       Used                 // what all keys have
	looked    time.Time            // when that was read
}

// Used is how much a key has of a kind.
type Used struct {
	Count int
	Bytes int64
}

func (u Used) plus(v Used) Used  { return Used{u.Count + v.Count, u.Bytes + v.Bytes} }
func (u Used) minus(v Used) Used { return Used{u.Count - v.Count, u.Bytes - v.Bytes} }

// Weigh returns what a record counts for if it stands only for itself.
func Weigh(record []byte) Used { return Used{1, recordOverhead + int64(len(record))} }

// recordOverhead is about how many bytes a store needs for a record, besides its content.
const recordOverhead = 180

// NewUsage returns the usage of a kind. weigh returns what a record counts for. records calls a
// function with each record of the key with a place; records of other kinds count for nothing.
func (q *Outbox) NewUsage(kind *Kind, weigh func(record []byte) Used,
	records func(ctx context.Context, place string, f func(record []byte)) error,
) *Usage {
	return q.usages.add(q, &Usage{kind: kind, weigh: weigh, records: records})
}

// usageSet has the usages of an outbox by the kinds that they count. The zero value is ready for
// use.
type usageSet map[*Kind]*Usage

func (s *usageSet) add(q *Outbox, u *Usage) *Usage {
	u.outbox, u.recounted = q, map[string]time.Time{}
	u.group = sync.OnceValue(func() queue.Hash { return q.Queue.Hash("usage\x00" + string(u.kind.letter)) })
	if *s == nil {
		*s = usageSet{}
	}
	(*s)[u.kind] = u
	return u
}

// forgetOldest forgets the oldest of what keys remember beyond their shares, and reports whether
// there was some.
func (s usageSet) forgetOldest(ctx context.Context) (made bool) {
	for _, u := range s {
		if u.memory != nil && u.memory.forgetOldest(ctx) {
			made = true
		}
	}
	return made
}

// usage is the record of a [Usage] of a key.
type usage struct {
	Used
	Kind    byte
	Place   string
	Counted bool // it has what was there before it, too
	Changes int  // how often it has changed
}

func (x *usage) fields(c *wire.Codec) {
	wire.Number(c, 1, &x.Kind)
	wire.Text(c, 2, &x.Place)
	wire.Number(c, 3, &x.Count)
	wire.Number(c, 4, &x.Bytes)
	wire.True(c, 5, &x.Counted)
	wire.Number(c, 6, &x.Changes)
}

var usages = Typed[usage]{KindUsage, (*usage).fields}

// How long after its last change a usage is due. It is then counted again, in case an earlier
// version has changed records without it, or removed if the key has nothing.
const (
	countAgain  = Day
	forgetUsage = 30 * Day
)

// put stores a usage after a change.
func (u *Usage) put(tx *queue.Tx, name queue.Hash, x usage) {
	x.Count, x.Bytes = max(x.Count, 0), max(x.Bytes, 0)
	x.Changes++
	due := u.outbox.Queue.Now().Add(countAgain)
	if x.Used == (Used{}) {
		due = u.outbox.Queue.Now().Add(forgetUsage)
	}
	usages.Put(tx, name, &x, due, u.group())
}

func (u *Usage) name(place string) queue.Hash {
	return u.outbox.Queue.Hash("usage\x00" + string(u.kind.letter) + "\x00" + place)
}

// Ruled returns r together with the change of what the key with a place has: how much the records
// of r that are of the kind grow or shrink. The change fails if the key has too much then, unless
// adds is false or the oldest are forgotten. The caller makes it with [Outbox.Apply] or
// [Outbox.Accept].
func (u *Usage) Ruled(place string, adds bool, r *queue.Ruled) *queue.Ruled {
	out, name := *r, u.name(place)
	out.Names = append(slices.Clip(r.Names), name)
	out.Decide = func(tx *queue.Tx) error {
		before := u.weightIn(tx, r.Names)
		if err := r.Decide(tx); err != nil {
			return err
		}
		grown := u.weightIn(tx, r.Names).minus(before)
		x := usages.Get(tx, name)
		if x == nil && u.memory != nil && grown.Bytes > 0 { // what is not of the group is not counted
			x = &usage{Kind: u.kind.letter, Place: place, Counted: true}
		}
		adds := adds && u.memory == nil
		switch {
		case x == nil && !adds: // it is counted when it is needed
			return nil
		case adds && (x == nil || !x.Counted):
			return &uncountedError{u, place}
		}
		x.Used = x.plus(grown)
		if adds {
			if err := u.check(place, x.Used, grown); err != nil {
				return err
			}
		}
		u.mu.Lock()
		u.all = u.all.plus(grown)
		u.mu.Unlock()
		if u.memory != nil {
			u.memory.note(place, x.Used)
		}
		u.put(tx, name, *x)
		return nil
	}
	return &out
}

// weightIn returns what the records with the names count for in a transaction.
func (u *Usage) weightIn(tx *queue.Tx, names []queue.Hash) (w Used) {
	for _, name := range names {
		w = w.plus(u.weightOf(tx.Get(name)))
	}
	return w
}

// weightOf returns what a record counts for; nothing if it is of another kind.
func (u *Usage) weightOf(record []byte) Used {
	if KindOf(record) != u.kind {
		return Used{}
	}
	return u.weigh(record)
}

// check returns a [*fullError] if a key that has grown has too much.
func (u *Usage) check(place string, has, grown Used) error {
	k, size := u.kind, u.outbox.Queue.MaxSize()
	switch {
	case grown.Count > 0 && has.Count > k.most:
		return &fullError{u, place, tooMuch(message.Full, "the key has %d %s already, which is the limit; %s", has.Count-grown.Count,
			k, k.advice)}
	case grown.Bytes > 0 && has.Bytes > k.KeyShare(size):
		return &fullError{u, place, tooMuch(message.Full, "the %s of the key take as much as one key may, which is %s of max_size; %s", k,
			humanize.IBytes(uint64(max(k.KeyShare(size), 0))), k.advice)}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if grown.Bytes > 0 && u.all.Bytes+grown.Bytes > k.Share(size) {
		return &fullError{u, place, tooMuch(message.Unavailable,
			"the %s of all keys take as much as they may, which is %s of max_size; try again later, or raise max_size", k,
			humanize.IBytes(uint64(max(k.Share(size), 0))))}
	}
	return nil
}

// fullRetryAfter is when somebody who has too much may try again.
const fullRetryAfter = time.Minute

func tooMuch(kind message.Kind, format string, args ...any) *message.Error {
	err := message.Errorf(kind, format, args...)
	err.RetryAfter = fullRetryAfter
	return err
}

// fullError is returned if a key has too much of a kind.
type fullError struct {
	usage  *Usage
	place  string
	answer *message.Error
}

func (e *fullError) Error() string { return e.answer.Error() }

// uncountedError is returned if it is not known how much a key has of a kind.
type uncountedError struct {
	usage *Usage
	place string
}

func (e *uncountedError) Error() string {
	return fmt.Sprintf("the %s of the key are not counted yet", e.usage.kind)
}

// Apply makes a change by rules, as [queue.Records.Apply] does.
func (q *Outbox) Apply(ctx context.Context, r *queue.Ruled) error {
	return counted(ctx, func() error { return q.Queue.Records.Apply(ctx, r) })
}

// counted makes a change. If the change needs a count that does not exist yet, counted makes the
// count first. If a key has too much, it counts again, in case the number is wrong.
func counted(ctx context.Context, change func() error) error {
	for {
		err := change()
		if x, ok := errors.AsType[*uncountedError](err); ok {
			if err := x.usage.count(ctx, x.place, false); err != nil {
				return err
			}
			continue
		}
		x, ok := errors.AsType[*fullError](err)
		if !ok {
			return err
		}
		again, err := x.usage.countFull(ctx, x.place)
		if err != nil {
			return err
		}
		if !again {
			return x.answer
		}
	}
}

// fullAgain is how long it takes until a key that has too much is counted again.
const fullAgain = time.Minute

// countFull counts what a key has that has too much, unless that was done a moment ago. It reports
// whether it has counted.
func (u *Usage) countFull(ctx context.Context, place string) (bool, error) {
	now := u.outbox.Queue.Now()
	u.mu.Lock()
	last := u.recounted[place]
	again := now.Sub(last).Abs() >= fullAgain
	if again {
		u.recounted[place] = now
	}
	u.mu.Unlock()
	if !again {
		return false, nil
	}
	return true, errors.Join(u.count(ctx, place, true), u.readAll(ctx))
}

// errUsageChanged is returned when a usage has changed while it was counted.
var errUsageChanged = errors.New("what the key keeps has changed while it was counted")

// countTries is how often a key is counted at most. Whoever adds something waits meanwhile.
const countTries = 20

// count counts the records of a key: if that was not done before, or with again.
func (u *Usage) count(ctx context.Context, place string, again bool) (err error) {
	u.counting.Lock()
	defer u.counting.Unlock()
	for range countTries {
		var before *usage
		before, err = u.read(ctx, place)
		if err != nil {
			return err
		}
		if before != nil && before.Counted && !again {
			return nil
		}
		// Changes are noted from now on, so that none is missed. Earlier changes are in the lists
		// of records: a store may show a record earlier than its name in a list.
		noted := usage{Kind: u.kind.letter, Place: place}
		if before != nil {
			noted = *before
		}
		if err = u.replace(ctx, place, before, noted); errors.Is(err, errUsageChanged) {
			continue
		} else if err != nil {
			return err
		}
		noted.Changes++
		next := noted
		next.Used, next.Counted = Used{}, true
		if err := u.records(ctx, place, func(record []byte) { next.Used = next.plus(u.weightOf(record)) }); err != nil {
			return err
		}
		if err = u.replace(ctx, place, &noted, next); !errors.Is(err, errUsageChanged) {
			return err
		}
	}
	return &queue.UnavailableError{Err: errUsageChanged}
}

// read returns what is stored of a key, or nil.
func (u *Usage) read(ctx context.Context, place string) (*usage, error) {
	return usages.Read(ctx, u.outbox, u.name(place))
}

// replace stores the usage of a key, if it is as it was before; nil for none.
func (u *Usage) replace(ctx context.Context, place string, before *usage, next usage) error {
	name := u.name(place)
	return u.outbox.Queue.Records.Apply(ctx, &queue.Ruled{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
		x := usages.Get(tx, name)
		if (x == nil) != (before == nil) || x != nil && *x != *before {
			return errUsageChanged
		}
		u.put(tx, name, next)
		return nil
	}})
}

// due counts again what a key has, because the number has not changed for a while. It removes the
// record of a key that has nothing.
func (s usageSet) due(ctx context.Context, q *Outbox, name queue.Hash, data []byte) error {
	x := usages.Decode(data)
	if x == nil || s[kinds[x.Kind]] == nil {
		return q.RemoveRecord(ctx, name)
	}
	u := s[kinds[x.Kind]]
	if x.Used != (Used{}) {
		return u.count(ctx, x.Place, true)
	}
	err := q.Queue.Records.Apply(ctx, &queue.Ruled{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
		if !bytes.Equal(tx.Get(name), data) {
			return errUsageChanged
		}
		tx.Delete(name)
		return nil
	}})
	if errors.Is(err, errUsageChanged) {
		return nil // it is due later
	}
	return err
}

// Of returns what the key with a place has. counted reports whether that is known.
func (u *Usage) Of(ctx context.Context, place string) (has Used, counted bool, err error) {
	x, err := u.read(ctx, place)
	if err != nil || x == nil {
		return Used{}, false, err
	}
	return x.Used, x.Counted, nil
}

// refresh reads what all keys have, every few seconds.
func (u *Usage) refresh(ctx context.Context) {
	now := u.outbox.Queue.Now()
	u.mu.Lock()
	early := now.Sub(u.looked).Abs() < readUsage
	u.mu.Unlock()
	if !early {
		_ = u.readAll(ctx) // it is read later
	}
}

// readUsage is how often the usages of all keys are read.
const readUsage = 10 * time.Second

// readAll reads what all keys have.
func (u *Usage) readAll(ctx context.Context) error {
	var all Used
	has := map[string]Used{}
	now := u.outbox.Queue.Now()
	err := EachOfGroup(ctx, u.outbox.Queue, u.group(), func(r queue.NamedRecord) bool {
		if x := usages.Decode(r.Data); x != nil {
			all = all.plus(x.Used)
			if u.memory != nil {
				has[x.Place] = x.Used
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	u.mu.Lock()
	u.all, u.looked = all, now
	u.mu.Unlock()
	if u.memory != nil {
		u.memory.share(has)
	}
	return nil
}
