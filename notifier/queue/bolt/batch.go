package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
)

// The bounds of a transaction.
const (
	maxBatch      = 1024    // number of changes
	maxBatchBytes = 8 << 20 // their total size
)

// deferTime is the time that deferrable changes wait for others. Without it,
// the outcomes of deliveries to a fast destination would need a commit for
// every few of them.
const deferTime = 5 * time.Millisecond

// maxDeferred is the number of deferrable changes that are committed without a
// wait.
const maxDeferred = 128

// coolDown is the time without writes after a failed commit, because bbolt then
// reads the whole tree again.
const coolDown = 500 * time.Millisecond

// change is a set of writes that one caller adds to a transaction.
type change struct {
	size       int // roughly, in bytes
	deferrable bool
	// check returns an error to refuse the change. It must not write.
	check func(b *batch) error
	// write makes the change. An error undoes the whole transaction.
	write func(b *batch) error
	// done receives the result; it is buffered.
	done chan error
}

// batch is a transaction that makes the changes of several callers.
type batch struct {
	*workspace
	store  *Store
	began  time.Time
	tx     *bbolt.Tx
	open   map[string]*bbolt.Bucket
	counts map[uuid.UUID]*counts
	bytes  int64 // added to the size of the waiting messages
	kept   int64 // added to the size of the finished messages
	then   []func(x *index)
	files  []string // to be removed after the commit
}

// accepted is an entry that a batch stores, with the jobs to add to the index
// after the commit.
type accepted struct {
	entry   *queue.Entry
	message *message
	jobs    int // how many elements of workspace.jobs belong to it
}

// acceptedJob is a job of an accepted entry.
type acceptedJob struct {
	index        int
	hash         seal.Hash
	status       queue.Status
	due, expires int64
}

func newBatch(s *Store, tx *bbolt.Tx, w *workspace) *batch {
	w.reset()
	return &batch{workspace: w, store: s, began: time.Now(), tx: tx, open: map[string]*bbolt.Bucket{}, counts: map[uuid.UUID]*counts{}}
}

// workspace has memory that one batch after another uses.
type workspace struct {
	seal   *seal.Batch          // its records are copied before a transaction ends
	plain  []byte               // the record that is being sealed
	key    []byte               // its key, of which bbolt makes a copy
	hashes map[string]seal.Hash // of destinations

	ids      map[uuid.UUID]struct{} // of accepted entries
	accepted []accepted
	jobs     []acceptedJob
}

// The bounds of the memory that a workspace keeps.
const (
	maxPlain    = 64 << 10
	maxHashes   = 1000
	maxAccepted = maxBatch
)

func newWorkspace(s *seal.Sealer) *workspace {
	return &workspace{seal: s.Batch(), hashes: map[string]seal.Hash{}, ids: map[uuid.UUID]struct{}{}}
}

func (w *workspace) reset() {
	w.seal.Reset()
	if cap(w.plain) > maxPlain {
		w.plain = nil
	}
	if len(w.hashes) > maxHashes {
		clear(w.hashes)
	}
	clear(w.ids)
	clear(w.accepted)
	w.accepted, w.jobs = w.accepted[:0], w.jobs[:0]
	if cap(w.jobs) > maxAccepted {
		w.jobs = nil // of messages to many destinations
	}
}

// addAccepted adds the accepted entries to the index, whose lock the caller
// holds.
func (b *batch) addAccepted(x *index) {
	jobs := b.jobs
	for _, a := range b.accepted {
		b.store.recent.add(a.entry, b.began)
		for _, j := range jobs[:a.jobs] {
			x.add(a.message, j.index, j.hash, j.status, j.due, j.expires)
		}
		jobs = jobs[a.jobs:]
	}
	clear(b.accepted) // so that the messages can be freed
}

// counts are the jobs of a message as the transaction sees them.
type counts struct{ waiting, dead int }

func (b *batch) count(m *message) *counts {
	c := b.counts[m.id]
	if c == nil {
		b.store.index.mu.Lock()
		c = &counts{m.waiting, m.dead}
		b.store.index.mu.Unlock()
		b.counts[m.id] = c
	}
	return c
}

// changes are the changes that wait for the writer.
type changes struct {
	added chan struct{} // receives a value when the writer should look

	mu     sync.Mutex
	all    []*change
	urgent bool // one of them cannot be deferred
	closed bool
}

