package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/bbolt"

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
	check := func(b *batch) error {
		for _, e := range entries {
			if err := b.checkEntry(e, maxSize); err != nil {
				return err
			}
		}
		return nil
	}
	write := func(b *batch) error {
		for _, e := range entries {
			if err := b.accept(e); err != nil {
				return err
			}
		}
		return nil
	}
	if err := s.do(ctx, &change{size: size, check: check, write: write}); err != nil {
		s.removeFiles(files)
		return err
	}
	return nil
}

// Claim implements [queue.Store].
func (s *Store) Claim(_ context.Context, c queue.Claim) ([]queue.Job, time.Time, error) {
	s.index.mu.Lock()
	claimed, due := s.index.claim(c.Now.UnixMicro(), c.Max, c.PerDestination)
	ids := idsOf(claimed)
	s.index.mu.Unlock()
	var next time.Time
	if due != 0 {
		next = time.UnixMicro(due)
	}
	jobs, err := s.read(ids)
	return jobs, next, err
}

// Expire implements [queue.Store].
func (s *Store) Expire(_ context.Context, now time.Time, _ time.Duration, n int) ([]queue.Job, error) {
	t := now.UnixMicro()
	s.index.mu.Lock()
	expired := s.index.list(queue.JobID{}, n, func(j *job) bool { return j.status == queue.Queued && j.expires <= t })
	for _, j := range expired {
		s.index.set(j, queue.Sending)
	}
	ids := idsOf(expired)
	s.index.mu.Unlock()
	return s.read(ids)
}

func idsOf(jobs []*job) []queue.JobID {
	ids := make([]queue.JobID, len(jobs))
	for i, j := range jobs {
		ids[i] = j.id()
	}
	return ids
}

// read returns the records of claimed jobs. It gives up the claims of those
// that it cannot read, and returns the first error.
func (s *Store) read(ids []queue.JobID) ([]queue.Job, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	jobs := make([]queue.Job, 0, len(ids))
	var stored []queue.JobID // that are not recent
	for _, id := range ids {
		if j := s.recent.job(id); j != nil && !s.closed() {
			j.Status = queue.Sending
			jobs = append(jobs, *j)
		} else {
			stored = append(stored, id)
		}
	}
	if len(stored) == 0 {
		return jobs, nil
	}
	var damaged bool
	err := s.view(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucketJobs))
		for _, id := range stored {
			key := record.JobKey(id)
			j, _, err := s.openJob(key, b.Get(key))
			if err != nil {
				damaged = true
				continue
			}
			j.Status = queue.Sending
			jobs = append(jobs, *j)
		}
		return nil
	})
	if err != nil {
		jobs = nil
	}
	if len(jobs) < len(ids) {
		s.giveBack(ids, jobs)
	}
	if damaged && err == nil {
		s.reopenSoon()
		err = &queue.UnavailableError{Err: errors.New("a job is damaged")}
	}
	return jobs, err
}

func (s *Store) giveBack(ids []queue.JobID, but []queue.Job) {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	for _, id := range ids {
		if slices.ContainsFunc(but, func(j queue.Job) bool { return j.JobID == id }) {
			continue
		}
		if j := s.index.find(id); j != nil && j.status == queue.Sending {
			s.index.set(j, queue.Queued)
		}
	}
}

// Settle implements [queue.Store].
func (s *Store) Settle(ctx context.Context, t *queue.Settlement) error {
	id := t.Job.JobID
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
	var j *job
	check := func(b *batch) error {
		s.index.mu.Lock()
		defer s.index.mu.Unlock()
		// The index may have been reloaded meanwhile.
		if j = s.index.find(id); j == nil || j.status != queue.Sending {
			return queue.ErrNotClaimed
		}
		return nil
	}
	write := func(b *batch) error {
		before := *b.count(j.message)
		if err := b.settle(j, t.Job); err != nil {
			return err
		}
		if err := b.ended(j.message, before, t.Job.Updated); err != nil {
			return err
		}
		if t.Next != nil {
			return b.accept(t.Next)
		}
		return nil
	}
	if err := s.do(ctx, &change{size: len(t.Job.State) + len(t.Job.Result) + 512, deferrable: t.Deferrable, check: check, write: write}); err != nil {
		s.stopSettling(id)
		s.removeFiles(files)
		return err
	}
	return nil
}

