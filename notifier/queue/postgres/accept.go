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
	s.size.add(size)
	for _, e := range entries {
		s.claims.hold(e)
	}
	if size > 0 {
		s.due.accepted(s.sealer, entries)
		signal(s.dirty)
	}
	for _, d := range decided {
		s.done(ctx, d)
	}
	return nil
}

// sizeOf returns the size of the entries that wait.
func sizeOf(entries []*queue.Entry) (size int64) {
	for _, e := range entries {
		if e.Waits() {
			size += e.Size()
		}
	}
	return size
}

// insert inserts the entries, and returns the decisions about them. A simple entry shares a
// transaction with entries of other callers.
func (w *writer) insert(ctx context.Context, entries []*queue.Entry) (decided []*decision, err error) {
	again, unclear := false, false
	if len(entries) == 1 && len(entries[0].Message.Files) == 0 {
		if entries[0].Update == nil {
			if err = w.accepting.do(entries[0], false); isUnclear(err) && w.rest() {
				err = w.acceptAgain(context.WithoutCancel(ctx), entries[0])
			}
			return nil, err
		}
		a := &accepting{Entry: entries[0]}
		if err = w.deciding.do(a, false); !isDuplicate(err) && !isUnclear(err) {
			return []*decision{a.decided}, err
		}
		again, unclear = true, isUnclear(err) // alone
	}
	store := func(ctx context.Context, c *conn, repeated bool) error {
		var err error
		decided, err = w.insertOrdered(ctx, c, entries)
		if isDuplicate(err) {
			if err := c.rollback(); err != nil {
				return err
			}
			return w.duplicate(ctx, c, entries, repeated || again)
		}
		return err
	}
	if !unclear {
		err = w.storing(ctx, store)
	}
	if isUnclear(err) && w.rest() {
		again = true
		err = w.do(context.WithoutCancel(ctx), store)
	}
	return decided, err
}

// accepting is an entry without files whose update is decided in the transaction that stores it.
type accepting struct {
	*queue.Entry
	decided *decision // what the transaction has changed; nil if another entry has it
}

// acceptDecided stores entries with their updates in one transaction.
func (w *writer) acceptDecided(all []*accepting) (errs []error) {
	updates := make([]decided, len(all))
	for i, a := range all {
		updates[i].Update = a.Update
		for j := range a.Jobs {
			updates[i].jobs = append(updates[i].jobs, queue.JobID{Message: a.Message.ID, Index: j})
		}
	}
	err := w.storing(context.Background(), func(ctx context.Context, c *conn, _ bool) error {
		var d *decision
		var err error
		if d, errs, err = w.decide(ctx, c, updates...); err != nil {
			return err
		}
		var entries []*queue.Entry
		for i, a := range all {
			if a.decided = nil; errs[i] == nil {
				if len(entries) == 0 {
					a.decided = d
				}
				entries = append(entries, a.Entry)
			}
		}
		if len(entries) == 0 {
			return c.rollback()
		}
		err = w.insertLast(ctx, c, entries, d.calls, d.counts)
		if err == nil && w.loseReply != nil {
			err = w.loseReply()
		}
		return err
	})
	if err != nil {
		errs = make([]error, len(all))
		for i := range errs {
			errs[i] = err
		}
	}
	return errs
}