// add adds a change. It reports false if the store is closed.
func (w *changes) add(c *change) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.all = append(w.all, c)
	wake := len(w.all) == 1 || len(w.all) == maxDeferred || !c.deferrable && !w.urgent
	w.urgent = w.urgent || !c.deferrable
	if wake {
		select {
		case w.added <- struct{}{}:
		default:
		}
	}
	return true
}

// take returns the changes of the next transaction. If all of them can be
// deferred and now is false, it leaves them and returns deferred.
func (w *changes) take(now bool) (taken []*change, deferred bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !now && !w.urgent && len(w.all) < maxDeferred {
		return nil, len(w.all) > 0
	}
	n, size := 0, 0
	for n < len(w.all) && n < maxBatch && size < maxBatchBytes {
		size += w.all[n].size
		n++
	}
	taken, w.all = w.all[:n:n], w.all[n:]
	if len(w.all) == 0 {
		w.all, w.urgent = nil, false
	}
	return taken, false
}

// close returns the changes that wait, and refuses others.
func (w *changes) close() []*change {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	return w.all
}

// do passes a change to the writer and waits for the commit.
func (s *Store) do(ctx context.Context, c *change) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.done, _ = s.results.Get().(chan error)
	if c.done == nil {
		c.done = make(chan error, 1)
	}
	if !s.changes.add(c) {
		return queue.ErrClosed
	}
	// Wait for the outcome even if ctx ends: a caller must not get an error for a
	// stored change.
	err := <-c.done
	s.results.Put(c.done) // the writer sends one result
	return err
}

// write is the goroutine that writes. It commits all waiting changes in one
// transaction, until the store is closed.
func (s *Store) write() {
	defer close(s.stopped)
	var retry time.Time
	for {
		// Let the goroutines run that are ready: a change that one of them adds now
		// shares this commit, and a busy processor makes fewer commits.
		runtime.Gosched()
		changes := s.next()
		if changes == nil {
			break
		}
		var err error
		if time.Now().Before(retry) {
			err = s.lastError
		} else if err = s.commit(changes); err != nil {
			retry, s.lastError = time.Now().Add(coolDown), err
		}
		if err != nil {
			err = &queue.UnavailableError{Err: err}
		}
		for _, c := range changes {
			if c != nil {
				c.done <- err
			}
		}
	}
	for _, c := range s.changes.close() {
		c.done <- queue.ErrClosed
	}
}

// next waits for changes and returns those of the next transaction, or nil if
// the store is closed.
func (s *Store) next() []*change {
	var late <-chan time.Time // deferred changes wait no longer
	now := false
	for !s.closed() {
		// Repair first: a change that does not touch the damage would be stored.
		select {
		case <-s.broken:
			if err := s.reopen(); err != nil {
				s.log.Error("the queue's store cannot be opened again", zap.Error(err))
			}
			continue
		default:
		}
		taken, deferred := s.changes.take(now)
		if len(taken) > 0 {
			return taken
		}
		if deferred && late == nil {
			late = time.After(deferTime)
		}
		select {
		case <-s.changes.added:
		case <-late:
			now = true
		case <-s.broken:
			s.reopenSoon() // the next turn of the loop opens it
		case <-s.stop:
		}
	}
	return nil
}

// commit makes changes in one transaction. Refused changes are answered and set
// to nil.
func (s *Store) commit(changes []*change) error {
	db := s.database()
	if db == nil {
		if err := s.reopen(); err != nil {
			return err
		}
		db = s.database()
	}
	var before, after int
	b := newBatch(s, nil, s.workspace)
	err := guard(func() error {
		tx, err := db.Begin(true)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // no effect after a commit
		b.tx, before = tx, tx.ID()
		for i, c := range changes {
			if err := c.check(b); err != nil {
				c.done <- err
				changes[i] = nil
				continue
			}
			if err := c.write(b); err != nil {
				return err
			}
		}
		if err := b.writeKept(); err != nil {
			return err
		}
		s.rollback.committing.Store(true)
		defer s.rollback.committing.Store(false)
		return tx.Commit()
	})
	if err == nil {
		s.index.mu.Lock()
		b.addAccepted(s.index)
		for _, f := range b.then {
			f(s.index)
		}
		s.index.mu.Unlock()
		for id := range b.ids {
			if bytes.Compare(id[:], s.lastID[:]) > 0 {
				s.lastID = id
			}
		}
		s.kept.Add(b.kept)
		s.removeFiles(b.files)
		return nil
	}
	if fault, ok := errors.AsType[*faultError](err); ok {
		s.log.Error("the queue's store is damaged", zap.Error(fault))
		return errors.Join(err, s.reopen())
	}
	// A commit that fails while writing the last page may have taken effect, so
	// the index is read again.
	if e := guard(func() error {
		return db.View(func(tx *bbolt.Tx) error { after = tx.ID(); return nil })
	}); e != nil || after >= before {
		return errors.Join(err, s.reopen())
	}
	return err
}

