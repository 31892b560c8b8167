package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/sealed"
)

// Store is a [queue.Store]. One process uses its file at a time, so that there are no leases and no
// shared clock.
type Store struct {
	log     *zap.Logger
	lock    *os.File
	changed chan struct{}

	mu       sync.Mutex
	journal  journal
	closed   bool
	messages map[uuid.UUID]*message
	ids      []uuid.UUID // of the messages, sorted
	keys     map[string]uuid.UUID
	waiting  int64 // size of the messages that wait
	records  map[queue.Hash]queue.Record
	due      []queue.DuePlace // of the records, sorted
	bytes    int64            // size of the records
	health   map[queue.Hash]queue.Health
	lines    map[queue.Hash]*line // of the destinations with a queued job
	turn     int                  // counts the jobs that were claimed
	latest   time.Time            // no queued job was updated later
}

var _ queue.Store = (*Store)(nil)

// Open opens the store in a file.
func Open(path string, log *zap.Logger) (*Store, error) {
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another process uses %s: %w", path, err), lock.Close())
	}
	s := &Store{
		log: log, lock: lock, changed: make(chan struct{}, 1), journal: journal{path: path},
		messages: map[uuid.UUID]*message{}, keys: map[string]uuid.UUID{}, records: map[queue.Hash]queue.Record{},
		health: map[queue.Hash]queue.Health{}, lines: map[queue.Hash]*line{},
	}
	err = s.journal.read(log, s.apply)
	if err == nil {
		s.giveUpClaims()
		err = s.journal.rewrite(s.all())
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

// giveUpClaims queues the jobs that the process before has claimed.
func (s *Store) giveUpClaims() {
	for _, m := range s.messages {
		for _, j := range m.Jobs {
			if j.Status == queue.Sending {
				j.Status = queue.Queued
				s.setJob(j)
			}
		}
	}
}

// all returns all that is stored.
func (s *Store) all() (all []*change) {
	for _, id := range s.ids {
		all = append(all, &change{Messages: []*message{s.messages[id]}})
	}
	for name, r := range s.records {
		all = append(all, &change{Records: []queue.OwnedRecord{{Name: name, Record: r}}})
	}
	for _, h := range s.health {
		all = append(all, &change{Health: []queue.Health{h}})
	}
	return all
}

// waits reports whether a job of the message waits, and keeps whether its text is kept.
func (m *message) waits() (waits, keeps bool) {
	for i := range m.Jobs {
		waits = waits || m.Jobs[i].Status.Waits()
		keeps = keeps || m.Jobs[i].Status == queue.Dead
	}
	return waits, waits || keeps
}

// apply makes a change in memory.
func (s *Store) apply(c *change) {
	for _, m := range c.Messages {
		id := m.Message.ID
		at, _ := slices.BinarySearchFunc(s.ids, id, compareIDs)
		s.ids = slices.Insert(s.ids, at, id)
		s.messages[id] = m
		if m.Message.Key != "" {
			s.keys[m.Message.Key] = id
		}
		for i := range m.Jobs {
			s.enqueue(&m.Jobs[i])
		}
		waits, keeps := m.waits()
		if waits {
			s.waiting += m.Message.StoredSize
		}
		if !keeps {
			m.Message.Body, m.Files = nil, nil
		}
	}
	for _, j := range c.Jobs {
		s.setJob(j)
	}
	for _, id := range c.Forgotten {
		m := s.messages[id]
		delete(s.messages, id)
		delete(s.keys, m.Message.Key)
		at, _ := slices.BinarySearchFunc(s.ids, id, compareIDs)
		s.ids = slices.Delete(s.ids, at, at+1)
	}
	for _, r := range c.Records {
		s.setRecord(r.Name, r.Record)
	}
	for _, h := range c.Health {
		if delete(s.health, h.Destination); h.Known || h.Down() {
			s.health[h.Destination] = h
		}
	}
}

// setJob replaces a job. The text of a message goes with its last job that waits or is dead.
func (s *Store) setJob(j queue.Job) {
	m := s.messages[j.Message]
	before, _ := m.waits()
	s.dequeue(&m.Jobs[j.Index])
	m.Jobs[j.Index] = j
	s.enqueue(&m.Jobs[j.Index])
	after, keeps := m.waits()
	switch {
	case before && !after:
		s.waiting -= m.Message.StoredSize
	case !before && after:
		s.waiting += m.Message.StoredSize
	}
	if !keeps {
		m.Message.Body, m.Files = nil, nil
	}
}

func (s *Store) setRecord(name queue.Hash, r queue.Record) {
	if old, ok := s.records[name]; ok {
		at, _ := slices.BinarySearchFunc(s.due, queue.DuePlace{Due: old.Due, Name: name}, comparePlaces)
		s.due = slices.Delete(s.due, at, at+1)
		s.bytes -= sizeOf(old)
		delete(s.records, name)
	}
	if len(r.Data) > 0 {
		place := queue.DuePlace{Due: r.Due, Name: name}
		at, _ := slices.BinarySearchFunc(s.due, place, comparePlaces)
		s.due = slices.Insert(s.due, at, place)
		s.bytes += sizeOf(r)
		s.records[name] = r
	}
}

func comparePlaces(a, b queue.DuePlace) int {
	if c := a.Due.Compare(b.Due); c != 0 {
		return c
	}
	return bytes.Compare(a.Name[:], b.Name[:])
}

// sizeOf returns the size that a record counts.
func sizeOf(r queue.Record) int64 {
	if len(r.Data) == 0 {
		return 0
	}
	return int64(128 + len(r.Data))
}

// locked calls f with the lock, unless the store is closed.
func (s *Store) locked(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return queue.ErrClosed
	}
	return f()
}