// insertOrdered stores entries, their files and their updates in a transaction.
func (w *writer) insertOrdered(ctx context.Context, c *conn, entries []*queue.Entry) (decided []*decision, err error) {
	var calls []call
	var n counts
	for _, e := range entries {
		if e.Update == nil {
			continue
		}
		d, err := w.decideOne(ctx, c, e.Update)
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
	return decided, w.insertLast(ctx, c, entries, calls, n)
}

// insertLast ends a transaction: it stores entries with their files, makes the calls, adds to the
// counts and commits. Calls that need no answer share one exchange with the server.
func (w *writer) insertLast(ctx context.Context, c *conn, entries []*queue.Entry, calls []call, n counts) error {
	last, added, err := w.insertEntries(ctx, c, entries)
	if err != nil {
		return err
	}
	n.add(added)
	_, err = c.exec(ctx, slices.Concat(last, calls, n.calls(c), []call{commit})...)
	return err
}

// insertEntries stores entries with their files. It returns the calls that are left to make, and the
// change of the counts.
func (w *writer) insertEntries(ctx context.Context, c *conn, entries []*queue.Entry) (last []call, n counts, err error) {
	for part := range slices.Chunk(entries, batchSize) {
		if len(last) > 0 {
			if _, err := c.exec(ctx, last...); err != nil {
				return nil, n, err
			}
		}
		insert, added := w.insertion(part)
		last = []call{insert}
		n.add(added)
	}
	for _, e := range entries {
		if len(e.Message.Files) == 0 {
			continue
		}
		if _, err := c.exec(ctx, last...); err != nil {
			return nil, n, err
		}
		last = nil
		if err := w.insertFiles(ctx, c, e.Message); err != nil {
			return nil, n, err
		}
	}
	return last, n, nil
}

// checkWritable returns an error if the tables cannot be written, for example
// because the server has become a standby. An empty transaction would succeed
// there.
func (t *tables) checkWritable(ctx context.Context) error {
	return t.store(ctx, func(ctx context.Context, c *conn, _ bool) error {
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
func (w *writer) rest() bool {
	select {
	case <-time.After(restTime):
		return true
	case <-w.stop:
		return false
	}
}

// checkSize returns [queue.ErrFull] if size more bytes would exceed maxSize.
func (s *Store) checkSize(ctx context.Context, size, maxSize int64) error {
	if err := s.refreshSize(ctx); err != nil {
		return err
	}
	if !s.size.fits(size, maxSize) {
		return queue.ErrFull
	}
	return nil
}

// refreshSize reads the counts if they are old.
func (t *tables) refreshSize(ctx context.Context) error {
	return t.size.refresh(func() (bytes int64, err error) {
		err = t.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
			rows, err := c.query(ctx, "SELECT coalesce(sum(bytes + record_bytes), 0)::BIGINT FROM notify_queue_counts")
			if err == nil {
				bytes = number(rows[0][0])
			}
			return err
		})
		return bytes, err
	})
}

func sealJob(b *seal.Batch, id queue.JobID, j *queue.Job) []byte {
	return b.Seal(record.EncodeJob(j), record.Jobs, record.JobKey(id))
}

// openJob opens the record of a job. Its status comes from the table.
func (t *tables) openJob(id queue.JobID, status int64, sealed []byte) (*queue.Job, error) {
	j, _, err := t.sealer.OpenJob(record.Jobs, id, sealed)
	if err == nil {
		j.Status = queue.Status(status)
	}
	return j, err
}

// storedEarlier returns a [*queue.DuplicateError] if an earlier version has stored the message.
func (w *writer) storedEarlier(ctx context.Context, m *queue.Message) error {
	if m.EarlierKey == "" {
		return nil
	}
	var found error
	err := w.do(ctx, func(ctx context.Context, c *conn, _ bool) (err error) {
		found, err = w.keyed(ctx, c, m.EarlierKey, m.Request)
		return err
	})
	return cmp.Or(err, found)
}

// keyed returns a [*queue.DuplicateError] as found if a message with an idempotency key is stored.
func (w *writer) keyed(ctx context.Context, c *conn, key string, request []byte) (found, err error) {
	hash := w.sealer.KeyHash(key)
	rows, err := c.query(ctx, "SELECT id, head FROM notify_queue_messages WHERE idempotency = $1", hash[:])
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	first := id(rows[0][0])
	m, err := w.sealer.OpenHead(first, rows[0][1])
	if err != nil {
		return nil, w.sealer.Damaged("the record of message " + first.String())
	}
	return &queue.DuplicateError{ID: first, SameRequest: bytes.Equal(m.Request, request)}, nil
}

// duplicate returns an error for the entry that is stored already. repeated reports whether an
// earlier attempt may have stored the entries. Only confirmed messages count, see [conn.confirm].
func (w *writer) duplicate(ctx context.Context, c *conn, entries []*queue.Entry, repeated bool) error {
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
		found, err := w.keyed(ctx, c, e.Message.Key, e.Message.Request)
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