// rollbackGuard is a logger of bbolt that keeps a failed commit from ending the
// process. bbolt logs the failure, and then reads the whole tree again, in a
// goroutine without recover: a damaged page would cause a panic or a fault
// there. So rollbackGuard reads the tree first, and panics in the goroutine of
// the commit if a page is damaged, before bbolt goes on.
type rollbackGuard struct {
	bbolt.Logger
	check      func() error
	committing atomic.Bool
}

func newRollbackGuard(path string) *rollbackGuard {
	return &rollbackGuard{
		Logger: &bbolt.DefaultLogger{Logger: log.New(io.Discard, "", 0)},
		check:  func() error { return checkFile(path) },
	}
}

// Errorf is called when bbolt fails.
func (g *rollbackGuard) Errorf(string, ...any) {
	if g.committing.CompareAndSwap(true, false) {
		if err := g.check(); err != nil {
			panic(err)
		}
	}
}

// faultError is a panic of bbolt, which panics on damaged pages.
type faultError struct{ value any }

func (e *faultError) Error() string { return fmt.Sprint("reading a damaged page: ", e.value) }

// guard calls f. It returns a panic, or a fault of the mapped memory, as a
// [*faultError].
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = &faultError{v}
		}
	}()
	return f()
}

// reopenSoon makes the writer open the database again. Records were readable
// when the store was opened; opening it again finds later damage.
func (s *Store) reopenSoon() {
	select {
	case s.broken <- struct{}{}:
	default:
	}
}

// view calls f with a read transaction.
func (s *Store) view(f func(tx *bbolt.Tx) error) error {
	db := s.database()
	if db == nil {
		if s.closed() {
			return queue.ErrClosed
		}
		return &queue.UnavailableError{Err: errors.New("it is being opened again")}
	}
	err := guard(func() error { return db.View(f) })
	if errors.Is(err, berrors.ErrDatabaseNotOpen) && s.closed() {
		return queue.ErrClosed
	}
	if fault, ok := errors.AsType[*faultError](err); ok {
		s.log.Error("the queue's store is damaged", zap.Error(fault))
		s.reopenSoon()
		return &queue.UnavailableError{Err: err}
	}
	return err
}

// fillPercent is the share of a page that bbolt fills when it splits the page.
// Keys begin with times, so nearly all new ones come last, and no room is
// needed between others.
const fillPercent = 0.9

func (b *batch) bucket(name string) *bbolt.Bucket {
	bucket := b.open[name]
	if bucket == nil {
		bucket = b.tx.Bucket([]byte(name))
		bucket.FillPercent = fillPercent
		b.open[name] = bucket
	}
	return bucket
}

func (b *batch) get(bucket string, key []byte) []byte { return b.bucket(bucket).Get(key) }

func (b *batch) put(bucket string, key, plain []byte) error {
	return b.bucket(bucket).Put(key, b.seal.Seal(plain, bucket, key))
}

// putJob stores a job in the bucket of those that wait or are dead, or of those
// that have ended.
func (b *batch) putJob(bucket string, j *queue.Job, size int64) error {
	b.plain = record.AppendJob(b.plain[:0], j, size)
	return b.put(bucket, b.jobKey(j.JobID), b.plain)
}

// jobKey returns the key of a job. The next call overwrites it.
func (b *batch) jobKey(id queue.JobID) []byte {
	b.key = record.AppendJobKey(b.key[:0], id)
	return b.key
}

// destinationHash returns what [Store.destinationHash] returns. It remembers the
// hashes of many destinations.
func (b *batch) destinationHash(text string) seal.Hash {
	h, ok := b.hashes[text]
	if !ok {
		h = b.store.destinationHash(text)
		b.hashes[text] = h
	}
	return h
}

func (b *batch) delete(bucket string, key []byte) error { return b.bucket(bucket).Delete(key) }

// deletePrefix deletes all keys of a bucket that begin with prefix.
func (b *batch) deletePrefix(bucket string, prefix []byte) error {
	c := b.bucket(bucket).Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Seek(prefix) {
		if err := c.Delete(); err != nil {
			return err
		}
	}
	return nil
}

