package bolt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
)

// errLater is returned by a change that has to wait for the commit of the
// transaction, because it changes a job that the transaction adds.
var errLater = errors.New("it has to wait for the next transaction")

// decision is what an update has decided. A nil decision changes nothing.
type decision struct {
	names []queue.Hash
	old   [][]byte
	*queue.Change
}

// decide calls Decide of an update. The jobs whose statuses it asks for are not
// claimed until the transaction ends.
func (b *batch) decide(u *queue.Update) (*decision, error) {
	if u == nil {
		return nil, nil
	}
	d := &decision{names: u.Names, old: make([][]byte, len(u.Names))}
	for i, name := range u.Names {
		_, d.old[i], _ = b.store.openRecord(name, b.get(bucketRecords, name[:])) // a damaged one counts as missing
	}
	var err error
	if d.Change, err = u.Decide(d.old, b.lockJobs); err != nil {
		return nil, err
	}
	b.store.index.mu.Lock()
	defer b.store.index.mu.Unlock()
	for _, c := range d.Jobs {
		switch {
		case b.store.index.find(c.ID) != nil:
		case b.accepts(c.ID.Message):
			return nil, errLater
		default:
			return nil, fmt.Errorf("delivery %d of message %s is not there", c.ID.Index+1, c.ID.Message)
		}
	}
	return d, nil
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
		j := x.find(id)
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

// unlockJobs lets the jobs be claimed that lockJobs has locked and nobody has
// changed. If the scheduler has looked for jobs meanwhile, it has not seen them.
func (b *batch) unlockJobs() {
	if len(b.locked) == 0 {
		return
	}
	x := b.store.index
	x.mu.Lock()
	defer x.mu.Unlock()
	for id, status := range b.locked {
		if j := x.find(id); j != nil && j.writing == cancelling {
			x.set(j, status)
			if status == queue.Queued {
				b.store.signal()
			}
		}
	}
	clear(b.locked)
}

// update makes the changes of a decision.
func (b *batch) update(d *decision) error {
	if d == nil {
		return nil
	}
	for i, r := range d.Records {
		if bytes.Equal(r.Data, d.old[i]) {
			continue
		}
		if err := b.putRecord(d.names[i], r); err != nil {
			return err
		}
	}
	for _, c := range d.Jobs {
		if err := b.changeJob(c); err != nil {
			return err
		}
	}
	return nil
}

// changeJob changes a job that nobody has claimed.
func (b *batch) changeJob(c queue.JobChange) error {
	b.store.index.mu.Lock()
	j := b.store.index.find(c.ID)
	b.store.index.mu.Unlock()
	key := record.JobKey(c.ID)
	r, _, err := b.store.openJob(key, b.get(bucketJobs, key))
	if err != nil {
		return err
	}
	before := *b.count(j.message)
	c.Apply(r)
	if err := b.settle(j, r); err != nil {
		return err
	}
	if now := b.count(j.message); before.waiting == 0 && now.waiting > 0 {
		return b.unfinish(j.message.id)
	}
	return b.ended(j.message, before, r.Updated)
}

func (b *batch) putRecord(name queue.Hash, r queue.Record) error {
	b.then = append(b.then, func(x *index) {
		if len(r.Data) == 0 {
			x.removeRecord(name)
		} else {
			x.addRecord(name, recordIndex{r.Due.UnixMicro(), r.Group})
			x.nextRecord = min(x.nextRecord, r.Due.UnixMicro())
		}
	})
	b.key = append(b.key[:0], name[:]...)
	if len(r.Data) == 0 {
		return b.delete(bucketRecords, b.key)
	}
	b.plain = binary.BigEndian.AppendUint64(b.plain[:0], uint64(r.Due.UnixMicro()))
	if r.Group == (queue.Hash{}) {
		b.plain = append(b.plain, 0)
	} else {
		b.plain = append(append(b.plain, 1), r.Group[:]...)
	}
	b.plain = append(b.plain, r.Data...)
	return b.put(bucketRecords, b.key, b.plain)
}

// recordIndex is what the index knows of a record.
type recordIndex struct {
	due   int64
	group seal.Hash // the zero value for none
}

// addRecord adds a record to the index, or replaces it.
func (x *index) addRecord(name queue.Hash, r recordIndex) {
	x.removeRecord(name)
	x.records[name] = r
	if r.group == (seal.Hash{}) {
		return
	}
	if x.groups[r.group] == nil {
		x.groups[r.group] = map[seal.Hash]bool{}
	}
	x.groups[r.group][name] = true
}

func (x *index) removeRecord(name queue.Hash) {
	group := x.records[name].group
	delete(x.records, name)
	delete(x.groups[group], name)
	if len(x.groups[group]) == 0 {
		delete(x.groups, group)
	}
}

// openRecord returns the content of a record and what the index knows of it. The
// content is nil if there is none.
func (s *Store) openRecord(name queue.Hash, sealed []byte) (i recordIndex, data []byte, err error) {
	if sealed == nil {
		return i, nil, nil
	}
	plain, err := s.sealer.Open(sealed, bucketRecords, name[:])
	if err != nil {
		return i, nil, err
	}
	const fixed = 8 + 1 // when it is due, and whether it has a group
	if len(plain) < fixed || plain[8] == 1 && len(plain) < fixed+seal.HashSize {
		return i, nil, seal.ErrOpen
	}
	i.due = int64(binary.BigEndian.Uint64(plain))
	data = plain[fixed:]
	if plain[8] == 1 {
		i.group, data = seal.Hash(data), data[seal.HashSize:]
	}
	return i, data, nil
}

// readRecords reads when the records are due.
func (s *Store) readRecords(tx *bbolt.Tx, x *index) error {
	return tx.Bucket([]byte(bucketRecords)).ForEach(func(k, v []byte) error {
		if len(k) == seal.HashSize {
			// A damaged one is due, so that it is removed.
			r, _, _ := s.openRecord(queue.Hash(k), v)
			x.addRecord(queue.Hash(k), r)
		}
		return nil
	})
}

// Update implements [queue.Store].
func (s *Store) Update(ctx context.Context, u *queue.Update) error {
	var d *decision
	check := func(b *batch) (err error) {
		d, err = b.decide(u)
		return err
	}
	write := func(b *batch) error { return b.update(d) }
	return s.do(ctx, &change{size: 1 << 10, pages: pagesOfUpdate(u), check: check, write: write})
}

// pagesOfUpdate returns the maximum number of pages that an update needs,
// roughly: for each record, that of a job, and that of its message.
func pagesOfUpdate(u *queue.Update) int {
	if u == nil {
		return 0
	}
	return 2 * pagesPerResult * len(u.Names)
}

// Record implements [queue.Store].
func (s *Store) Record(_ context.Context, name queue.Hash) (data []byte, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		var err error
		if _, data, err = s.openRecord(name, tx.Bucket([]byte(bucketRecords)).Get(name[:])); err != nil {
			return s.damaged("a record of an incident")
		}
		return nil
	})
	return data, err
}

