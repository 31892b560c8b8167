// Package sealed keeps texts from a store: it seals everything that the queue stores, above the
// interface [queue.Store]. What the store gets are IDs, times, sizes, statuses, counts and flags, keyed
// hashes in place of destinations, hosts, incidents and idempotency keys, and sealed bytes (package
// seal) in place of everything else. The names and groups of records are hashes of keyed hashes.
//
// The stores of other modules are behind it. Packages bolt and postgres seal themselves, with
// the same keys and the same places, because they share a key among the records of one transaction
// and need to know which record is damaged.
package sealed

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
)

// Store is a [queue.Store] that keeps what it stores, sealed, in another one.
type Store struct {
	queue.Store // the other one

	sealer *record.Sealer
	ring   queue.Hash    // the name of the record with the ring of the sealer
	later  time.Duration // for tests: by how much its clock is ahead
}

var _ queue.Resealer = (*Store)(nil)

// The place of the ring.
const placeRing = "ring"

// ringDue is when the record of the ring is due: never.
var ringDue = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// New returns a store that seals what it keeps in another one, with a secret of 16 or more
// characters. It reads what was sealed under older secrets, too. It returns an error if the other
// store was used with another secret. All handles that share it need the same secrets.
func New(ctx context.Context, store queue.Store, log *zap.Logger, secret string, older ...string) (*Store, error) {
	if log == nil {
		log = zap.NewNop()
	}
	s := &Store{Store: store, ring: store.Hash("caddy-notify ring")}
	sealer, err := s.join(ctx, secret, older)
	if err != nil {
		return nil, err
	}
	s.sealer = &record.Sealer{Sealer: sealer, Log: log}
	return s, nil
}

// SetSecrets implements [queue.Resealer].
func (s *Store) SetSecrets(ctx context.Context, secret string, older ...string) error {
	sealer, err := s.join(ctx, secret, older)
	if err == nil {
		s.sealer.Use(sealer)
	}
	return err
}

// join returns a sealer that uses the ring of the other store, which gets one if it has none.
func (s *Store) join(ctx context.Context, secret string, older []string) (*seal.Sealer, error) {
	sealer, err := seal.New(secret, older...)
	if err != nil {
		return nil, err
	}
	return sealer, s.Store.Update(ctx, &queue.Update{Names: []queue.Hash{s.ring}, Decide: func(tx *queue.Tx) error {
		changed := sealer.Ring(placeRing, nil, time.Now())
		if ring := tx.Get(s.ring); ring != nil {
			var err error
			if changed, err = sealer.Join(ring, placeRing, nil, time.Now()); err != nil || changed == nil {
				return err
			}
		}
		tx.Put(s.ring, queue.Record{Data: changed, Due: ringDue})
		return nil
	}})
}

// errUnread is returned by a Decide if a record cannot be opened.
var errUnread = errors.New("a record cannot be opened")

// errForeign is returned if another process has begun to use a secret that this one does not have.
var errForeign = &queue.UnavailableError{Err: errors.New("another gateway that shares it " +
	"seals with a secret that this one does not have: add that one, after the present one")}

// foreign reports whether a record that cannot be opened may be sealed under a secret that this
// process does not have. Otherwise it is damaged.
func (s *Store) foreign(ctx context.Context) bool {
	ring, err := s.Store.Record(ctx, s.ring)
	return err != nil || ring != nil && !s.sealer.Reads(ring, placeRing, nil)
}

// deciding calls f, which may return errUnread. Then it calls f again, with lenient set, unless the
// record is only foreign.
func (s *Store) deciding(ctx context.Context, f func(lenient bool) error) error {
	err := f(false)
	if !errors.Is(err, errUnread) {
		return err
	}
	if s.foreign(ctx) {
		return errForeign
	}
	return f(true)
}

// Hash implements [queue.Store]. The other store hashes the keyed hash of the text: it does so with
// [queue.Job.Destination], too.
func (s *Store) Hash(text string) queue.Hash { return s.Store.Hash(s.pseudonym("destination", text)) }

