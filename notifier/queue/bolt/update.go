package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/bbolt"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
)

// errLater is returned by a change that has to wait for the commit of the
// transaction, because it changes a job that the transaction adds.
var errLater = errors.New("it has to wait for the next transaction")

// growth returns approximately by how many bytes an update decided in tx makes the records grow.
func growth(u *queue.Update, tx *queue.Tx, old [][]byte) (n int64) {
	for i := range u.Names {
		if r, ok := tx.Changed(i); ok {
			n += record.UpdateSize(r.Data) - record.UpdateSize(old[i])
		}
	}
	for _, r := range tx.Owned() {
		n += record.UpdateSize(r.Data) // what is removed makes room later
	}
	return n
}

// decide decides an update, which may be nil. The jobs whose statuses it asks for are not
// claimed until the transaction ends.
func (b *batch) decide(u *queue.Update) (*queue.Tx, error) {
	if u == nil {
		return nil, nil
	}
	old := make([][]byte, len(u.Names))
	for i, name := range u.Names {
		r, _ := b.store.openRecord(name, b.get(bucketRecords, name[:])) // a damaged one counts as missing
		old[i] = r.data
	}
	tx, err := u.Run(old, b.lockJobs)
	if err != nil {
		return nil, err
	}
	if u.MaxSize > 0 {
		if n := growth(u, tx, old); n > 0 {
			if err := b.checkSize(n, u.MaxSize); err != nil {
				return nil, err
			}
		}
	}
	b.store.index.mu.Lock()
	defer b.store.index.mu.Unlock()
	for _, c := range tx.Jobs() {
		switch {
		case b.store.index.jobs.find(c.ID) != nil:
		case b.accepts(c.ID.Message):
			return nil, errLater
		default:
			return nil, fmt.Errorf("delivery %d of message %s is not there", c.ID.Index+1, c.ID.Message)
		}
	}
	return tx, nil
}

// lockJobs returns the statuses of jobs. Those that wait or are dead are not
// claimed until unlockJobs is called.
func (b *batch) lockJobs(ids []queue.JobID) ([]queue.Status, error) {
	x := b.store.index
	x.mu.Lock()
	defer x.mu.Unlock()
	statuses := make([]queue.Status, len(ids))
	for i, id := range ids {
		if status, ok := b.statuses[id]; ok {
			statuses[i] = status
			continue
		}
		j := x.jobs.find(id)
		if j == nil {
			continue
		}
		status, locked := b.locked[id]
		if !locked {
			status = j.status
			if status != queue.Sending {
				b.locked[id] = status
				if status == queue.Queued {
					x.set(j, queue.Sending)
				}
				j.writing = cancelling
			}
		}
		statuses[i] = status
	}
	return statuses, nil
}

// unlockJobs lets jobs be claimed that lockJobs has locked, unless they were changed. It wakes the
// scheduler, which may not have seen these jobs in the meantime.
func (b *batch) unlockJobs() {
	if len(b.locked) == 0 {
		return
	}
	x := b.store.index
	x.mu.Lock()
	defer x.mu.Unlock()
	for id, status := range b.locked {
		if j := x.jobs.find(id); j != nil && j.writing == cancelling {
			x.set(j, status)
			if status == queue.Queued {
				signal(b.store.changed)
			}
		}
	}
	clear(b.locked)
}

// update makes the changes that tx has decided. u may be nil.
func (b *batch) update(u *queue.Update, tx *queue.Tx) error {
	if u == nil {
		return nil
	}
	for i, name := range u.Names {
		if r, ok := tx.Changed(i); ok {
			if err := b.putRecord(name, r); err != nil {
				return err
			}
		}
	}
	for _, r := range tx.Owned() {
		if err := b.putRecord(r.Name, r.Record); err != nil {
			return err
		}
	}
	return b.changeJobs(tx.Jobs())
}

