package bolt

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/bbolt"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
)

// Accept implements [queue.Store].
func (s *Store) Accept(ctx context.Context, maxSize int64, entries ...*queue.Entry) error {
	size := 0
	for _, e := range entries {
		size += int(e.Size())
		for _, f := range e.Message.Files {
			size -= int(f.Size)
		}
	}
	files, err := s.writeFiles(entries...)
	if err != nil {
		return err
	}
	decided := make([]*queue.Tx, len(entries))
	check := func(b *batch) (err error) {
		for i, e := range entries {
			if err := b.checkEntry(e, maxSize); err != nil {
				return err
			}
			if decided[i], err = b.decide(e.Update); err != nil {
				return err
			}
		}
		return nil
	}
	write := func(b *batch) error {
		for i, e := range entries {
			if err := b.accept(e); err != nil {
				return err
			}
			if err := b.update(e.Update, decided[i]); err != nil {
				return err
			}
		}
		return nil
	}
	stored := func(tx *bbolt.Tx) bool {
		return len(entries) == 0 || tx.Bucket([]byte(bucketMessages)).Get(entries[0].Message.ID[:]) != nil
	}
	replaces := len(entries) > 0 && !slices.ContainsFunc(entries, func(e *queue.Entry) bool { return !e.Unlimited })
	c := &change{size: size, pages: pagesOf(size, entries...), adds: true, replaces: replaces, check: check, write: write, stored: stored}
	if err := s.do(ctx, c); err != nil {
		if !errors.Is(err, errUnclear) {
			s.removeFiles(files)
		}
		return err
	}
	return nil
}

// pagesOf returns the maximum number of pages that a commit with entries needs,
// roughly. size is the size of their records.
func pagesOf(size int, entries ...*queue.Entry) int {
	n := size / (pageSize / 2) // pages are not full
	for _, e := range entries {
		n += pagesPerMessage + pagesPerJob*len(e.Jobs) + pagesOfUpdate(e.Update)
	}
	return n
}

// Hash implements [queue.Store].
func (s *Store) Hash(text string) queue.Hash { return s.sealer.DestinationHash(text) }

// Claim implements [queue.Store].
func (s *Store) Claim(_ context.Context, c queue.Claim) ([]queue.Job, time.Time, error) {
	s.index.mu.Lock()
	taken, due := s.index.claim(c)
	claimed := make([]claimedJob, len(taken))
	for i, j := range taken {
		claimed[i] = claimedJob{j.id(), j.due, j.updated}
	}
	s.index.mu.Unlock()
	var next time.Time
	if due != 0 {
		next = time.UnixMicro(due)
	}
	jobs, err := s.read(claimed)
	return jobs, next, err
}

// claimedJob is a job of the index that has been claimed. Its record may have
// other times.
type claimedJob struct {
	id           queue.JobID
	due, updated int64
}

// Wake implements [queue.Store]. It changes the index only, so it costs no
// commit.
func (s *Store) Wake(_ context.Context, w queue.Wake) (more []queue.Hash, err error) {
	err = s.look(func(x *index) {
		for _, h := range w.Destinations {
			if x.wake(h, w.Now.UnixMicro(), w.Max, w.Force) {
				more = append(more, h)
			}
		}
	})
	return more, err
}

// Waiting implements [queue.Store].
func (s *Store) Waiting(_ context.Context, destinations ...queue.Hash) (all []queue.Waiting, err error) {
	err = s.look(func(x *index) { all = x.waitingFor(destinations) })
	return all, err
}

