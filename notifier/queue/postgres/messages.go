package postgres

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
)

// Load implements [queue.Store].
func (s *Store) Load(ctx context.Context, id uuid.UUID) (*queue.Message, func(), error) {
	head, body := s.claims.message(id)
	if body == nil {
		if err := s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
			rows, err := c.query(ctx, "SELECT head, body FROM notify_queue_messages WHERE id = $1 AND body IS NOT NULL", id)
			if err == nil && len(rows) == 0 {
				err = queue.ErrNotFound
			}
			if err == nil {
				head, body = rows[0][0], rows[0][1]
			}
			return err
		}); err != nil {
			return nil, nil, err
		}
	}
	m, files, err := s.sealer.OpenMessage(id, head, body)
	if err != nil {
		if s.isForeign(ctx) {
			err = errForeign
		}
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	for i, size := range files {
		m.Files = append(m.Files, queue.File{Size: size, ReaderAt: s.openFile(ctx, id, i, size)})
	}
	return m, cancel, nil
}

// messageStore reads messages and jobs.
type messageStore struct{ *tables }

// Get implements [queue.Store].
func (s messageStore) Get(ctx context.Context, id uuid.UUID) (e *queue.Entry, err error) {
	err = s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		results, err := c.exec(ctx,
			call{"SELECT head FROM notify_queue_messages WHERE id = $1", []any{id}},
			call{"SELECT j.idx, j.status, j.record, " + dueColumn + " FROM " + jobsWithDue + " WHERE j.message = $1", []any{id}})
		if err != nil {
			return err
		}
		if len(results[0].Rows) == 0 {
			return queue.ErrNotFound
		}
		e, err = s.entry(id, results[0].Rows[0][0], results[1].Rows)
		return err
	})
	return e, err
}

// Messages implements [queue.Store].
func (s messageStore) Messages(ctx context.Context, before uuid.UUID, n int) (entries []*queue.Entry, next uuid.UUID, err error) {
	if before == (uuid.UUID{}) {
		before = uuid.Max
	}
	err = s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		entries, next = nil, uuid.UUID{}
		rows, err := c.query(ctx, `SELECT m.id, m.head, j.idx, j.status, j.record, `+dueColumn+`
			FROM (SELECT id, head FROM notify_queue_messages WHERE id < $1 ORDER BY id DESC LIMIT $2) AS m
			LEFT JOIN (`+jobsWithDue+`) ON j.message = m.id ORDER BY m.id DESC`, before, n+1)
		found := 0
		for len(rows) > 0 && err == nil {
			at, end := id(rows[0][0]), 1
			for end < len(rows) && id(rows[end][0]) == at {
				end++
			}
			if found++; found > n {
				return nil
			}
			jobs := make([][][]byte, 0, end)
			for _, row := range rows[:end] {
				if row[2] != nil {
					jobs = append(jobs, row[2:])
				}
			}
			if e, err := s.entry(at, rows[0][1], jobs); err == nil {
				entries = append(entries, e)
			}
			next, rows = at, rows[end:]
		}
		next = uuid.UUID{} // there are no more
		return err
	})
	return entries, next, err
}

// entry returns a message with its jobs. Each row has idx, status, record and due.
func (s messageStore) entry(id uuid.UUID, head []byte, rows [][][]byte) (*queue.Entry, error) {
	return s.sealer.OpenEntry(id, head, func(yield func(*queue.Job) bool) {
		for _, row := range rows {
			j, err := s.openJob(queue.JobID{Message: id, Index: int(number(row[0]))}, number(row[1]), row[2])
			if err != nil {
				continue // it is lost
			}
			j.Due = time.UnixMicro(number(row[3])) // it may have been woken
			if !yield(j) {
				return
			}
		}
	})
}

// Batches implements [queue.Store].
func (s messageStore) Batches(ctx context.Context, from, to uuid.UUID) (batches [][]byte, err error) {
	err = s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		rows, err := c.query(ctx, "SELECT id, head FROM notify_queue_messages WHERE id >= $1 AND id < $2 AND jobs = 0", from, to)
		batches = nil
		for _, row := range rows {
			if summary, ok := s.sealer.OpenBatch(id(row[0]), row[1]); ok {
				batches = append(batches, summary)
			}
		}
		return err
	})
	return batches, err
}

// List implements [queue.Store].
func (s messageStore) List(ctx context.Context, after queue.JobID, n int, statuses ...queue.Status) (jobs []queue.Job, err error) {
	index := after.Index
	if after == (queue.JobID{}) {
		index = -1
	}
	in := make([]string, len(statuses)) // constants, so that a partial index can be used
	for i, status := range statuses {
		in[i] = strconv.Itoa(int(status))
	}
	err = s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		rows, err := c.query(ctx, `SELECT j.message, j.idx, j.record, j.status, `+dueColumn+` FROM `+jobsWithDue+`
			WHERE j.status IN (`+strings.Join(in, ", ")+`) AND (j.message, j.idx) > ($1, $2) ORDER BY j.message, j.idx LIMIT $3`, after.Message,
			index, n)
		if err != nil {
			return err
		}
		jobs = nil
		for _, row := range rows {
			jid := queue.JobID{Message: id(row[0]), Index: int(number(row[1]))}
			j, err := s.openJob(jid, number(row[3]), row[2])
			if err != nil {
				_ = s.sealer.DamagedJob(jid)
				continue
			}
			j.Due = time.UnixMicro(number(row[4])) // it may have been woken
			jobs = append(jobs, *j)
		}
		return nil
	})
	return jobs, err
}

// insertFiles stores the attachments of a message.
func (t *tables) insertFiles(ctx context.Context, c *conn, m *queue.Message) error {
	for i, f := range m.Files {
		var calls []call
		var failed error // of the server
		flush := func() error {
			if len(calls) > 0 {
				_, failed = c.exec(ctx, calls...)
				calls = nil
			}
			return failed
		}
		err := t.sealer.SealFile(f, f.Size, record.FileKey(m.ID, i), func(chunk int64, sealed []byte) error {
			calls = append(calls, call{
				"INSERT INTO notify_queue_files (message, file, chunk, data) VALUES ($1, $2, $3, $4)",
				[]any{m.ID, i, chunk, sealed},
			})
			if len(calls) < 16 {
				return nil
			}
			return flush()
		})
		switch {
		case err == nil:
			err = flush()
		case failed == nil:
			err = refusef("%v", err) // reading the file failed
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// openFile returns a reader of an attachment. It requests each chunk from the
// server separately.
func (t *tables) openFile(ctx context.Context, id uuid.UUID, file int, size int64) io.ReaderAt {
	return t.sealer.OpenFile(size, record.FileKey(id, file), func(chunk int64) (data []byte, err error) {
		err = t.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
			rows, err := c.query(ctx, "SELECT data FROM notify_queue_files WHERE message = $1 AND file = $2 AND chunk = $3", id, file, chunk)
			if err == nil && len(rows) == 0 {
				err = t.sealer.Damaged(fmt.Sprintf("attachment %d of message %s", file+1, id))
			}
			if err == nil {
				data = rows[0][0]
			}
			return err
		})
		return data, err
	})
}

// deleteFiles removes the attachments of a message. Those that it cannot remove
// are removed when the message is forgotten.
func (t *tables) deleteFiles(ctx context.Context, id uuid.UUID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyTime)
	defer cancel()
	if err := t.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		_, err := c.query(ctx, "DELETE FROM notify_queue_files WHERE message = $1", id)
		return err
	}); err != nil {
		t.log.Warn("removing attachments of the queue", zap.Error(err), zap.Stringer("id", id))
	}
}