// commit stores a change. The caller holds the lock.
func (s *Store) commit(c *change) error {
	if j := &s.journal; j.file == nil || j.size > 2*j.base+16<<20 {
		if err := j.rewrite(s.all()); err != nil {
			return unavailable(err)
		}
	}
	if err := s.journal.write(c); err != nil {
		return unavailable(err)
	}
	if err := s.journal.sync(); err != nil {
		return unavailable(err)
	}
	s.apply(c)
	return nil
}

func unavailable(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		err = queue.ErrDiskFull
	}
	return &queue.UnavailableError{Err: err}
}

// Accept implements [queue.Store].
func (s *Store) Accept(_ context.Context, maxSize int64, entries ...*queue.Entry) error {
	if len(entries) == 0 {
		return s.locked(func() error { return s.commit(new(change)) })
	}
	return s.transaction(func(t *tx) error {
		for _, e := range entries {
			if err := t.accept(e, maxSize); err != nil {
				return err
			}
		}
		return nil
	})
}

// Settle implements [queue.Store].
func (s *Store) Settle(_ context.Context, t *queue.Settlement) error {
	return s.locked(func() error {
		if j := s.job(t.Job.JobID); j == nil || j.Status != queue.Sending {
			return queue.ErrNotClaimed
		}
		s.signal()
		if t.Shared != nil { // as after a crash, it would be due earlier
			j := *s.job(t.Job.JobID)
			j.Status, j.Due, j.NotBefore, j.Updated = queue.Queued, t.Job.Due, t.Job.NotBefore, t.Job.Updated
			s.setJob(j)
			s.postpone(&j, t.Shared)
			return nil
		}
		x := s.begin()
		if err := x.decide(t.Update); err != nil {
			return err
		}
		x.setJob(*t.Job)
		x.Health = t.Health
		if t.Next != nil { // the update can remove it
			if err := x.accept(t.Next, noLimit); err != nil {
				return err
			}
		}
		if err := s.commit(&x.change); err != nil {
			return err
		}
		if t.Failure != nil {
			s.postpone(t.Job, t.Failure)
		}
		return nil
	})
}

// Update implements [queue.Store].
func (s *Store) Update(_ context.Context, u *queue.Update) error {
	return s.transaction(func(t *tx) error { return t.decide(u) })
}

// SaveHealth implements [queue.Store].
func (s *Store) SaveHealth(_ context.Context, states ...queue.Health) error {
	return s.transaction(func(t *tx) error {
		t.Health = states
		return nil
	})
}