// read returns the records of claimed jobs. It gives up the claims of jobs that it cannot read, and
// returns the first error.
func (s *Store) read(all []claimedJob) ([]queue.Job, error) {
	if len(all) == 0 {
		return nil, nil
	}
	jobs := make([]queue.Job, len(all)) // in the same order
	add := func(i int, j *queue.Job) {
		jobs[i] = *j
		jobs[i].JobID = all[i].id
		jobs[i].Status, jobs[i].Due, jobs[i].Updated = queue.Sending, time.UnixMicro(all[i].due), time.UnixMicro(all[i].updated)
	}
	var stored []int // not in recent
	for i, c := range all {
		if j := s.recent.job(c.id); j != nil && !s.closed() {
			add(i, j)
		} else {
			stored = append(stored, i)
		}
	}
	if len(stored) == 0 {
		return jobs, nil
	}
	var damaged bool
	err := s.view(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucketJobs))
		for _, i := range stored {
			j, _, err := s.sealer.OpenJob(bucketJobs, all[i].id, b.Get(record.JobKey(all[i].id)))
			if err != nil {
				damaged = true
				continue
			}
			add(i, j)
		}
		return nil
	})
	jobs = slices.DeleteFunc(jobs, func(j queue.Job) bool { return j.Status != queue.Sending })
	if err != nil {
		jobs = nil
	}
	if len(jobs) < len(all) {
		s.giveBack(all, jobs)
	}
	if damaged && err == nil {
		s.reopenSoon()
		err = &queue.UnavailableError{Err: errors.New("a job is damaged")}
	}
	return jobs, err
}

func (s *Store) giveBack(all []claimedJob, but []queue.Job) {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	for _, c := range all {
		if slices.ContainsFunc(but, func(j queue.Job) bool { return j.JobID == c.id }) {
			continue
		}
		if j := s.index.jobs.find(c.id); j != nil && j.status == queue.Sending {
			s.index.set(j, queue.Queued)
		}
	}
}

// Settle implements [queue.Store].
func (s *Store) Settle(ctx context.Context, t *queue.Settlement) error {
	id := t.Job.JobID
	if t.Shared != nil {
		return s.postpone(t.Job, t.Shared)
	}
	if !s.beginSettling(id) {
		return queue.ErrNotClaimed
	}
	var files []string
	if t.Next != nil {
		var err error
		if files, err = s.writeFiles(t.Next); err != nil {
			s.stopSettling(id)
			return err
		}
	}
	x := &settlement{s: s, t: t, next: t.Next}
	if err := s.do(ctx, x.change()); err != nil {
		s.stopSettling(id)
		if !errors.Is(err, errUnclear) {
			s.removeFiles(files)
		}
		return err
	}
	if x.dropped {
		s.removeFiles(files)
	}
	if t.Failure != nil {
		s.fail(t.Job, t.Failure)
	}
	return nil
}

// settlement is a [queue.Settlement] that is being stored.
type settlement struct {
	s       *Store
	t       *queue.Settlement
	job     *job
	decided *queue.Tx
	next    *queue.Entry
	dropped bool // next is not accepted
}

// change returns the change of the store.
func (x *settlement) change() *change {
	size := len(x.t.Job.State) + len(x.t.Job.Result) + 512
	c := &change{
		size: size, pages: pagesPerResult + pagesOf(size), deferrable: x.t.Deferrable, check: x.check, write: x.write,
		stored: x.stored,
	}
	c.pages += pagesPerResult*len(x.t.Health) + pagesOfUpdate(x.t.Update)
	if x.next != nil {
		c.pages += pagesOf(int(x.next.Size()), x.next)
	}
	return c
}

func (x *settlement) check(b *batch) (err error) {
	index := x.s.index
	index.mu.Lock()
	// The index may have been reloaded meanwhile.
	x.job = index.jobs.find(x.t.Job.JobID)
	claimed := x.job != nil && x.job.status == queue.Sending
	index.mu.Unlock()
	if !claimed {
		return queue.ErrNotClaimed
	}
	x.decided, err = b.decide(x.t.Update)
	return err
}