// checkEntry returns an error if an entry is stored already or is too large.
func (b *batch) checkEntry(e *queue.Entry, maxSize int64) error {
	m := e.Message
	if len(e.Jobs) > queue.MaxJobs {
		return fmt.Errorf("the message has %d deliveries; at most %d can be queued", len(e.Jobs), queue.MaxJobs)
	}
	if len(m.Body) > maxValue/2 {
		return fmt.Errorf("the message has %d bytes; at most %d can be queued", len(m.Body), maxValue/2)
	}
	if b.stored(m.ID) {
		return fmt.Errorf("the message %s is stored already", m.ID)
	}
	if m.Key != "" {
		hash := b.store.keyHash(m.Key)
		if sealed := b.get(bucketKeys, hash[:]); sealed != nil {
			plain, err := b.store.sealer.Open(sealed, bucketKeys, hash[:])
			if err == nil && len(plain) >= 16 {
				return &queue.DuplicateError{ID: uuid.UUID(plain[:16]), SameRequest: bytes.Equal(plain[16:], m.Request)}
			}
			_ = b.store.damaged(fmt.Sprintf("the record of the idempotency key with the hash %x", hash))
		}
	}
	if e.Waits() {
		b.store.index.mu.Lock()
		waiting := b.store.index.waiting
		b.store.index.mu.Unlock()
		if waiting+b.bytes+e.Size() > maxSize {
			return queue.ErrFull
		}
	}
	return nil
}

// stored reports whether a message is stored. Most IDs are later than those of
// all earlier batches, so that the database need not be searched.
func (b *batch) stored(id uuid.UUID) bool {
	if _, ok := b.ids[id]; ok {
		return true
	}
	return bytes.Compare(id[:], b.store.lastID[:]) <= 0 && b.get(bucketMessages, id[:]) != nil
}

// accept stores an entry.
func (b *batch) accept(e *queue.Entry) error {
	m, s := e.Message, b.store
	var hash *seal.Hash
	if m.Key != "" {
		h := s.keyHash(m.Key)
		hash = &h
		if err := b.put(bucketKeys, h[:], append(append([]byte{}, m.ID[:]...), m.Request...)); err != nil {
			return err
		}
	}
	r := record.NewMessage(e, hash)
	b.ids[m.ID] = struct{}{}
	b.plain = r.Append(b.plain[:0])
	if err := b.put(bucketMessages, m.ID[:], b.plain); err != nil {
		return err
	}
	var c counts
	before := len(b.jobs)
	for i := range e.Jobs {
		j := e.Jobs[i]
		j.JobID = queue.JobID{Message: m.ID, Index: i}
		status := j.Status
		switch status {
		case queue.Queued, queue.Sending:
			j.Status = queue.Queued // its status after a crash
			c.waiting++
		case queue.Dead:
			c.dead++
		default:
			continue
		}
		if err := b.putJob(bucketJobs, &j, r.Size); err != nil {
			return err
		}
		b.jobs = append(b.jobs, acceptedJob{i, b.destinationHash(j.Destination), status, j.Due.UnixMicro(), j.Expires.UnixMicro()})
	}
	if c.waiting+c.dead > 0 {
		if err := b.put(bucketBodies, m.ID[:], m.Body); err != nil {
			return err
		}
	}
	if n := len(b.jobs) - before; n > 0 {
		b.accepted = append(b.accepted, accepted{e, &message{id: m.ID, created: m.Created.UnixMicro(), size: r.Size, files: len(m.Files)}, n})
	}
	if c.waiting > 0 {
		b.bytes += r.Size
		return nil
	}
	return b.finish(m.ID, r.Size, len(e.Jobs), c.dead, m.Created)
}

// finish adds a message to the finished ones. It is called when none of its
// jobs waits any more.
func (b *batch) finish(id uuid.UUID, size int64, jobs, dead int, now time.Time) error {
	size = record.KeptSize(size, jobs, dead)
	b.kept += size
	b.key = appendFinishedKey(b.key[:0], now, id)
	b.plain = binary.AppendVarint(b.plain[:0], size)
	return b.put(bucketFinished, b.key, b.plain)
}

// unfinish undoes finish when a dead job of a message is queued again.
func (b *batch) unfinish(id uuid.UUID) error {
	// The time is unknown, so search: few dead jobs are ever retried.
	c := b.tx.Bucket([]byte(bucketFinished)).Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if len(k) == finishedKeySize && bytes.Equal(k[8:], id[:]) {
			b.kept -= b.store.keptSize(k, v)
			return c.Delete()
		}
	}
	return nil
}

const finishedKeySize = 8 + 16