// Hash implements [queue.Store].
func (s *Store) Hash(text string) queue.Hash { return sealed.HashText(text) }

// Now implements [queue.Store].
func (s *Store) Now() time.Time { return time.Time{} }

// Health implements [queue.Store].
func (s *Store) Health(context.Context, time.Duration) (all []queue.Health, err error) {
	err = s.locked(func() error {
		for _, h := range s.health {
			all = append(all, h)
		}
		return nil
	})
	return all, err
}

// Renew implements [queue.Store]. A claim ends with the process.
func (s *Store) Renew(context.Context, time.Duration) error {
	return s.locked(func() error { return nil })
}

// Record implements [queue.Store].
func (s *Store) Record(_ context.Context, name queue.Hash) (data []byte, err error) {
	err = s.locked(func() error {
		data = s.records[name].Data
		return nil
	})
	return data, err
}

// Group implements [queue.Store].
func (s *Store) Group(_ context.Context, group, after queue.Hash, n int) (records []queue.NamedRecord, err error) {
	err = s.locked(func() error {
		for name, r := range s.records {
			if r.Group == group && bytes.Compare(name[:], after[:]) > 0 {
				records = append(records, queue.NamedRecord{Name: name, Data: r.Data})
			}
		}
		return nil
	})
	slices.SortFunc(records, func(a, b queue.NamedRecord) int { return bytes.Compare(a.Name[:], b.Name[:]) })
	return records[:min(n, len(records))], err
}

// GroupSizes implements [queue.Store].
func (s *Store) GroupSizes(context.Context) (sizes map[queue.Hash]int, err error) {
	sizes = map[queue.Hash]int{}
	err = s.locked(func() error {
		for _, r := range s.records {
			if r.Group != (queue.Hash{}) {
				sizes[r.Group]++
			}
		}
		return nil
	})
	return sizes, err
}

// DueRecords implements [queue.Store].
func (s *Store) DueRecords(_ context.Context, now time.Time, after queue.DuePlace, n int) (due []queue.DueRecord, more bool, err error) {
	err = s.locked(func() error {
		at, found := slices.BinarySearchFunc(s.due, after, comparePlaces)
		if found {
			at++
		}
		size := 0
		for _, place := range s.due[at:] {
			if place.Due.After(now) {
				return nil
			}
			data := s.records[place.Name].Data
			if size += len(data); len(due) == n || size > queue.MaxDueSize && len(due) > 0 {
				more = true
				return nil
			}
			due = append(due, queue.DueRecord{DuePlace: place, Data: data})
		}
		return nil
	})
	return due, more, err
}

// SurplusRecords implements [queue.Store].
func (s *Store) SurplusRecords(_ context.Context, keep, n int) (names []queue.Hash, err error) {
	err = s.locked(func() error {
		for _, place := range s.due[:min(n, max(len(s.due)-keep, 0))] {
			names = append(names, place.Name)
		}
		return nil
	})
	return names, err
}

// Load implements [queue.Store].
func (s *Store) Load(_ context.Context, id uuid.UUID) (m *queue.Message, release func(), err error) {
	err = s.locked(func() error {
		x := s.messages[id]
		if x == nil {
			return queue.ErrNotFound
		}
		if _, keeps := x.waits(); !keeps {
			return queue.ErrNotFound
		}
		out := x.Message
		for _, f := range x.Files {
			out.Files = append(out.Files, queue.File{Size: int64(len(f)), ReaderAt: bytes.NewReader(f)})
		}
		m = &out
		return nil
	})
	return m, func() {}, err
}

// entry returns a message without its text and files, and its jobs.
func (m *message) entry() *queue.Entry {
	out := m.Message
	out.Body = nil
	return &queue.Entry{Message: &out, Jobs: slices.Clone(m.Jobs)}
}

// Get implements [queue.Store].
func (s *Store) Get(_ context.Context, id uuid.UUID) (e *queue.Entry, err error) {
	err = s.locked(func() error {
		m := s.messages[id]
		if m == nil {
			return queue.ErrNotFound
		}
		e = m.entry()
		return nil
	})
	return e, err
}