func (x *settlement) write(b *batch) error {
	before := *b.count(x.job)
	if err := b.settle(x.job, x.t.Job); err != nil {
		return err
	}
	if err := b.ended(x.job, before, x.t.Job.Updated); err != nil {
		return err
	}
	if err := b.putHealth(x.t.Health); err != nil {
		return err
	}
	if err := b.update(x.t.Update, x.decided); err != nil {
		return err
	}
	if x.t.Next == nil { // the update may have removed it
		x.dropped = x.next != nil
		return nil
	}
	if x.dropped = b.leavesOut(x.t.Next); x.dropped {
		return nil
	}
	return b.accept(x.t.Next)
}

func (x *settlement) stored(tx *bbolt.Tx) bool {
	sealed := tx.Bucket([]byte(bucketJobs)).Get(record.JobKey(x.t.Job.JobID))
	if sealed == nil {
		return true
	}
	r, _, err := x.s.sealer.OpenJob(bucketJobs, x.t.Job.JobID, sealed)
	return err == nil && r.Updated.UnixMicro() == x.t.Job.Updated.UnixMicro()
}

// postponeAtOnce is the number of jobs that postpone changes while it holds the
// lock of the index.
const postponeAtOnce = 1000

// postpone settles a job whose destination is down, and postpones others. It
// changes only the index, so it costs no commit.
func (s *Store) postpone(r *queue.Job, f *queue.SharedFailure) error {
	if s.closed() {
		return queue.ErrClosed
	}
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	j := s.index.jobs.find(r.JobID)
	if !j.settleable() {
		return queue.ErrNotClaimed
	}
	j.setTimes(timesOf(r))
	s.recent.changed(r.JobID)
	s.index.set(j, queue.Queued)
	s.postponeOthers(j.destination, r, f)
	return nil
}

// fail postpones the other jobs for which a failed attempt counts.
func (s *Store) fail(r *queue.Job, f *queue.SharedFailure) {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	if d := s.index.destinations[s.Hash(r.Destination)]; d != nil {
		s.postponeOthers(d, r, f)
	}
}

// postponeOthers does the work of fail. The caller holds the lock of the index.
func (s *Store) postponeOthers(d *destination, r *queue.Job, f *queue.SharedFailure) {
	for _, j := range s.index.postpone(d, f.Began.UnixMicro(), r.Updated.UnixMicro(), f.Until.UnixMicro(), postponeAtOnce) {
		s.recent.changed(j.id())
	}
}

// beginSettling marks a job as being settled. It reports false if the job is
// not claimed or another caller is settling it.
func (s *Store) beginSettling(id queue.JobID) bool {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	j := s.index.jobs.find(id)
	if !j.settleable() {
		return false
	}
	if s.index.beginSettling(j) {
		signal(s.changed)
	}
	return true
}

func (s *Store) stopSettling(id queue.JobID) {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	if j := s.index.jobs.find(id); j != nil && j.writing == settling {
		j.writing = nothing
	}
}

// Load implements [queue.Store].
func (s *Store) Load(_ context.Context, id uuid.UUID) (*queue.Message, func(), error) {
	if m := s.recent.message(id); m != nil && !s.closed() {
		return m, func() {}, nil
	}
	var header, body []byte
	if err := s.view(func(tx *bbolt.Tx) error {
		header = slices.Clone(tx.Bucket([]byte(bucketMessages)).Get(id[:]))
		body = slices.Clone(tx.Bucket([]byte(bucketBodies)).Get(id[:]))
		return nil
	}); err != nil {
		return nil, nil, err
	}
	if header == nil || body == nil {
		return nil, nil, queue.ErrNotFound
	}
	m, files, err := s.sealer.OpenMessage(id, header, body)
	if err != nil {
		return nil, nil, err
	}
	release, err := s.openFiles(m, files)
	return m, release, err
}

