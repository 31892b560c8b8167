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
	"slices"
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

// coolDown is the time without writes after a failed commit, after which bbolt reads the whole tree
// again.
const coolDown = 500 * time.Millisecond

// errUnclear is returned when the store was closed before it was known whether
// a failed commit has taken effect.
var errUnclear = errors.New("the disk failed while the change was written, and it is not known whether the change is stored")

// change is a set of writes that one caller adds to a transaction.
type change struct {
	size       int // roughly, in bytes
	pages      int // how many pages the commit needs at most, roughly
	deferrable bool
	adds       bool // it adds what is to be kept, so it is refused when the disk is full
	replaces   bool // it adds a message in place of others, so it may use half of the reserve
	// check returns an error to refuse the change. It must not write. Like write,
	// it is called again if the transaction is repeated.
	check func(b *batch) error
	// write makes the change. An error undoes the whole transaction.
	write func(b *batch) error
	// stored reports whether the change has been made. It is called after a commit
	// that failed while its last page was written. If stored is nil, the number of
	// the transaction tells.
	stored func(tx *bbolt.Tx) bool
	// done receives the result; it is buffered.
	done chan error
}

// batch is a transaction that makes the changes of several callers.
type batch struct {
	*workspace
	store  *writer
	began  time.Time
	tx     *bbolt.Tx
	room   int             // pages that the transaction can use
	told   map[string]bool // reserve.told for this transaction
	tight  bool            // the results of delivered messages are not kept, because the disk is full
	open   map[string]*bbolt.Bucket
	counts map[uuid.UUID]*counts
	bytes  int64 // added to the size of the waiting messages and of the records
	kept   int64 // added to the size of the finished messages
	then   []func(x *index)
	files  []string // to be removed after the commit

	statuses map[queue.JobID]queue.Status // of jobs that updates ask about and that this transaction has added or changed
	locked   map[queue.JobID]queue.Status // of jobs that must not be claimed until it ends
}

// accepted is an entry that a batch stores, with the number of its jobs to add to the index after
// the commit, which are in workspace.jobs.
type accepted struct {
	entry *queue.Entry
	jobs  int
}

// accepts reports whether the batch accepts the message.
func (b *batch) accepts(id uuid.UUID) bool {
	_, ok := b.ids[id]
	return ok
}

func newBatch(s *writer, tx *bbolt.Tx, w *workspace) *batch {
	w.reset()
	return &batch{
		workspace: w, store: s, began: time.Now(), tx: tx, open: map[string]*bbolt.Bucket{}, told: map[string]bool{},
		counts:   map[uuid.UUID]*counts{},
		statuses: map[queue.JobID]queue.Status{}, locked: map[queue.JobID]queue.Status{},
	}
}

// workspace has memory that one batch after another uses.
type workspace struct {
	seal   *seal.Batch          // its records are copied before a transaction ends
	plain  []byte               // the record that is being sealed
	key    []byte               // its key, of which bbolt makes a copy
	job    queue.Job            // the job of an entry that is being stored
	hashes map[string]seal.Hash // of destinations and hosts

	ids      map[uuid.UUID]struct{} // of accepted entries
	accepted []accepted
	jobs     []newJob // of accepted
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
	w.job = queue.Job{}
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
		m := a.entry.Message
		x.add(large{len(m.Files), int64(a.entry.Jobs[0].Text)}, jobs[:a.jobs]...)
		jobs = jobs[a.jobs:]
	}
	clear(b.accepted) // so that the messages can be freed
}

// count returns the numbers of the jobs of a job's message in the transaction.
func (b *batch) count(j *job) *counts {
	c := b.counts[j.message]
	if c == nil {
		stored := b.storedCounts(j)
		c = &stored
		b.counts[j.message] = c
	}
	return c
}

