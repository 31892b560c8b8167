package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
)

// Accept implements [queue.Store].
func (s *Store) Accept(ctx context.Context, maxSize int64, entries ...*queue.Entry) error {
	if s.pool.resting() {
		return unavailable(errStalled)
	}
	if len(entries) == 0 {
		return s.checkWritable(ctx)
	}
	size := sizeOf(entries)
	if size > 0 {
		if err := s.checkSize(ctx, size, maxSize); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if err := s.storedEarlier(ctx, e.Message); err != nil {
			return err
		}
	}
	decided, err := s.insert(ctx, entries)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.waiting += size
	for _, e := range entries {
		s.hold(e)
	}
	s.mu.Unlock()
	if size > 0 {
		s.due.accepted(s, entries)
		signal(s.dirty)
	}
	for _, d := range decided {
		s.done(ctx, d)
	}
	return nil
}

// sizeOf returns the size of those of the entries that wait.
func sizeOf(entries []*queue.Entry) (size int64) {
	for _, e := range entries {
		if e.Waits() {
			size += e.Size()
		}
	}
	return size
}

// insert inserts the entries, and returns what was decided with them. A simple one is
// inserted together with those of other callers.
func (s *Store) insert(ctx context.Context, entries []*queue.Entry) (decided []*decision, err error) {
	if len(entries) == 1 && len(entries[0].Message.Files) == 0 && entries[0].Update == nil {
		if err = s.accepting.do(entries[0], false); isUnclear(err) && s.rest() {
			err = s.acceptAgain(context.WithoutCancel(ctx), entries[0])
		}
		return nil, err
	}
	again := false
	store := func(ctx context.Context, c *conn, repeated bool) error {
		var err error
		decided, err = s.insertOrdered(ctx, c, entries)
		if isDuplicate(err) {
			if err := c.rollback(); err != nil {
				return err
			}
			return s.duplicate(ctx, c, entries, repeated || again)
		}
		return err
	}
	if err = s.storing(ctx, store); isUnclear(err) && s.rest() {
		again = true
		err = s.do(context.WithoutCancel(ctx), store)
	}
	return decided, err
}

// insertOrdered stores entries, their files and their updates in a transaction.
func (s *Store) insertOrdered(ctx context.Context, c *conn, entries []*queue.Entry) (decided []*decision, err error) {
	var calls []call
	var n counts
	for _, e := range entries {
		if e.Update == nil {
			continue
		}
		d, err := s.decide(ctx, c, e.Update)
		if err != nil {
			return nil, err
		}
		decided, calls = append(decided, d), append(calls, d.calls...)
		n.add(d.counts)
	}
	if len(decided) == 0 {
		if _, err := c.exec(ctx, begin); err != nil {
			return nil, err
		}
	}
	return decided, s.insertLast(ctx, c, entries, calls, n)
}

// insertLast ends a transaction: it stores entries with their files, makes the calls, adds
// to the counts and commits. What needs no answer is one exchange with the server.
func (s *Store) insertLast(ctx context.Context, c *conn, entries []*queue.Entry, calls []call, n counts) error {
	var last []call
	for part := range slices.Chunk(entries, batchSize) {
		if len(last) > 0 {
			if _, err := c.exec(ctx, last...); err != nil {
				return err
			}
		}
		insert, added := s.insertion(part)
		last = []call{insert}
		n.add(added)
	}
	for _, e := range entries {
		if len(e.Message.Files) == 0 {
			continue
		}
		if _, err := c.exec(ctx, last...); err != nil {
			return err
		}
		last = nil
		if err := s.insertFiles(ctx, c, e.Message); err != nil {
			return err
		}
	}
	_, err := c.exec(ctx, slices.Concat(last, calls, n.calls(c), []call{commit})...)
	return err
}

// checkWritable returns an error if the tables cannot be written, for example
// because the server has become a standby. An empty transaction would succeed
// there.
func (s *Store) checkWritable(ctx context.Context) error {
	return s.store(ctx, func(ctx context.Context, c *conn, _ bool) error {
		_, err := c.query(ctx, "UPDATE notify_queue_counts SET waiting = waiting WHERE shard = $1", c.counter)
		return err
	})
}

// isUnclear reports whether messages may be stored although err is returned.
func isUnclear(err error) bool {
	_, ok := errors.AsType[*unclearError](err)
	return ok
}

// rest waits until a server that does not answer may be asked again. It reports
// false if the store is closed meanwhile.
func (s *Store) rest() bool {
	select {
	case <-time.After(restTime):
		return true
	case <-s.stop:
		return false
	}
}

// hold records that this handle has claimed the jobs of an entry that are
// Sending.
func (s *Store) hold(e *queue.Entry) {
	for i := range e.Jobs {
		if j := &e.Jobs[i]; j.Status == queue.Sending {
			s.claim(queue.JobID{Message: e.Message.ID, Index: i})
		}
	}
}

// claim records that this handle has claimed a job. The caller holds s.mu.
func (s *Store) claim(id queue.JobID) {
	// The job can be claimed already: a call queued it again, and another call
	// claimed it before the first one recorded that.
	s.unclaim(id, s.claimed[id])
	s.claimed[id] = &claim{}
}