// beginSettling marks a job as being settled. It reports false if the job is
// not claimed or another caller is settling it.
func (s *Store) beginSettling(id queue.JobID) bool {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	j := s.index.find(id)
	if j == nil || j.status != queue.Sending || j.settling || j.cancelling {
		return false
	}
	if s.index.beginSettling(j) {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
	return true
}

func (s *Store) stopSettling(id queue.JobID) {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	if j := s.index.find(id); j != nil && j.settling {
		s.index.stopSettling(j)
	}
}

// Cancel implements [queue.Store].
func (s *Store) Cancel(ctx context.Context, id uuid.UUID, now time.Time, statuses ...queue.Status) (int, error) {
	return s.change(ctx, id, now, statuses, func(j *queue.Job) { j.Status = queue.Cancelled })
}

// Retry implements [queue.Store].
func (s *Store) Retry(ctx context.Context, id uuid.UUID, now, expires time.Time) (int, error) {
	return s.change(ctx, id, now, []queue.Status{queue.Dead}, func(j *queue.Job) {
		j.Status, j.Attempts, j.Due, j.Expires, j.Reason = queue.Queued, 0, now, expires, ""
	})
}

// change applies f to the jobs of a message that have one of the statuses, in
// one transaction, and returns how many there were.
func (s *Store) change(ctx context.Context, id uuid.UUID, now time.Time, statuses []queue.Status, f func(j *queue.Job)) (int, error) {
	taken := map[queue.JobID]queue.Status{} // with their earlier statuses
	s.index.mu.Lock()
	if m := s.index.messages[id]; m != nil {
		for _, j := range m.jobs {
			if !slices.Contains(statuses, j.status) || j.cancelling {
				continue
			}
			taken[j.id()] = j.status
			if j.status == queue.Queued {
				s.index.set(j, queue.Sending) // so that it is not claimed meanwhile
			}
			j.cancelling = true
		}
	}
	s.index.mu.Unlock()
	var jobs []*job
	check := func(b *batch) error {
		if b.get(bucketMessages, id[:]) == nil {
			return queue.ErrNotFound
		}
		s.index.mu.Lock()
		defer s.index.mu.Unlock()
		for id := range taken {
			if j := s.index.find(id); j != nil && j.cancelling {
				jobs = append(jobs, j)
			}
		}
		return nil
	}
	write := func(b *batch) error {
		if len(jobs) == 0 {
			return nil
		}
		m := jobs[0].message
		before := *b.count(m)
		for _, j := range jobs {
			key := record.JobKey(j.id())
			r, _, err := s.openJob(key, b.get(bucketJobs, key))
			if err != nil {
				return err
			}
			r.Updated = now
			f(r)
			if err := b.settle(j, r); err != nil {
				return err
			}
		}
		if c := b.count(m); before.waiting == 0 && c.waiting > 0 {
			return b.unfinish(m.id)
		}
		return b.ended(m, before, now)
	}
	err := s.do(ctx, &change{size: 512 * (1 + len(taken)), check: check, write: write})
	if err == nil {
		return len(jobs), nil
	}
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	for id, status := range taken {
		if j := s.index.find(id); j != nil && j.cancelling {
			s.index.set(j, status)
		}
	}
	return 0, err
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
	r, err := s.openMessage(id, header)
	if err != nil {
		return nil, nil, s.damaged("the record of message " + id.String())
	}
	text, err := s.sealer.Open(body, bucketBodies, id[:])
	if err != nil {
		return nil, nil, s.damaged("the text of message " + id.String())
	}
	m := &queue.Message{ID: id, Created: r.Created, Body: text, Summary: r.Summary, Request: r.Request}
	release, err := s.openFiles(m, r.Files)
	return m, release, err
}

// damaged logs that a record is damaged, and returns a [*queue.DamagedError].
func (s *Store) damaged(what string) error {
	err := &queue.DamagedError{What: what}
	s.log.Error(err.Error())
	return err
}

// Get implements [queue.Store].
func (s *Store) Get(_ context.Context, id uuid.UUID) (*queue.Entry, error) {
	var e *queue.Entry
	err := s.view(func(tx *bbolt.Tx) error {
		sealed := tx.Bucket([]byte(bucketMessages)).Get(id[:])
		if sealed == nil {
			return queue.ErrNotFound
		}
		r, err := s.openMessage(id, sealed)
		if err != nil {
			return s.damaged("the record of message " + id.String())
		}
		e = &queue.Entry{
			Message: &queue.Message{ID: id, Created: r.Created, Summary: r.Summary, Request: r.Request},
			Jobs:    make([]queue.Job, r.Jobs),
		}
		for i := range e.Jobs {
			e.Jobs[i] = queue.Job{JobID: queue.JobID{Message: id, Index: i}}
		}
		for _, j := range r.Done {
			if j.Index < len(e.Jobs) {
				e.Jobs[j.Index] = j
			}
		}
		for _, bucket := range []string{bucketJobs, bucketDone} {
			c := tx.Bucket([]byte(bucket)).Cursor()
			for k, v := c.Seek(id[:]); len(k) == record.JobKeySize && uuid.UUID(k[:16]) == id; k, v = c.Next() {
				plain, err := s.sealer.Open(v, bucket, k)
				if err != nil {
					continue // it is lost
				}
				j, _, err := record.DecodeJob(record.ParseJobKey(k), plain)
				if err == nil && j.Index < len(e.Jobs) {
					e.Jobs[j.Index] = *j
				}
			}
		}
		for i := range e.Jobs {
			if j := &e.Jobs[i]; j.Status == 0 {
				j.Status = queue.Lost
				_ = s.damaged(fmt.Sprintf("delivery %d of message %s", i+1, id))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	if m := s.index.messages[id]; m != nil {
		for _, j := range m.jobs {
			if r := &e.Jobs[j.index]; j.status == queue.Sending && !j.cancelling && r.Status == queue.Queued {
				r.Status = queue.Sending
			}
		}
	}
	return e, nil
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
			m, err := s.openMessage(id, v)
			if err != nil {
				_ = s.damaged("the batch of results " + id.String())
				continue
			}
			batches = append(batches, m.Summary)
		}
		return nil
	})
	return batches, err
}

// List implements [queue.Store].
func (s *Store) List(_ context.Context, status queue.Status, after queue.JobID, n int) ([]queue.Job, error) {
	s.index.mu.Lock()
	ids := idsOf(s.index.list(after, n, func(j *job) bool { return j.status == status }))
	s.index.mu.Unlock()
	jobs := make([]queue.Job, 0, len(ids))
	err := s.view(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucketJobs))
		for _, id := range ids {
			key := record.JobKey(id)
			if j, _, err := s.openJob(key, b.Get(key)); err == nil {
				j.Status = status
				jobs = append(jobs, *j)
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
	end := finishedKey(before, uuid.UUID{})
	for {
		// Nothing to remove, no commit.
		something := s.kept.Load() > maxSize
		if err := s.view(func(tx *bbolt.Tx) error {
			c := tx.Bucket([]byte(bucketFinished)).Cursor()
			c.First() // the filler
			k, _ := c.Next()
			something = something || k != nil && bytes.Compare(k, end) < 0
			return nil
		}); err != nil || !something {
			return total, err
		}
		var n int
		write := func(b *batch) error {
			n = 0
			type row struct {
				key  []byte
				size int64
			}
			var rows []row
			left := s.kept.Load() + b.kept
			c := b.tx.Bucket([]byte(bucketFinished)).Cursor()
			for k, v := c.First(); k != nil && len(rows) < forgetAtOnce; k, v = c.Next() {
				if isFiller(k) {
					continue
				}
				if bytes.Compare(k, end) >= 0 && left <= maxSize {
					break
				}
				size := s.keptSize(k, v)
				left -= size
				rows = append(rows, row{slices.Clone(k), size})
			}
			for _, r := range rows {
				if err := b.forget(r.key, r.size); err != nil {
					return err
				}
			}
			n = len(rows)
			return nil
		}
		if err := s.do(ctx, &change{check: func(*batch) error { return nil }, write: write}); err != nil {
			return total, err
		}
		if total += n; n < forgetAtOnce {
			return total, nil
		}
	}
}

// Stats implements [queue.Store].
func (s *Store) Stats(context.Context) (queue.Stats, error) {
	if s.closed() {
		return queue.Stats{}, queue.ErrClosed
	}
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	return s.index.stats(), nil
}