// storedCounts returns the same numbers before the transaction.
func (b *batch) storedCounts(j *job) counts {
	b.store.index.mu.Lock()
	defer b.store.index.mu.Unlock()
	return b.store.index.counts(j)
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
		signal(w.added)
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

// putBack puts changes before those that wait.
func (w *changes) putBack(all []*change) {
	if len(all) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all, w.urgent = append(all, w.all...), true
	signal(w.added)
}

// close returns the changes that wait, and refuses others.
func (w *changes) close() []*change {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	return w.all
}

// do passes a change to the writer and waits for the commit.
func (w *writer) do(ctx context.Context, c *change) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.done, _ = w.results.Get().(chan error)
	if c.done == nil {
		c.done = make(chan error, 1)
	}
	if !w.changes.add(c) {
		return queue.ErrClosed
	}
	// Wait for the outcome even if ctx ends: a caller must not get an error for a
	// stored change.
	err := <-c.done
	w.results.Put(c.done) // the writer sends one result
	return err
}

// write is the goroutine that writes. It commits all waiting changes in one
// transaction, until the store is closed.
func (w *writer) write() {
	defer close(w.stopped)
	var retry time.Time
	for {
		// Let the goroutines run that are ready: a change that one of them adds now
		// shares this commit, and a busy processor makes fewer commits.
		runtime.Gosched()
		changes := w.next()
		if changes == nil {
			break
		}
		if time.Now().Before(retry) {
			answer(changes, w.lastError)
			continue
		}
		if err := w.commitAll(changes); err != nil {
			retry, w.lastError = time.Now().Add(coolDown), err
		}
	}
	for _, c := range w.changes.close() {
		c.done <- queue.ErrClosed
	}
}

// answer sends err, or a [*queue.UnavailableError] with it, to the callers that
// have no answer yet.
func answer(changes []*change, err error) {
	if err != nil {
		err = &queue.UnavailableError{Err: err}
	}
	for i, c := range changes {
		if c != nil {
			c.done <- err
			changes[i] = nil
		}
	}
}

// maxFailures is the number of changes whose commits may fail before the others
// wait for the next time. bbolt reads the whole tree after each failure.
const maxFailures = 3

// commitAll makes changes in one transaction, or in several ones if the disk has
// no room for one. It answers all of them, and returns the last error.
func (w *writer) commitAll(changes []*change) (err error) {
	for len(changes) > 0 && err == nil {
		var db *bbolt.DB
		if db, err = w.writable(); err != nil {
			break
		}
		var n int
		if changes, n = w.fit(db, changes); n == 0 {
			break
		}
		if err = w.commit(changes[:n]); err != nil && n > 1 && w.current() != nil {
			// One of the changes may need more than there is.
			err = nil
			for i, failures := 0, 0; i < n && failures < maxFailures; i++ {
				if changes[i] == nil {
					continue
				}
				if e := w.commit(changes[i : i+1]); e != nil {
					answer(changes[i:i+1], e)
					failures++
					err = e
				}
			}
		}
		answer(changes[:n], err) // err is not nil if some are left
		changes = changes[n:]
	}
	answer(changes, err)
	return err
}

// writable returns the database. It opens it if that failed before.
func (w *writer) writable() (*bbolt.DB, error) {
	if db := w.current(); db != nil {
		return db, nil
	}
	if err := w.reopen(); err != nil {
		return nil, err
	}
	return w.current(), nil
}

// next waits for the changes of the next transaction and returns them, or nil if
// the store is closed.
func (w *writer) next() []*change {
	var late <-chan time.Time // deferred changes wait no longer
	now := false
	for !w.closed() {
		// Repair first: a change that does not touch the damage would be stored.
		select {
		case <-w.broken:
			if err := w.reopen(); err != nil {
				w.log.Error("the queue's store cannot be opened again", zap.Error(err))
			}
			continue
		default:
		}
		taken, deferred := w.changes.take(now)
		if len(taken) > 0 {
			return taken
		}
		if deferred && late == nil {
			late = time.After(deferTime)
		}
		select {
		case <-w.changes.added:
		case <-late:
			now = true
		case <-w.rememberLate:
			w.rememberLate = nil
			w.remember(false)
		case <-w.broken:
			w.reopenSoon() // the next turn of the loop opens it
		case <-w.stop:
		}
	}
	return nil
}