// Group implements [queue.Store].
func (s *Store) Group(_ context.Context, group, after queue.Hash, n int) (records []queue.NamedRecord, err error) {
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

// namesAtOnce is the maximum number of names that are looked for at once. They are kept
// in order while they are.
const namesAtOnce = 1000

// namesOfGroup returns the first n names of a group after the name after. A group may
// have very many, most of which are not wanted.
func (s *Store) namesOfGroup(group, after queue.Hash, n int) []queue.Hash {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	var names []queue.Hash
	for name := range s.index.groups[group] {
		if bytes.Compare(name[:], after[:]) <= 0 || len(names) >= n && bytes.Compare(name[:], names[n-1][:]) >= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(names, name, func(a, b queue.Hash) int { return bytes.Compare(a[:], b[:]) })
		names = slices.Insert(names, at, name)
		names = names[:min(n, len(names))]
	}
	return names
}

// GroupSizes implements [queue.Store].
func (s *Store) GroupSizes(context.Context) (map[queue.Hash]int, error) {
	if s.closed() {
		return nil, queue.ErrClosed
	}
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	sizes := make(map[queue.Hash]int, len(s.index.groups))
	for group, names := range s.index.groups {
		sizes[group] = len(names)
	}
	return sizes, nil
}

// openRecords returns the records with the given names, except those that are gone or
// damaged.
func (s *Store) openRecords(names []queue.Hash) (records []queue.NamedRecord, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		for _, name := range names {
			_, data, err := s.openRecord(name, tx.Bucket([]byte(bucketRecords)).Get(name[:]))
			if err == nil && data != nil {
				records = append(records, queue.NamedRecord{Name: name, Data: bytes.Clone(data)})
			}
		}
		return nil
	})
	return records, err
}

// DueRecords implements [queue.Store].
func (s *Store) DueRecords(_ context.Context, now time.Time, keep, n int) ([]queue.Hash, error) {
	if s.closed() {
		return nil, queue.ErrClosed
	}
	type row struct {
		name queue.Hash
		due  int64
	}
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	if s.index.nextRecord > now.UnixMicro() && len(s.index.records) <= keep {
		return nil, nil
	}
	var rows []row // at most n, those that are due first; sorting all would hold up others
	s.index.nextRecord = math.MaxInt64
	for name, r := range s.index.records {
		s.index.nextRecord = min(s.index.nextRecord, r.due)
		if r.due > now.UnixMicro() && len(s.index.records) <= keep || len(rows) >= n && r.due >= rows[n-1].due {
			continue
		}
		at, _ := slices.BinarySearchFunc(rows, r.due, func(a row, due int64) int { return cmp.Compare(a.due, due) })
		rows = slices.Insert(rows, at, row{name, r.due})
		rows = rows[:min(n, len(rows))]
	}
	more := len(s.index.records) - keep
	var names []queue.Hash
	for i, r := range rows {
		if r.due <= now.UnixMicro() || i < more {
			names = append(names, r.name)
		}
	}
	return names, nil
}