// Get implements [queue.Store].
func (s *Store) Get(_ context.Context, id uuid.UUID) (*queue.Entry, error) {
	var e *queue.Entry
	err := s.view(func(tx *bbolt.Tx) (err error) {
		sealed := tx.Bucket([]byte(bucketMessages)).Get(id[:])
		if sealed == nil {
			return queue.ErrNotFound
		}
		e, err = s.entry(tx, id, sealed)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	s.index.update(e)
	return e, nil
}

// Messages implements [queue.Store].
func (s *Store) Messages(_ context.Context, before uuid.UUID, n int) (entries []*queue.Entry, next uuid.UUID, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte(bucketMessages)).Cursor()
		k, v := c.Last()
		if before != (uuid.UUID{}) {
			if k, _ = c.Seek(before[:]); k == nil {
				k, v = c.Last()
			} else {
				k, v = c.Prev()
			}
		}
		entries, next = nil, uuid.UUID{}
		for ; len(k) == len(before) && n > 0; k, v = c.Prev() {
			n--
			next = uuid.UUID(k)
			if e, err := s.entry(tx, next, v); err == nil {
				entries = append(entries, e)
			}
		}
		if len(k) != len(before) {
			next = uuid.UUID{}
		}
		return nil
	})
	if err != nil {
		return nil, next, err
	}
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	for _, e := range entries {
		s.index.update(e)
	}
	return entries, next, nil
}

// entry returns a message with its jobs, as the database has them.
func (s *Store) entry(tx *bbolt.Tx, id uuid.UUID, sealed []byte) (*queue.Entry, error) {
	return s.sealer.OpenEntry(id, sealed, func(yield func(*queue.Job) bool) {
		for _, bucket := range []string{bucketJobs, bucketDone} {
			c := tx.Bucket([]byte(bucket)).Cursor()
			for k, v := c.Seek(id[:]); len(k) == record.JobKeySize && uuid.UUID(k[:16]) == id; k, v = c.Next() {
				// One that is damaged is lost.
				if j, _, err := s.sealer.OpenJob(bucket, record.ParseJobKey(k), v); err == nil && !yield(j) {
					return
				}
			}
		}
	})
}

// update sets the fields that only the index knows: which jobs are being sent, and when the others
// are due. The caller holds the lock.
func (x *index) update(e *queue.Entry) {
	for j := range x.jobs.of(e.Message.ID) {
		r := &e.Jobs[j.index]
		if r.Status != queue.Queued {
			continue
		}
		if j.status == queue.Sending && j.writing != cancelling {
			r.Status = queue.Sending
		}
		r.Due = time.UnixMicro(j.due) // it may have been woken
	}
}

// Batches implements [queue.Store].
func (s *Store) Batches(_ context.Context, from, to uuid.UUID) (batches [][]byte, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte(bucketMessages)).Cursor()
		for k, v := c.Seek(from[:]); len(k) == len(from) && bytes.Compare(k, to[:]) < 0; k, v = c.Next() {
			id := uuid.UUID(k)
			if !queue.IsBatch(id) {
				continue
			}
			if summary, ok := s.sealer.OpenBatch(id, v); ok {
				batches = append(batches, summary)
			}
		}
		return nil
	})
	return batches, err
}

// listAtOnce is the number of jobs that List looks up while it holds the lock of
// the index.
const listAtOnce = 256

// List implements [queue.Store]. The database has the jobs in the order of their
// IDs; the index knows which of them are being sent.
func (s *Store) List(_ context.Context, after queue.JobID, n int, statuses ...queue.Status) ([]queue.Job, error) {
	type row struct {
		id     queue.JobID
		sealed []byte
		status queue.Status
		due    int64
	}
	var jobs []queue.Job
	err := s.view(func(tx *bbolt.Tx) error {
		rows := make([]row, 0, listAtOnce)
		c := tx.Bucket([]byte(bucketJobs)).Cursor()
		first := record.JobKey(after)
		k, v := c.Seek(first)
		if bytes.Equal(k, first) {
			k, v = c.Next()
		}
		for k != nil && len(jobs) < n {
			for rows = rows[:0]; k != nil && len(rows) < listAtOnce; k, v = c.Next() {
				if len(k) == record.JobKeySize {
					rows = append(rows, row{id: record.ParseJobKey(k), sealed: v})
				}
			}
			s.index.mu.Lock()
			for i := range rows {
				if j := s.index.jobs.find(rows[i].id); j != nil {
					rows[i].status, rows[i].due = j.status, j.due
				}
			}
			s.index.mu.Unlock()
			for _, r := range rows {
				if len(jobs) == n {
					break
				}
				if !slices.Contains(statuses, r.status) {
					continue
				}
				if j, _, err := s.sealer.OpenJob(bucketJobs, r.id, r.sealed); err == nil {
					j.Status, j.Due = r.status, time.UnixMicro(r.due)
					jobs = append(jobs, *j)
				}
			}
		}
		return nil
	})
	return jobs, err
}