// changeJobs changes jobs that nobody has claimed.
func (b *batch) changeJobs(changes []queue.JobChange) error {
	type changed struct {
		job    *job // one of them
		before counts
		at     time.Time
	}
	messages := map[uuid.UUID]changed{}
	for _, c := range changes {
		b.store.index.mu.Lock()
		j := b.store.index.jobs.find(c.ID)
		b.store.index.mu.Unlock()
		r, _, err := b.store.sealer.OpenJob(bucketJobs, c.ID, b.get(bucketJobs, b.jobKey(c.ID)))
		if err != nil {
			return err
		}
		m, ok := messages[j.message]
		if !ok {
			m = changed{job: j, before: *b.count(j)}
		}
		c.Apply(r)
		if err := b.settle(j, r); err != nil {
			return err
		}
		m.at = r.Updated
		messages[j.message] = m
	}
	for _, m := range messages {
		if err := b.ended(m.job, m.before, m.at); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) putRecord(name queue.Hash, r queue.Record) error {
	b.key = append(b.key[:0], name[:]...)
	before := record.UpdateSize(b.get(bucketRecords, b.key))
	if len(r.Data) == 0 {
		if before == 0 {
			return nil
		}
		b.addRecordBytes(-before)
		b.then = append(b.then, func(x *index) { x.records.remove(name) })
		return b.delete(bucketRecords, b.key)
	}
	b.then = append(b.then, func(x *index) { x.records.put(name, r.Due.UnixMicro(), r.Group) })
	b.plain = binary.BigEndian.AppendUint64(b.plain[:0], uint64(r.Due.UnixMicro()))
	if r.Group == (queue.Hash{}) {
		b.plain = append(b.plain, 0)
	} else {
		b.plain = append(append(b.plain, 1), r.Group[:]...)
	}
	b.plain = append(b.plain, r.Data...)
	if err := b.put(bucketRecords, b.key, b.plain); err != nil {
		return err
	}
	b.addRecordBytes(record.UpdateSize(b.get(bucketRecords, b.key)) - before)
	return nil
}

// addRecordBytes adds to the size of the records.
func (b *batch) addRecordBytes(n int64) {
	b.bytes += n
	b.then = append(b.then, func(x *index) { x.records.bytes += n })
}

// openedRecord is a record of the database.
type openedRecord struct {
	due   int64
	group seal.Hash // the zero value for none
	data  []byte    // nil if there is none
}

// openRecord opens a record, which may be missing.
func (d *database) openRecord(name queue.Hash, sealed []byte) (r openedRecord, err error) {
	if sealed == nil {
		return r, nil
	}
	plain, err := d.sealer.Open(sealed, bucketRecords, name[:])
	if err != nil {
		return r, err
	}
	const fixed = 8 + 1 // when it is due, and whether it has a group
	if len(plain) < fixed || plain[8] == 1 && len(plain) < fixed+seal.HashSize {
		return r, seal.ErrOpen
	}
	r.due, r.data = int64(binary.BigEndian.Uint64(plain)), plain[fixed:]
	if plain[8] == 1 {
		r.group, r.data = seal.Hash(r.data), r.data[seal.HashSize:]
	}
	return r, nil
}

// readRecords reads when the records are due.
func (d *database) readRecords(tx *bbolt.Tx, x *index) error {
	return tx.Bucket([]byte(bucketRecords)).ForEach(func(k, v []byte) error {
		if len(k) == seal.HashSize {
			// A damaged one is due, so that it is removed.
			r, _ := d.openRecord(queue.Hash(k), v)
			x.records.put(queue.Hash(k), r.due, r.group)
			x.records.bytes += record.UpdateSize(v)
		}
		return nil
	})
}

// recordStore changes and reads the records of updates.
type recordStore struct{ *writer }

// Update implements [queue.Store].
func (s recordStore) Update(ctx context.Context, u *queue.Update) error {
	var tx *queue.Tx
	check := func(b *batch) (err error) {
		tx, err = b.decide(u)
		return err
	}
	write := func(b *batch) error { return b.update(u, tx) }
	return s.do(ctx, &change{size: 1<<10 + 512*u.Jobs, pages: pagesOfUpdate(u), adds: u.MaxSize > 0, check: check, write: write})
}

// pagesOfUpdate returns the approximate maximum number of pages that an update needs: for each
// record, the page of a job and the page of its message, and in addition the pages of other jobs
// and of large records.
func pagesOfUpdate(u *queue.Update) int {
	if u == nil {
		return 0
	}
	return 2*pagesPerResult*len(u.Names) + pagesPerResult*u.Jobs + u.Size/(pageSize/2)
}

// Record implements [queue.Store].
func (s recordStore) Record(_ context.Context, name queue.Hash) (data []byte, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		r, err := s.openRecord(name, tx.Bucket([]byte(bucketRecords)).Get(name[:]))
		if err != nil {
			return s.sealer.Damaged("a record of an incident")
		}
		data = r.data
		return nil
	})
	return data, err
}

