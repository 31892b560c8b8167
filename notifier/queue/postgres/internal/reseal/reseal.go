// Package reseal seals what the tables of the queue hold under the present secret.
package reseal

import (
	"bytes"
	"context"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
)

// Reseal goes once through the tables.
type Reseal struct {
	Sealer  *seal.Sealer
	Query   func(ctx context.Context, sql string, args ...any) ([][][]byte, error)
	Number  func(value []byte) int64
	Began   bool // a step was made
	Changed int  // how many rows were sealed again

	table int
	after []any // the key of the last row that was read; nil for none
}

// table is a column with sealed records.
type table struct {
	first, next string // select the key and the column of the first rows, and of those after a key
	update      string // sets the column, $1, of the row that still has its old content, $2
	place       string
	id          func(r *Reseal, row [][]byte) []byte
}

func whole(_ *Reseal, row [][]byte) []byte { return row[0] }

// tables are all columns with sealed records. Few rows are read at once, because some are large.
var tables = []table{{
	first:  `SELECT id, head FROM notify_queue_messages ORDER BY id LIMIT 200`,
	next:   `SELECT id, head FROM notify_queue_messages WHERE id > $1 ORDER BY id LIMIT 200`,
	update: `UPDATE notify_queue_messages SET head = $1 WHERE head = $2 AND id = $3`,
	place:  record.Heads, id: whole,
}, {
	first:  `SELECT id, body FROM notify_queue_messages WHERE body IS NOT NULL ORDER BY id LIMIT 10`,
	next:   `SELECT id, body FROM notify_queue_messages WHERE body IS NOT NULL AND id > $1 ORDER BY id LIMIT 10`,
	update: `UPDATE notify_queue_messages SET body = $1 WHERE body = $2 AND id = $3`,
	place:  record.Bodies, id: whole,
}, {
	first:  `SELECT message, record, idx FROM notify_queue_jobs ORDER BY message, idx LIMIT 200`,
	next:   `SELECT message, record, idx FROM notify_queue_jobs WHERE (message, idx) > ($1, $2) ORDER BY message, idx LIMIT 200`,
	update: `UPDATE notify_queue_jobs SET record = $1 WHERE record = $2 AND message = $3 AND idx = $4`,
	place:  record.Jobs, id: func(r *Reseal, row [][]byte) []byte {
		return record.JobKey(queue.JobID{Message: uuid.UUID(row[0]), Index: int(r.Number(row[2]))})
	},
}, {
	first:  `SELECT name, data FROM notify_queue_records ORDER BY name LIMIT 200`,
	next:   `SELECT name, data FROM notify_queue_records WHERE name > $1 ORDER BY name LIMIT 200`,
	update: `UPDATE notify_queue_records SET data = $1 WHERE data = $2 AND name = $3`,
	place:  record.Records, id: whole,
}, {
	first:  `SELECT hash, record FROM notify_queue_destinations ORDER BY hash LIMIT 200`,
	next:   `SELECT hash, record FROM notify_queue_destinations WHERE hash > $1 ORDER BY hash LIMIT 200`,
	update: `UPDATE notify_queue_destinations SET record = $1 WHERE record = $2 AND hash = $3`,
	place:  "destinations", id: whole,
}}

// Step seals some rows again, and reports whether they were the last. An attachment is sealed again
// when the head of its message is read.
func (r *Reseal) Step(ctx context.Context) (last bool, err error) {
	r.Began = true
	t := &tables[r.table]
	sql := t.next
	if r.after == nil {
		sql = t.first
	}
	rows, err := r.Query(ctx, sql, r.after...)
	if err != nil {
		return false, err
	}
	for _, row := range rows {
		key := []any{bytes.Clone(row[0])}
		if t.place != record.Records && t.place != "destinations" {
			key[0] = uuid.UUID(row[0])
		}
		if len(row) > 2 {
			key = append(key, r.Number(row[2]))
		}
		r.after = key
		if t.place == record.Heads {
			if err := r.files(ctx, uuid.UUID(row[0]), row[1]); err != nil {
				return false, err
			}
		}
		renewed := r.Sealer.Renew(row[1], t.place, t.id(r, row))
		if renewed == nil {
			continue
		}
		if _, err := r.Query(ctx, t.update, append([]any{renewed, row[1]}, key...)...); err != nil {
			return false, err
		}
		r.Changed++
	}
	if len(rows) > 0 {
		return false, nil
	}
	r.table, r.after = r.table+1, nil
	return r.table == len(tables), nil
}

// files seals the attachments of a message again, if there are any.
func (r *Reseal) files(ctx context.Context, id uuid.UUID, head []byte) error {
	plain, err := r.Sealer.Open(head, record.Heads, id[:])
	if err != nil {
		return nil // it is damaged
	}
	m, err := record.DecodeMessage(id, plain)
	if err != nil {
		return nil // as before
	}
	for i, size := range m.Files {
		for chunk := range seal.Chunks(size) {
			rows, err := r.Query(ctx, "SELECT data FROM notify_queue_files WHERE message = $1 AND file = $2 AND chunk = $3", id, i, chunk)
			if err != nil {
				return err
			}
			if len(rows) == 0 {
				break // the message has ended
			}
			renewed := r.Sealer.RenewChunk(rows[0][0], size, record.FileKey(id, i), chunk)
			if renewed == nil {
				continue
			}
			if _, err := r.Query(ctx, "UPDATE notify_queue_files SET data = $4 WHERE message = $1 AND file = $2 AND chunk = $3",
				id, i, chunk, renewed); err != nil {
				return err
			}
			r.Changed++
		}
	}
	return nil
}