// commit makes changes in one transaction. Changes that have their answer are
// set to nil.
func (w *writer) commit(changes []*change) error {
	db, err := w.writable()
	if err != nil {
		return err
	}
	var before, after int
	b := newBatch(w, nil, w.workspace)
	b.room, b.tight = w.room(db), w.reserve.tight
	defer b.unlockJobs()
	x := &committing{changes: changes, equal: map[int]error{}}
	defer func() { w.changes.putBack(x.later) }()
	err = guard(func() error {
		tx, err := db.Begin(true)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // no effect after a commit
		b.tx, before = tx, tx.ID()
		if err := x.write(b); err != nil {
			return err
		}
		if err := b.writeKept(); err != nil {
			return err
		}
		w.rollback.committing.Store(true)
		defer w.rollback.committing.Store(false)
		return w.commitTx(tx)
	})
	if err == nil {
		w.apply(b)
		w.remember(false)
		for i, e := range x.equal {
			changes[i].done <- e
			changes[i] = nil
		}
		answer(changes, nil)
		return nil
	}
	fault, damaged := errors.AsType[*faultError](err)
	if damaged {
		w.log.Error("the queue's store is damaged", zap.Error(fault))
	}
	if e := guard(func() error {
		return db.View(func(tx *bbolt.Tx) error { after = tx.ID(); return nil })
	}); e == nil && (before == 0 || after < before) {
		if damaged {
			err = errors.Join(err, w.reopen())
		}
		return err
	}
	// A commit that fails while its last page is written may have taken effect.
	return w.lookUp(b, changes, x.equal, before, err)
}

// committing are the changes of one transaction.
type committing struct {
	changes []*change
	later   []*change     // are made in another transaction
	equal   map[int]error // the refusals of changes because of others in this transaction
}

// write makes the changes that are not refused. It answers those that are, unless another
// change of this transaction is the reason.
func (x *committing) write(b *batch) error {
	for i, c := range x.changes {
		if c == nil {
			continue
		}
		if err := c.check(b); err != nil {
			d, duplicate := errors.AsType[*queue.DuplicateError](err)
			switch {
			case err == errLater:
				x.later = append(x.later, c)
				x.changes[i] = nil
			case duplicate && b.accepts(d.ID):
				x.equal[i] = err
			default:
				c.done <- err
				x.changes[i] = nil
			}
			continue
		}
		if err := c.write(b); err != nil {
			return err
		}
	}
	return nil
}

// apply changes the index after the commit of b.
func (w *writer) apply(b *batch) {
	w.index.mu.Lock()
	b.addAccepted(w.index)
	for _, f := range b.then {
		f(w.index)
	}
	w.index.mu.Unlock()
	for id := range b.ids {
		if bytes.Compare(id[:], w.lastID[:]) > 0 {
			w.lastID = id
		}
	}
	w.kept.Add(b.kept)
	if !w.backups.keep(b.files) {
		w.removeFiles(b.files)
	}
}

// maxLookUp is the maximum time between two attempts of lookUp.
const maxLookUp = 10 * time.Second

// lookUp opens the database again after a commit that may have taken effect,
// and answers the changes by what it finds. While the disk fails, it tries
// again: until the outcome is certain, an answer could be wrong. Other changes
// are refused meanwhile. It returns cause if the changes are not stored.
func (w *writer) lookUp(b *batch, changes []*change, equal map[int]error, number int, cause error) error {
	for wait := coolDown; ; wait = min(2*wait, maxLookUp) {
		stored, err := w.lookUpOnce(b, changes, equal, number)
		if err == nil {
			for i, c := range changes {
				if c != nil && stored[i] {
					c.done <- equal[i]
					changes[i] = nil
				}
			}
			answer(changes, cause)
			if slices.Contains(stored, false) {
				return cause
			}
			return nil
		}
		w.log.Error("the queue's store cannot be opened again", zap.Error(err))
		late := time.After(wait)
		for waiting := true; waiting; {
			others, _ := w.changes.take(true)
			answer(others, err)
			select {
			case <-w.changes.added:
			case <-late:
				waiting = false
			case <-w.stop:
				answer(changes, errUnclear)
				return errUnclear
			}
		}
	}
}

