package postgres

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Forget implements [queue.Store]. It does nothing while another gateway forgets.
func (s *Store) Forget(ctx context.Context, before time.Time, maxSize int64) (total int, err error) {
	lost := 0 // dead deliveries and idempotency keys that were forgotten early
	_, err = s.doWork(ctx, work{name: workFinished, step: func(ctx context.Context) (last bool, err error) {
		n, early, err := s.forgetSome(ctx, before, maxSize)
		total += n
		lost += early
		return n == 0, err
	}})
	if lost > 0 {
		s.log.Warn("messages with dead deliveries or idempotency keys were forgotten before their time, because they fill a quarter of "+
			"max_size; raise max_size, or drop what is not needed",
			zap.Int("messages", lost))
	}
	return total, err
}

// forgetSome removes some of the messages that Forget removes, in one transaction. It returns how
// many, and how many of those were dead deliveries or idempotency keys that went early.
func (s *Store) forgetSome(ctx context.Context, before time.Time, maxSize int64) (total, early int, err error) {
	err = s.store(ctx, func(ctx context.Context, c *conn, _ bool) error {
		results, err := c.exec(ctx, call{"SELECT coalesce(sum(kept), 0)::BIGINT FROM notify_queue_counts", nil},
			call{oldest + onlyResults + oldestFirst, []any{forgetAtOnce}}, call{oldest + lasting + oldestFirst, []any{forgetAtOnce}})
		if err != nil {
			return err
		}
		var ids array
		ids, early = forgettable(results[1].Rows, results[2].Rows, before.UnixMicro(), number(results[0].Rows[0][0])-maxSize)
		if total = 0; len(ids.items) == 0 {
			return nil
		}
		// A message that is retried at the same time waits again, and is not
		// removed.
		results, err = c.exec(ctx, begin, call{forget, []any{ids}})
		if err != nil {
			return err
		}
		rows := results[1].Rows
		var n counts
		for _, row := range rows {
			n.add(counts{kept: -number(row[1]), dead: -number(row[2])})
		}
		total = len(rows)
		_, err = c.exec(ctx, append(n.calls(c), commit)...)
		return err
	})
	return total, early, err
}

// forgetAtOnce is the number of messages of each kind that one transaction
// removes.
const forgetAtOnce = 500

// forgettable returns which of the oldest messages to forget: those that finished before a time,
// then as many results as are over the limit, and then others. early is the number of those others.
func forgettable(results, others [][][]byte, before, over int64) (ids array, early int) {
	isOld := func(row [][]byte) bool { return number(row[1]) < before }
	for _, rows := range [][][][]byte{results, others} {
		for _, row := range rows {
			if isOld(row) {
				over -= number(row[2])
				ids.uuid(id(row[0]))
			}
		}
	}
	for i, rows := range [][][][]byte{results, others} {
		for _, row := range rows {
			if over > 0 && !isOld(row) {
				over -= number(row[2])
				ids.uuid(id(row[0]))
				early += i
			}
		}
		if len(rows) == forgetAtOnce {
			break // the next transaction sees more of them
		}
	}
	return ids, early
}

const (
	oldest      = "SELECT id, finished, kept FROM notify_queue_messages WHERE "
	oldestFirst = " ORDER BY finished LIMIT $1"

	forget = `WITH m AS (DELETE FROM notify_queue_messages WHERE id = ANY ($1::UUID[]) AND finished IS NOT NULL RETURNING id, kept, dead),
		j AS (DELETE FROM notify_queue_jobs WHERE message IN (SELECT id FROM m)),
		f AS (DELETE FROM notify_queue_files WHERE message IN (SELECT id FROM m))
	SELECT id, kept, dead FROM m`
)

// Stats implements [queue.Store]. The jobs that are being sent are few, so that
// they are counted.
func (s *Store) Stats(ctx context.Context) (st queue.Stats, err error) {
	err = s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		rows, err := c.query(ctx, `SELECT coalesce(sum(waiting), 0)::BIGINT, coalesce(sum(dead), 0)::BIGINT, coalesce(sum(bytes + record_bytes),
			0)::BIGINT,
			(SELECT count(*) FROM notify_queue_jobs WHERE status = 2),
			coalesce((SELECT min(created) FROM notify_queue_messages WHERE finished IS NULL), 0),
			coalesce(sum(record_bytes), 0)::BIGINT FROM notify_queue_counts`)
		if err != nil {
			return err
		}
		row := rows[0]
		st = queue.Stats{Dead: int(number(row[1])), Bytes: number(row[2]), Sending: int(number(row[3])), Records: number(row[5])}
		st.Queued = int(number(row[0])) - st.Sending
		if t := number(row[4]); t != 0 {
			st.Oldest = time.UnixMicro(t)
		}
		return nil
	})
	if err == nil {
		s.size.set(st.Bytes)
	}
	return st, err
}