// pseudonym returns the keyed hash of a text in place of the text.
func (s *Store) pseudonym(purpose, text string) string {
	if text == "" {
		return ""
	}
	h := s.sealer.Hash(purpose, text)
	return fmt.Sprintf("%x", h[:])
}

// Accept implements [queue.Store].
func (s *Store) Accept(ctx context.Context, maxSize int64, entries ...*queue.Entry) error {
	return s.deciding(ctx, func(lenient bool) error {
		all := make([]*queue.Entry, len(entries))
		for i, e := range entries {
			all[i] = s.sealEntry(e, lenient)
		}
		return s.Store.Accept(ctx, maxSize, all...)
	})
}

// Claim implements [queue.Store].
func (s *Store) Claim(ctx context.Context, c queue.Claim) (jobs []queue.Job, next time.Time, err error) {
	all, next, err := s.Store.Claim(ctx, c)
	for i := range all {
		if j, ok := s.openJob(&all[i]); ok {
			jobs = append(jobs, *j)
			continue
		}
		c.Slots.Release(all[i].JobID)
		if e := s.giveBack(ctx, &all[i], c.Now); e != nil {
			s.sealer.Log.Error("giving back a delivery that cannot be read", zap.Error(e))
		}
	}
	return jobs, next, err
}

// foreignPause is how long a job waits that a process cannot read.
const foreignPause = 10 * time.Second

// giveBack settles a claimed job that cannot be opened: it is lost or, if another process can open
// it, due a little later.
func (s *Store) giveBack(ctx context.Context, j *queue.Job, now time.Time) error {
	j.Status, j.Updated, j.Due = queue.Queued, now, now.Add(foreignPause)
	if !s.foreign(ctx) {
		_ = s.sealer.DamagedJob(j.JobID)
		j.Status, j.Result = queue.Lost, nil
	}
	return s.Store.Settle(ctx, &queue.Settlement{Job: j})
}

// Health implements [queue.Store].
func (s *Store) Health(ctx context.Context, age time.Duration) ([]queue.Health, error) {
	all, err := s.Store.Health(ctx, age)
	var open []queue.Health
	for i := range all {
		if h := s.openHealth(&all[i]); h != nil {
			open = append(open, *h)
		}
	}
	return open, err
}

// SaveHealth implements [queue.Store].
func (s *Store) SaveHealth(ctx context.Context, states ...queue.Health) error {
	return s.Store.SaveHealth(ctx, s.sealHealth(states)...)
}

// Settle implements [queue.Store].
func (s *Store) Settle(ctx context.Context, t *queue.Settlement) error {
	return s.deciding(ctx, func(lenient bool) error {
		out := *t
		out.Job = new(queue.Job)
		s.sealJob(t.Job, out.Job)
		out.Health = s.sealHealth(t.Health)
		if t.Next != nil {
			out.Next = s.sealEntry(t.Next, lenient)
		}
		next := out.Next
		out.Update = s.sealUpdate(t.Update, lenient, func() {
			s.sealJob(t.Job, out.Job)
			switch {
			case t.Next == nil:
				out.Next = nil
			case next == nil:
				out.Next = s.sealEntry(t.Next, lenient)
			default:
				s.sealJobs(t.Next, next)
				out.Next = next
			}
		})
		return s.Store.Settle(ctx, &out)
	})
}

// Update implements [queue.Store].
func (s *Store) Update(ctx context.Context, u *queue.Update) error {
	return s.deciding(ctx, func(lenient bool) error { return s.Store.Update(ctx, s.sealUpdate(u, lenient, func() {})) })
}

// Record implements [queue.Store].
func (s *Store) Record(ctx context.Context, name queue.Hash) ([]byte, error) {
	data, err := s.Store.Record(ctx, name)
	if err != nil || data == nil {
		return nil, err
	}
	plain, err := s.sealer.Open(data, record.Records, name[:])
	if err == nil {
		return plain, nil
	}
	if s.foreign(ctx) {
		return nil, errForeign
	}
	return nil, s.sealer.Damaged("a record of an incident")
}