// Group implements [queue.Store].
func (s recordStore) Group(_ context.Context, group, after queue.Hash, n int) (records []queue.NamedRecord, err error) {
	for len(records) < n {
		names := s.namesOfGroup(group, after, min(n-len(records), namesAtOnce))
		if len(names) == 0 {
			break
		}
		more, err := s.openRecords(names)
		if err != nil {
			return nil, err
		}
		records, after = append(records, more...), names[len(names)-1]
	}
	return records, nil
}

// namesAtOnce is the maximum number of names that are looked for while the index is locked.
const namesAtOnce = 1000

// namesOfGroup returns the first n names of a group after the name after.
func (s recordStore) namesOfGroup(group, after queue.Hash, n int) []queue.Hash {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	return s.index.records.ofGroup(group, after, n)
}

// GroupSizes implements [queue.Store].
func (s recordStore) GroupSizes(context.Context) (sizes map[queue.Hash]int, err error) {
	err = s.look(func(x *index) { sizes = x.records.groupSizes() })
	return sizes, err
}

// openRecords returns the records with the given names, except those that are gone or
// damaged.
func (s recordStore) openRecords(names []queue.Hash) (records []queue.NamedRecord, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		for _, name := range names {
			r, err := s.openRecord(name, tx.Bucket([]byte(bucketRecords)).Get(name[:]))
			if err == nil && r.data != nil {
				records = append(records, queue.NamedRecord{Name: name, Data: bytes.Clone(r.data)})
			}
		}
		return nil
	})
	return records, err
}

// DueRecords implements [queue.Store].
func (s recordStore) DueRecords(
	_ context.Context, now time.Time, after queue.DuePlace, n int,
) (records []queue.DueRecord, more bool, err error) {
	places := s.duePlaces(now, after, n)
	if len(places) == 0 && !s.closed() {
		return nil, false, nil // as in most seconds
	}
	more = len(places) == n
	err = s.view(func(tx *bbolt.Tx) error {
		size := 0
		for _, p := range places {
			sealed := tx.Bucket([]byte(bucketRecords)).Get(p.name[:])
			if size += len(sealed); size > queue.MaxDueSize && len(records) > 0 {
				more = true
				break
			}
			r, err := s.openRecord(p.name, sealed)
			if err == nil && r.data == nil {
				continue // it is gone
			}
			at := queue.DuePlace{Due: time.UnixMicro(p.due), Name: p.name}
			records = append(records, queue.DueRecord{DuePlace: at, Data: bytes.Clone(r.data)})
		}
		return nil
	})
	return records, more, err
}

// duePlaces returns the places of at most n records that are due, after one.
func (s recordStore) duePlaces(now time.Time, after queue.DuePlace, n int) []dueRecord {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	return s.index.records.dueAfter(now.UnixMicro(), dueRecord{after.Due.UnixMicro(), after.Name}, n)
}

// SurplusRecords implements [queue.Store].
func (s recordStore) SurplusRecords(_ context.Context, keep, n int) (names []queue.Hash, err error) {
	err = s.look(func(x *index) { names = x.records.surplus(keep, n) })
	return names, err
}