// forgetAtOnce is the number of messages that one transaction removes, so that
// other callers do not wait long.
const forgetAtOnce = 500

// Forget implements [queue.Store].
func (s *Store) Forget(ctx context.Context, before time.Time, maxSize int64) (total int, err error) {
	s.recent.forget(time.Now().Add(-recentAge))
	lost := 0 // dead deliveries and idempotency keys that were forgotten early
	defer func() {
		if lost > 0 {
			s.log.Warn("messages with dead deliveries or idempotency keys were forgotten before their time, because they fill a quarter of "+
				"max_size; raise max_size, or drop what is not needed",
				zap.Int("messages", lost))
		}
	}()
	for {
		// Nothing to remove, no commit.
		something := s.kept.Load() > maxSize
		if err := s.view(func(tx *bbolt.Tx) error {
			c := tx.Bucket([]byte(bucketFinished)).Cursor()
			for _, kind := range []finishedKind{onlyResults, lasting} {
				k, _ := c.Seek([]byte{byte(kind)})
				something = something || len(k) == finishedKeySize && k[0] == byte(kind) && finishedTime(k).Before(before)
			}
			return nil
		}); err != nil || !something {
			return total, err
		}
		var rows []finishedRow
		var early int
		write := func(b *batch) error {
			rows, early = b.forgettable(before, maxSize)
			for _, r := range rows {
				if err := b.forget(r.key, r.size); err != nil {
					return err
				}
			}
			return nil
		}
		if err := s.do(ctx, &change{pages: pagesPerForget, check: func(*batch) error { return nil }, write: write}); err != nil ||
			len(rows) == 0 {
			return total, err
		}
		total += len(rows)
		lost += early
	}
}

// finishedRow is a row of the finished messages.
type finishedRow struct {
	key  []byte
	size int64
}

// forgettable returns the messages to forget in this transaction: those that finished before a
// time, then the oldest results, then the oldest of the others. early is the number of the others.
func (b *batch) forgettable(before time.Time, maxSize int64) (rows []finishedRow, early int) {
	most := min(forgetAtOnce, max(1, (b.room-pagesPerCommit)/pagesPerForget))
	left := b.store.kept.Load() + b.kept
	c := b.tx.Bucket([]byte(bucketFinished)).Cursor()
	for _, expired := range []bool{true, false} {
		for _, kind := range []finishedKind{onlyResults, lasting} {
			for k, v := c.Seek([]byte{byte(kind)}); len(k) == finishedKeySize && k[0] == byte(kind) && len(rows) < most; k, v = c.Next() {
				old := finishedTime(k).Before(before)
				if expired && !old || !expired && left <= maxSize {
					break
				}
				if !expired && old {
					continue // it is among the rows already
				}
				size := b.store.keptSize(k, v)
				left -= size
				rows = append(rows, finishedRow{slices.Clone(k), size})
				if !expired && kind == lasting {
					early++
				}
			}
		}
	}
	return rows, early
}

// Stats implements [queue.Store].
func (s *Store) Stats(context.Context) (st queue.Stats, err error) {
	err = s.look(func(x *index) { st = x.stats() })
	return st, err
}