// Group implements [queue.Store].
func (s *Store) Group(ctx context.Context, group, after queue.Hash, n int) (records []queue.NamedRecord, err error) {
	for len(records) < n {
		want := n - len(records)
		some, err := s.Store.Group(ctx, group, after, want)
		if err != nil {
			return nil, err
		}
		for _, r := range some {
			after = r.Name
			if r.Data, err = s.sealer.Open(r.Data, record.Records, r.Name[:]); err == nil {
				records = append(records, r)
			}
		}
		if len(some) < want {
			break
		}
	}
	return records, nil
}

// DueRecords implements [queue.Store].
func (s *Store) DueRecords(ctx context.Context, now time.Time, after queue.DuePlace, n int) ([]queue.DueRecord, bool, error) {
	all, more, err := s.Store.DueRecords(ctx, now, after, n)
	var due []queue.DueRecord
	for _, r := range all {
		if r.Name == s.ring {
			continue
		}
		plain, e := s.sealer.Open(r.Data, record.Records, r.Name[:])
		if e != nil && s.foreign(ctx) {
			continue // without its data it would be taken for damaged, and removed
		}
		r.Data = plain
		due = append(due, r)
	}
	return due, more, err
}

// SurplusRecords implements [queue.Store].
func (s *Store) SurplusRecords(ctx context.Context, keep, n int) (names []queue.Hash, err error) {
	all, err := s.Store.SurplusRecords(ctx, keep+1, n) // beside the ring, which is due last
	for _, name := range all {
		if name != s.ring {
			names = append(names, name)
		}
	}
	return names, err
}

// Load implements [queue.Store].
func (s *Store) Load(ctx context.Context, id uuid.UUID) (*queue.Message, func(), error) {
	m, release, err := s.Store.Load(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	out, err := s.openMessage(ctx, m)
	if err == nil {
		if out.Body, err = s.sealer.Open(m.Body, record.Bodies, id[:]); err != nil {
			err = s.unreadable(ctx, "the text of message "+id.String())
		}
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	for i, f := range m.Files {
		size := seal.PlainSize(f.Size)
		out.Files = append(out.Files, queue.File{Size: size, ReaderAt: s.sealer.OpenReader(f, size, record.FileKey(id, i))})
	}
	return out, release, nil
}

// unreadable returns the error for something that cannot be opened.
func (s *Store) unreadable(ctx context.Context, what string) error {
	if s.foreign(ctx) {
		return errForeign
	}
	return s.sealer.Damaged(what)
}

// Get implements [queue.Store].
func (s *Store) Get(ctx context.Context, id uuid.UUID) (*queue.Entry, error) {
	e, err := s.Store.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.openEntry(ctx, e)
}

// Batches implements [queue.Store].
func (s *Store) Batches(ctx context.Context, from, to uuid.UUID) (batches [][]byte, err error) {
	all, err := s.Store.Batches(ctx, from, to)
	for _, sealed := range all {
		var m queue.Message // without an ID
		if s.openSummary(&m, sealed) {
			batches = append(batches, m.Summary)
		}
	}
	return batches, err
}

// List implements [queue.Store].
func (s *Store) List(ctx context.Context, after queue.JobID, n int, statuses ...queue.Status) (jobs []queue.Job, err error) {
	for len(jobs) < n {
		want := n - len(jobs)
		some, err := s.Store.List(ctx, after, want, statuses...)
		if err != nil {
			return jobs, err
		}
		for i := range some {
			after = some[i].JobID
			if j, ok := s.openJob(&some[i]); ok {
				jobs = append(jobs, *j)
			}
		}
		if len(some) < want {
			break
		}
	}
	return jobs, nil
}

// Messages implements [queue.Store].
func (s *Store) Messages(ctx context.Context, before uuid.UUID, n int) (entries []*queue.Entry, next uuid.UUID, err error) {
	all, next, err := s.Store.Messages(ctx, before, n)
	for _, e := range all {
		if e, err := s.openEntry(ctx, e); err == nil {
			entries = append(entries, e)
		}
	}
	return entries, next, err
}

// HashText returns a hash of a text. A store of another module can use it as its method
// [queue.Store.Hash]: what it gets to hash are keyed hashes already.
func HashText(text string) (h queue.Hash) {
	sum := sha256.Sum256([]byte(text))
	copy(h[:], sum[:])
	return h
}