// lookUpOnce opens the database and reports which changes are stored.
func (w *writer) lookUpOnce(b *batch, changes []*change, equal map[int]error, number int) ([]bool, error) {
	w.closeDatabase()
	o, err := w.openOrSalvage()
	if err != nil {
		return nil, err
	}
	stored := make([]bool, len(changes))
	all := true
	err = guard(func() error {
		if err := o.db.View(func(tx *bbolt.Tx) error {
			for i, c := range changes {
				switch {
				case c == nil:
					stored[i] = true
					continue
				case c.stored != nil && equal[i] == nil:
					stored[i] = c.stored(tx)
				default:
					stored[i] = !o.salvaged && tx.ID() >= number
				}
				all = all && stored[i]
			}
			return nil
		}); err != nil {
			return err
		}
		// The failed write may have reached only the memory of the operating system.
		// The next commit writes the other meta page, and makes what is here durable.
		tx, err := o.db.Begin(true)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		return w.commitTx(tx)
	})
	if err != nil {
		_ = o.db.Close()
		return nil, err
	}
	if all {
		w.apply(b) // so that claimed jobs stay claimed
	}
	w.install(o)
	return stored, nil
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
func (d *database) reopenSoon() { signal(d.broken) }

// view calls f with a read transaction.
func (d *database) view(f func(tx *bbolt.Tx) error) error {
	db := d.current()
	if db == nil {
		if d.closed() {
			return queue.ErrClosed
		}
		return &queue.UnavailableError{Err: errors.New("it is being opened again")}
	}
	err := guard(func() error { return db.View(f) })
	if errors.Is(err, berrors.ErrDatabaseNotOpen) && d.closed() {
		return queue.ErrClosed
	}
	if fault, ok := errors.AsType[*faultError](err); ok {
		d.log.Error("the queue's store is damaged", zap.Error(fault))
		d.reopenSoon()
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

// putJob stores a job in a bucket: bucketJobs or bucketDone.
func (b *batch) putJob(bucket string, j *queue.Job, size int64) error {
	b.plain = record.AppendJob(b.plain[:0], j, size)
	return b.put(bucket, b.jobKey(j.JobID), b.plain)
}

// jobKey returns the key of a job. The next call overwrites it.
func (b *batch) jobKey(id queue.JobID) []byte {
	b.key = record.AppendJobKey(b.key[:0], id)
	return b.key
}

// hash is [Store.Hash] with a cache.
func (b *batch) hash(text string) seal.Hash {
	h, ok := b.hashes[text]
	if !ok {
		h = b.store.sealer.DestinationHash(text)
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

// checkEntry returns an error if an entry is stored already or if there is no room for it.
func (b *batch) checkEntry(e *queue.Entry, maxSize int64) error {
	m := e.Message
	if b.stored(m.ID) {
		return fmt.Errorf("the message %s is stored already", m.ID)
	}
	for _, key := range m.Keys() {
		hash := b.store.sealer.KeyHash(key)
		if sealed := b.get(bucketKeys, hash[:]); sealed != nil {
			plain, err := b.store.sealer.Open(sealed, bucketKeys, hash[:])
			if err == nil && len(plain) >= 16 {
				return &queue.DuplicateError{ID: uuid.UUID(plain[:16]), SameRequest: bytes.Equal(plain[16:], m.Request)}
			}
			_ = b.store.sealer.Damaged(fmt.Sprintf("the record of the idempotency key with the hash %x", hash))
		}
	}
	if e.Waits() {
		return b.checkSize(e.Size(), maxSize)
	}
	return nil
}

// checkSize returns [queue.ErrFull] if size more bytes would exceed maxSize.
func (b *batch) checkSize(size, maxSize int64) error {
	b.store.index.mu.Lock()
	defer b.store.index.mu.Unlock()
	if b.store.index.kept()+b.bytes+size > maxSize {
		return queue.ErrFull
	}
	return nil
}

// stored reports whether a message is stored. Most IDs are later than all IDs of
// earlier batches, so that the database need not be searched.
func (b *batch) stored(id uuid.UUID) bool {
	return b.accepts(id) || bytes.Compare(id[:], b.store.lastID[:]) <= 0 && b.get(bucketMessages, id[:]) != nil
}

// accept stores an entry.
func (b *batch) accept(e *queue.Entry) error {
	m, s := e.Message, b.store
	hash := s.sealer.KeyHash(m.Key)
	if m.Key != "" {
		b.key = append(b.key[:0], hash[:]...)
		if err := b.put(bucketKeys, b.key, append(append([]byte{}, m.ID[:]...), m.Request...)); err != nil {
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
	j := &b.job
	for i := range e.Jobs {
		*j = e.Jobs[i]
		j.JobID = queue.JobID{Message: m.ID, Index: i}
		status := j.Status
		switch status {
		case queue.Queued, queue.Sending:
			j.Status = queue.Queued // its status after a crash
			c.waiting++
		case queue.Held:
			c.waiting++
		case queue.Dead:
			c.dead++
		default:
			continue
		}
		if err := b.putJob(bucketJobs, j, r.Size); err != nil {
			return err
		}
		if asked(j) {
			b.statuses[j.JobID] = status
		}
		b.jobs = append(b.jobs, newJob{
			jobOf(j, m.Created, r.Size, m.Key == ""), place{b.hash(j.Destination), b.hash(j.Host), j.Client}, status,
		})
	}
	if c.waiting+c.dead > 0 {
		if err := b.put(bucketBodies, m.ID[:], m.Body); err != nil {
			return err
		}
	}
	if n := len(b.jobs) - before; n > 0 {
		b.accepted = append(b.accepted, accepted{e, n})
	}
	if c.waiting > 0 {
		b.bytes += r.Size
		return nil
	}
	return b.finish(m.ID, r.Size, len(e.Jobs), c.dead, m.Key != "", m.Created)
}

// asked reports whether updates may ask for the status of a job. They do for a job with an
// incident, a job that rules know, and a dead job, which another job can replace.
func asked(j *queue.Job) bool { return j.Incident != "" || len(j.Ruled) > 0 || j.Status == queue.Dead }

// finish adds a message to the finished ones. It is called when none of its
// jobs waits any more.
func (b *batch) finish(id uuid.UUID, size int64, jobs, dead int, keyed bool, now time.Time) error {
	size = queue.KeptSize(size, jobs, dead)
	b.kept += size
	kind := onlyResults
	if dead > 0 || keyed {
		kind = lasting
	}
	b.key = finishedKey(b.key[:0], kind, now, id)
	b.plain = binary.AppendVarint(b.plain[:0], size)
	return b.put(bucketFinished, b.key, b.plain)
}

// unfinish undoes finish when a dead job of a message is queued again.
func (b *batch) unfinish(id uuid.UUID) error {
	// The time is unknown, so search: few dead jobs are ever retried.
	c := b.tx.Bucket([]byte(bucketFinished)).Cursor()
	for k, v := c.Seek([]byte{byte(lasting)}); k != nil; k, v = c.Next() {
		if len(k) == finishedKeySize && finishedID(k) == id {
			b.kept -= b.store.keptSize(k, v)
			return c.Delete()
		}
	}
	return nil
}

// finishedKind decides which finished messages are forgotten first if there are too many.
type finishedKind byte

const (
	onlyResults finishedKind = 1
	lasting     finishedKind = 2 // with a dead job or an idempotency key
)

const finishedKeySize = 1 + 8 + 16

// finishedKey appends a key that sorts by kind and time to b.
func finishedKey(b []byte, kind finishedKind, t time.Time, id uuid.UUID) []byte {
	return append(binary.BigEndian.AppendUint64(append(b, byte(kind)), uint64(t.UnixMicro())), id[:]...)
}

// finishedTime and finishedID return parts of a key of finishedKeySize bytes.
func finishedTime(key []byte) time.Time {
	return time.UnixMicro(int64(binary.BigEndian.Uint64(key[1:])))
}

func finishedID(key []byte) uuid.UUID { return uuid.UUID(key[9:]) }

// keptSize returns the counted size of a finished message, or 0 if the record
// is damaged.
func (d *database) keptSize(key, sealed []byte) int64 {
	plain, err := d.sealer.Open(sealed, bucketFinished, key)
	if err != nil {
		return 0
	}
	n, _ := binary.Varint(plain)
	return n
}

// settle writes the new record of a job that is in the index.
func (b *batch) settle(j *job, r *queue.Job) error {
	c := b.count(j)
	before := j.status
	status, changed := b.statuses[r.JobID]
	if changed {
		before = status
	}
	if changed || asked(r) || before == queue.Dead {
		b.statuses[r.JobID] = r.Status
	}
	if before.Waits() {
		c.waiting--
	} else {
		c.dead--
	}
	if r.Status.Waits() {
		c.waiting++
	}
	switch r.Status {
	case queue.Queued, queue.Held, queue.Dead:
		if r.Status == queue.Dead {
			c.dead++
		}
		if err := b.putJob(bucketJobs, r, int64(j.size)); err != nil {
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
	status, times := r.Status, timesOf(r)
	b.then = append(b.then, func(x *index) {
		if status == queue.Queued || status == queue.Held {
			j.setTimes(times)
		}
		b.store.recent.changed(j.id())
		x.set(j, status)
	})
	if c.waiting == 0 && c.dead == 0 {
		b.dropFiles(j.message)
		if err := b.delete(bucketBodies, j.message[:]); err != nil {
			return err
		}
	}
	return nil
}

// dropFiles removes the files of a message after the commit.
func (b *batch) dropFiles(message uuid.UUID) {
	b.store.index.mu.Lock()
	defer b.store.index.mu.Unlock()
	for i := range b.store.index.large[message].files {
		b.files = append(b.files, b.store.filePath(message, i))
	}
}

// ended updates the list of finished messages after jobs of the message of j have changed.
// before has the counts before the change.
func (b *batch) ended(j *job, before counts, now time.Time) error {
	c := b.count(j)
	if before == *c {
		return nil
	}
	if before.waiting == 0 {
		if err := b.unfinish(j.message); err != nil {
			return err
		}
	}
	if c.waiting > 0 {
		return nil
	}
	keyed := c.dead == 0 && b.keyed(j) // does not matter if a job is dead
	if b.tight && c.dead == 0 && !keyed {
		if err := b.delete(bucketMessages, j.message[:]); err != nil {
			return err
		}
		return b.deletePrefix(bucketDone, j.message[:])
	}
	stored := b.storedCounts(j)
	return b.finish(j.message, int64(j.size), stored.waiting+stored.dead, c.dead, keyed, now)
}

// keyed reports whether the stored message of a job has an idempotency key.
func (b *batch) keyed(j *job) bool {
	if j.unkeyed {
		return false
	}
	r, err := b.store.sealer.OpenHead(j.message, b.get(bucketMessages, j.message[:]))
	return err == nil && r.Key != (seal.Hash{})
}

// forget removes a message that has ended.
func (b *batch) forget(finished []byte, size int64) error {
	id := finishedID(finished)
	if sealed := b.get(bucketMessages, id[:]); sealed != nil {
		if r, err := b.store.sealer.OpenHead(id, sealed); err == nil && r.Key != (seal.Hash{}) {
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
		for _, j := range slices.Collect(x.jobs.of(id)) {
			x.set(j, queue.Cancelled)
		}
	})
	b.dropFiles(id)
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
func (d *database) readKept(tx *bbolt.Tx) (kept int64, err error) {
	if sealed := tx.Bucket([]byte(bucketMeta)).Get(keyKept); sealed != nil {
		if plain, err := d.sealer.Open(sealed, bucketMeta, keyKept); err == nil {
			kept, _ = binary.Varint(plain)
			return kept, nil
		}
	}
	err = tx.Bucket([]byte(bucketFinished)).ForEach(func(k, v []byte) error {
		if !isFiller(k) {
			kept += d.keptSize(k, v)
		}
		return nil
	})
	return kept, err
}