// unclaim is the inverse of claim, unless the job has been claimed again since.
// The caller holds s.mu.
func (s *Store) unclaim(id queue.JobID, c *claim) {
	if c == nil || s.claimed[id] != c {
		return
	}
	delete(s.claimed, id)
	if m := s.messages[id.Message]; m != nil {
		if m.jobs--; m.jobs <= 0 {
			delete(s.messages, id.Message)
		}
	}
}

// checkSize returns [queue.ErrFull] if size more bytes would exceed maxSize.
func (s *Store) checkSize(ctx context.Context, size, maxSize int64) error {
	if err := s.refreshSize(ctx); err != nil {
		return err
	}
	if !s.fits(size, maxSize) {
		return queue.ErrFull
	}
	return nil
}

// fits reports whether size more bytes do not exceed maxSize, as far as this handle knows.
func (s *Store) fits(size, maxSize int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting+size <= maxSize
}

// refreshSize reads the counts if they are old.
func (s *Store) refreshSize(ctx context.Context) error {
	s.mu.Lock()
	never, old := s.counted.IsZero(), time.Since(s.counted) > countEvery
	s.mu.Unlock()
	// One caller reads the counts; the others use the last ones.
	if never {
		s.counting.Lock()
	}
	if never || old && s.counting.TryLock() {
		defer s.counting.Unlock()
		return s.count(ctx, never)
	}
	return nil
}

// count reads the counts, or if first is true, does so unless another caller has
// done so. The caller holds s.counting.
func (s *Store) count(ctx context.Context, first bool) error {
	s.mu.Lock()
	done := first && !s.counted.IsZero()
	s.mu.Unlock()
	if done {
		return nil
	}
	var bytes int64
	err := s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		rows, err := c.query(ctx, "SELECT coalesce(sum(bytes + record_bytes), 0)::BIGINT FROM notify_queue_counts")
		if err == nil {
			bytes = number(rows[0][0])
		}
		return err
	})
	if err == nil {
		s.setWaiting(bytes)
	}
	return err
}

// setWaiting sets the size of the messages that wait and of the records.
func (s *Store) setWaiting(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting, s.counted = bytes, time.Now()
}

func sealJob(b *seal.Batch, id queue.JobID, j *queue.Job) []byte {
	return b.Seal(record.EncodeJob(j), record.Jobs, record.JobKey(id))
}

// openJob opens the record of a job. Its status comes from the table.
func (s *Store) openJob(id queue.JobID, status int64, sealed []byte) (*queue.Job, error) {
	j, _, err := s.sealer.OpenJob(record.Jobs, id, sealed)
	if err == nil {
		j.Status = queue.Status(status)
	}
	return j, err
}

// storedEarlier returns a [*queue.DuplicateError] if an earlier version has stored the message.
func (s *Store) storedEarlier(ctx context.Context, m *queue.Message) error {
	if m.EarlierKey == "" {
		return nil
	}
	var found error
	err := s.do(ctx, func(ctx context.Context, c *conn, _ bool) (err error) {
		found, err = s.keyed(ctx, c, m.EarlierKey, m.Request)
		return err
	})
	return cmp.Or(err, found)
}

// keyed returns a [*queue.DuplicateError] as found if a message with an idempotency key is stored.
func (s *Store) keyed(ctx context.Context, c *conn, key string, request []byte) (found, err error) {
	hash := s.sealer.KeyHash(key)
	rows, err := c.query(ctx, "SELECT id, head FROM notify_queue_messages WHERE idempotency = $1", hash[:])
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	first := id(rows[0][0])
	m, err := s.sealer.OpenHead(first, rows[0][1])
	if err != nil {
		return nil, s.sealer.Damaged("the record of message " + first.String())
	}
	return &queue.DuplicateError{ID: first, SameRequest: bytes.Equal(m.Request, request)}, nil
}

// duplicate returns an error for the entry that is stored already. repeated
// reports whether an earlier attempt may have stored the entries. Only what is stored for
// good counts, see [conn.confirm].
func (s *Store) duplicate(ctx context.Context, c *conn, entries []*queue.Entry, repeated bool) error {
	stored := 0
	for _, e := range entries {
		rows, err := c.query(ctx, "SELECT 1 FROM notify_queue_messages WHERE id = $1", e.Message.ID)
		if err != nil {
			return err
		}
		if len(rows) > 0 && repeated {
			stored++
			continue
		} else if len(rows) > 0 {
			return refusef("the message %s is stored already", e.Message.ID)
		}
		if e.Message.Key == "" {
			continue
		}
		found, err := s.keyed(ctx, c, e.Message.Key, e.Message.Request)
		if err != nil {
			return err
		}
		if found != nil {
			if err := c.confirm(ctx); err != nil {
				return err
			}
			return found
		}
	}
	if stored == len(entries) {
		return c.confirm(ctx)
	}
	// The stored message has been forgotten meanwhile.
	return &pgconn.PgError{Code: "40001", Message: "a message with the same key was removed at the same time"}
}