// finishedKey sorts by time.
func finishedKey(t time.Time, id uuid.UUID) []byte {
	return appendFinishedKey(make([]byte, 0, finishedKeySize), t, id)
}

func appendFinishedKey(b []byte, t time.Time, id uuid.UUID) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(t.UnixMicro())), id[:]...)
}

// keptSize returns the counted size of a finished message, or 0 if the record
// is damaged.
func (s *Store) keptSize(key, sealed []byte) int64 {
	plain, err := s.sealer.Open(sealed, bucketFinished, key)
	if err != nil {
		return 0
	}
	n, _ := binary.Varint(plain)
	return n
}

// settle writes the new record of a job that is in the index.
func (b *batch) settle(j *job, r *queue.Job) error {
	m := j.message
	c := b.count(m)
	if j.status.Waits() {
		c.waiting--
	} else {
		c.dead--
	}
	if r.Status.Waits() {
		c.waiting++
	}
	switch r.Status {
	case queue.Queued, queue.Dead:
		if r.Status == queue.Dead {
			c.dead++
		}
		if err := b.putJob(bucketJobs, r, m.size); err != nil {
			return err
		}
	default:
		if err := b.delete(bucketJobs, b.jobKey(r.JobID)); err != nil {
			return err
		}
		if err := b.putJob(bucketDone, r, 0); err != nil {
			return err
		}
	}
	status, due, expires := r.Status, r.Due.UnixMicro(), r.Expires.UnixMicro()
	b.then = append(b.then, func(x *index) {
		if status == queue.Queued {
			j.due, j.expires = due, expires
		}
		b.store.recent.changed(j.id())
		x.set(j, status)
	})
	if c.waiting == 0 && c.dead == 0 {
		for i := range m.files {
			b.files = append(b.files, b.store.filePath(m.id, i))
		}
		if err := b.delete(bucketBodies, m.id[:]); err != nil {
			return err
		}
	}
	return nil
}

// ended updates the list of finished messages after jobs of m have changed.
// before has the counts before the change.
func (b *batch) ended(m *message, before counts, now time.Time) error {
	c := b.count(m)
	if before == *c || c.waiting > 0 {
		return nil
	}
	if before.waiting == 0 {
		if err := b.unfinish(m.id); err != nil {
			return err
		}
	}
	return b.finish(m.id, m.size, len(m.jobs), c.dead, now)
}

// forget removes a message that has ended.
func (b *batch) forget(finished []byte, size int64) error {
	id := uuid.UUID(finished[8:])
	if sealed := b.get(bucketMessages, id[:]); sealed != nil {
		if r, err := b.store.openMessage(id, sealed); err == nil && r.Key != nil {
			if err := b.delete(bucketKeys, r.Key[:]); err != nil {
				return err
			}
		}
	}
	for _, bucket := range []string{bucketMessages, bucketBodies} {
		if err := b.delete(bucket, id[:]); err != nil {
			return err
		}
	}
	for _, bucket := range []string{bucketJobs, bucketDone} {
		if err := b.deletePrefix(bucket, id[:]); err != nil {
			return err
		}
	}
	if err := b.delete(bucketFinished, finished); err != nil {
		return err
	}
	b.kept -= size
	b.then = append(b.then, func(x *index) {
		m := x.messages[id]
		if m == nil {
			return
		}
		for len(m.jobs) > 0 {
			x.set(m.jobs[0], queue.Cancelled)
		}
	})
	b.store.index.mu.Lock()
	defer b.store.index.mu.Unlock()
	if m := b.store.index.messages[id]; m != nil {
		for i := range m.files {
			b.files = append(b.files, b.store.filePath(id, i))
		}
	}
	return nil
}

// writeKept stores the total size of the finished messages, in bytes.
func (b *batch) writeKept() error {
	if b.kept == 0 {
		return nil
	}
	return b.put(bucketMeta, keyKept, binary.AppendVarint(nil, b.store.kept.Load()+b.kept))
}

// readKept reads the total size of the finished messages. It adds their sizes
// up if the record is damaged.
func (s *Store) readKept(tx *bbolt.Tx) (kept int64, err error) {
	if sealed := tx.Bucket([]byte(bucketMeta)).Get(keyKept); sealed != nil {
		if plain, err := s.sealer.Open(sealed, bucketMeta, keyKept); err == nil {
			kept, _ = binary.Varint(plain)
			return kept, nil
		}
	}
	err = tx.Bucket([]byte(bucketFinished)).ForEach(func(k, v []byte) error {
		if !isFiller(k) {
			kept += s.keptSize(k, v)
		}
		return nil
	})
	return kept, err
}