// Batches implements [queue.Store].
func (s *Store) Batches(_ context.Context, from, to uuid.UUID) (all [][]byte, err error) {
	err = s.locked(func() error {
		at, _ := slices.BinarySearchFunc(s.ids, from, compareIDs)
		for _, id := range s.ids[at:] {
			if compareIDs(id, to) >= 0 {
				break
			}
			if queue.IsBatch(id) {
				all = append(all, s.messages[id].Message.Summary)
			}
		}
		return nil
	})
	return all, err
}

// List implements [queue.Store].
func (s *Store) List(_ context.Context, after queue.JobID, n int, statuses ...queue.Status) (jobs []queue.Job, err error) {
	err = s.locked(func() error {
		at, _ := slices.BinarySearchFunc(s.ids, after.Message, compareIDs)
		for _, id := range s.ids[at:] {
			for _, j := range s.messages[id].Jobs {
				if len(jobs) == n {
					return nil
				}
				if slices.Contains(statuses, j.Status) && (after == (queue.JobID{}) || j.Compare(after) > 0) {
					jobs = append(jobs, j)
				}
			}
		}
		return nil
	})
	return jobs, err
}

// Messages implements [queue.Store].
func (s *Store) Messages(_ context.Context, before uuid.UUID, n int) (entries []*queue.Entry, next uuid.UUID, err error) {
	err = s.locked(func() error {
		end := len(s.ids)
		if before != (uuid.UUID{}) {
			end, _ = slices.BinarySearchFunc(s.ids, before, compareIDs)
		}
		begin := max(end-n, 0)
		for _, id := range slices.Backward(s.ids[begin:end]) {
			entries = append(entries, s.messages[id].entry())
		}
		if begin > 0 {
			next = s.ids[begin]
		}
		return nil
	})
	return entries, next, err
}

// Forget implements [queue.Store].
func (s *Store) Forget(_ context.Context, before time.Time, maxSize int64) (int, error) {
	var t *tx
	err := s.transaction(func(x *tx) error {
		t = x
		early := x.forget(before, maxSize)
		if early > 0 {
			s.log.Warn("messages with dead deliveries or idempotency keys were forgotten before their time", zap.Int("messages", early))
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return len(t.Forgotten), nil
}

// Stats implements [queue.Store].
func (s *Store) Stats(context.Context) (st queue.Stats, err error) {
	err = s.locked(func() error {
		st.Bytes, st.Records = s.waiting+s.bytes, s.bytes
		for _, m := range s.messages {
			for i := range m.Jobs {
				switch m.Jobs[i].Status {
				case queue.Queued, queue.Held:
					st.Queued++
				case queue.Sending:
					st.Sending++
				case queue.Dead:
					st.Dead++
				}
			}
			if waits, _ := m.waits(); waits && (st.Oldest.IsZero() || m.Message.Created.Before(st.Oldest)) {
				st.Oldest = m.Message.Created
			}
		}
		return nil
	})
	return st, err
}

// Changed implements [queue.Store].
func (s *Store) Changed() <-chan struct{} { return s.changed }

func (s *Store) signal() {
	select {
	case s.changed <- struct{}{}:
	default: // nobody has received the one before
	}
}

// Close implements [queue.Store].
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return errors.Join(s.journal.broken(nil), s.lock.Close())
}

// job returns a job, or nil.
func (s *Store) job(id queue.JobID) *queue.Job {
	if m := s.messages[id.Message]; m != nil && id.Index < len(m.Jobs) {
		return &m.Jobs[id.Index]
	}
	return nil
}

// readFiles returns the contents of files.
func readFiles(files []queue.File) (all [][]byte, err error) {
	for i, f := range files {
		b := make([]byte, f.Size)
		if _, err := io.ReadFull(io.NewSectionReader(f, 0, f.Size), b); err != nil {
			return nil, fmt.Errorf("reading file %d: %w", i+1, err)
		}
		all = append(all, b)
	}
	return all, nil
}

func compareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }
