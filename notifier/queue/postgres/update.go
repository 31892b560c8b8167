package postgres

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
)

// decision is the result of an update's Decide within a transaction.
type decision struct {
	calls  []call // that make the changes
	counts counts // that the transaction adds to, after them
	ended  []ended
}

// ended is a message that waits no more, or waits again, because a decision has
// changed its jobs.
type ended struct {
	id    uuid.UUID
	size  int64 // that no longer waits
	files int64 // size of files that can be removed
}

// decide locks the records of an update, and decides it. It begins a transaction,
// unless there is one.
func (t *tables) decide(ctx context.Context, c *conn, u *queue.Update) (*decision, error) {
	old, sizes, err := t.lock(ctx, c, u.Names)
	if err != nil {
		return nil, err
	}
	var failed error // of the server
	tx, err := u.Run(old, func(ids []queue.JobID) (statuses []queue.Status, err error) {
		statuses, failed = lockJobs(ctx, c, ids)
		return statuses, failed
	})
	switch {
	case failed != nil:
		return nil, failed
	case err != nil:
		return nil, refusef("%w", err)
	}
	d := new(decision)
	if err := t.changes(ctx, c, tx.Jobs(), d); err != nil {
		return nil, err
	}
	d.records(t.sealer, u.Names, tx, sizes)
	d.owned(t.sealer, c.counter, tx.Owned())
	if grown := d.counts.recordBytes; u.MaxSize > 0 && grown > 0 && !t.size.fits(grown, u.MaxSize) {
		return nil, queue.ErrFull
	}
	return d, nil
}

// lock locks records, and returns their contents and sizes. They are nil and 0 for missing
// ones.
func (t *tables) lock(ctx context.Context, c *conn, names []queue.Hash) (old [][]byte, sizes []int64, err error) {
	// All transactions lock records in the same order.
	var sorted array
	for _, name := range slices.SortedFunc(slices.Values(names), func(a, b queue.Hash) int { return bytes.Compare(a[:], b[:]) }) {
		sorted.bytes(slices.Clone(name[:]))
	}
	var lock []call
	if len(names) > 0 {
		lock = []call{{addRecords, []any{sorted}}, {lockRecords, []any{sorted}}}
	}
	calls := lock
	if c.pg.TxStatus() == 'I' {
		calls = append([]call{begin}, lock...)
	}
	// A transaction that ends meanwhile may remove a record for which addRecords did
	// nothing. Then no row is locked for it yet.
	var rows [][][]byte
	for ; len(calls) > 0; calls = lock {
		results, err := c.exec(ctx, calls...)
		if err != nil {
			return nil, nil, err
		}
		if rows = results[len(results)-1].Rows; len(rows) >= len(names) {
			break
		}
	}
	old, sizes = make([][]byte, len(names)), make([]int64, len(names))
	for _, row := range rows {
		name := queue.Hash(row[0])
		if len(row[1]) > 0 {
			// A damaged one counts as missing.
			i := slices.Index(names, name)
			old[i], _ = t.sealer.Open(row[1], record.Records, name[:])
			sizes[i] = record.UpdateSize(row[1])
		}
	}
	return old, sizes, nil
}

// records adds the calls that change records with the names, whose sizes were these. It removes the
// rows that were added to lock the names of missing records.
func (d *decision) records(sealer *record.Sealer, names []queue.Hash, tx *queue.Tx, sizes []int64) {
	for i, name := range names {
		r, ok := tx.Changed(i)
		switch {
		case ok && len(r.Data) > 0:
			sealed := sealer.Seal(r.Data, record.Records, name[:])
			d.calls = append(d.calls, call{changeRecord, []any{name[:], r.Due.UnixMicro(), group(r.Group), sealed}})
			d.counts.recordBytes += record.UpdateSize(sealed) - sizes[i]
			d.counts.records += 1 - min(sizes[i], 1)
		case ok || sizes[i] == 0:
			d.calls = append(d.calls, call{removeRecord, []any{name[:]}})
			d.counts.recordBytes -= sizes[i]
			d.counts.records -= min(sizes[i], 1)
		}
	}
}

// owned adds the calls that change owned records.
func (d *decision) owned(sealer *record.Sealer, counter int, owned []queue.OwnedRecord) {
	for _, r := range owned {
		if len(r.Data) == 0 {
			d.calls = append(d.calls, call{removeOwned, []any{counter, r.Name[:], record.UpdateOverhead}})
			continue
		}
		sealed := sealer.Seal(r.Data, record.Records, r.Name[:])
		d.calls = append(d.calls, call{addOwned, []any{r.Name[:], r.Due.UnixMicro(), group(r.Group), sealed}})
		d.counts.recordBytes += record.UpdateSize(sealed)
		d.counts.records++
	}
}

const (
	addRecords = `INSERT INTO notify_queue_records (name, due, data) SELECT n, 0, '' FROM unnest($1::BYTEA[]) AS u (n) ON CONFLICT ` +
		`(name) DO NOTHING`
	lockRecords  = `SELECT name, data FROM notify_queue_records WHERE name = ANY ($1::BYTEA[]) ORDER BY name FOR UPDATE`
	changeRecord = `UPDATE notify_queue_records SET due = $2, grp = $3, data = $4 WHERE name = $1`
	addOwned     = `INSERT INTO notify_queue_records (name, due, grp, data) VALUES ($1, $2, $3, $4)`
	removeRecord = `DELETE FROM notify_queue_records WHERE name = $1`

	// removeOwned removes a record that this transaction has not read, and counts it. Nobody else
	// changes the record, so nothing waits between this and the end of the transaction.
	removeOwned = `WITH gone AS (DELETE FROM notify_queue_records WHERE name = $2 RETURNING length(data) AS size)
		UPDATE notify_queue_counts SET records = records - 1, record_bytes = record_bytes - (SELECT size + $3::BIGINT FROM gone) WHERE shard = $1
			AND EXISTS (SELECT 1 FROM gone)`
)

// lockJobs returns the statuses of jobs. Nobody else can change them until the transaction ends.
func lockJobs(ctx context.Context, c *conn, ids []queue.JobID) ([]queue.Status, error) {
	rows, err := c.query(ctx, `SELECT j.message, j.idx, j.status FROM notify_queue_jobs j
		WHERE (j.message, j.idx) IN (SELECT m, i FROM unnest($1::UUID[], $2::BIGINT[]) AS k (m, i)) ORDER BY j.message, j.idx FOR UPDATE`,
		jobArrays(ids)...)
	if err != nil {
		return nil, err
	}
	found := make(map[queue.JobID]queue.Status, len(rows))
	for _, row := range rows {
		found[queue.JobID{Message: id(row[0]), Index: int(number(row[1]))}] = queue.Status(number(row[2]))
	}
	statuses := make([]queue.Status, len(ids))
	for i, id := range ids {
		statuses[i] = found[id]
	}
	return statuses, nil
}

func jobArrays(ids []queue.JobID) []any {
	var messages, indexes array
	for _, id := range ids {
		messages.uuid(id.Message)
		indexes.bigint(int64(id.Index))
	}
	return []any{messages, indexes}
}

// changes adds the statements to a decision that change jobs.
func (t *tables) changes(ctx context.Context, c *conn, changes []queue.JobChange, d *decision) error {
	if len(changes) == 0 {
		return nil
	}
	byMessage := map[uuid.UUID]map[int]func(*queue.Job){}
	for _, change := range changes {
		m := change.ID.Message
		if byMessage[m] == nil {
			byMessage[m] = map[int]func(*queue.Job){}
		}
		byMessage[m][change.ID.Index] = change.Apply
	}
	var messages []uuid.UUID
	for m := range byMessage {
		messages = append(messages, m)
	}
	slices.SortFunc(messages, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	var calls []call
	for _, m := range messages {
		var indexes array
		for i := range byMessage[m] {
			indexes.bigint(int64(i))
		}
		calls = append(calls, call{readJobs, []any{m, indexes}}, call{lockMessage, []any{m}})
	}
	results, err := c.exec(ctx, calls...)
	if err != nil {
		return err
	}
	for i, m := range messages {
		jobs, message := results[2*i].Rows, results[2*i+1].Rows
		if len(message) == 0 {
			continue
		}
		// The update tells when it was made.
		calls, n, e, err := t.changeRows(m, jobs, message[0], func(j *queue.Job) { byMessage[m][j.Index](j) })
		if err != nil {
			return err
		}
		d.counts.add(n)
		d.calls, d.ended = append(d.calls, calls...), append(d.ended, e)
	}
	return nil
}

const (
	readJobs    = "SELECT idx, status, record FROM notify_queue_jobs WHERE message = $1 AND idx = ANY ($2::BIGINT[]) ORDER BY idx"
	lockMessage = "SELECT waiting, dead, jobs, size, files, kept FROM notify_queue_messages WHERE id = $1 FOR UPDATE"
)

// changeRows returns the statements that change jobs of a message with f, and their change of the
// counts. f sets Updated. rows are the result of readJobs, and row is the result of lockMessage.
func (t *tables) changeRows(id uuid.UUID, rows [][][]byte, row [][]byte, f func(j *queue.Job)) (calls []call, all counts,
	e ended, err error,
) {
	waiting, dead, total := int(number(row[0])), int(number(row[1])), int(number(row[2]))
	e = ended{id: id, size: number(row[3]), files: number(row[4])}
	before := waiting
	all = counts{waiting: int64(-waiting), dead: int64(-dead), kept: -number(row[5])}
	sealer := t.sealer.Batch()
	var now time.Time
	for _, row := range rows {
		jid := queue.JobID{Message: id, Index: int(number(row[0]))}
		j, err := t.openJob(jid, number(row[1]), row[2])
		if err != nil {
			return nil, all, e, t.sealer.DamagedJob(jid)
		}
		if j.Status == queue.Dead {
			dead--
		} else {
			waiting--
		}
		f(j)
		now = j.Updated
		switch {
		case j.Status.Waits():
			waiting++
		case j.Status == queue.Dead:
			dead++
		}
		calls = append(calls, call{changeJob, []any{
			id, jid.Index, int(j.Status), j.Due.UnixMicro(), micro(j.NotBefore), now.UnixMicro(),
			sealJob(sealer, jid, j), expiresOf(j),
		}})
	}
	var finished any
	var kept int64
	if waiting == 0 {
		finished, kept = now.UnixMicro(), record.KeptSize(e.size, total, dead)
	}
	switch {
	case before > 0 && waiting > 0, before == 0 && waiting == 0:
		e.size = 0
	case waiting > 0:
		e.size = -e.size
	}
	all.waiting += int64(waiting)
	all.dead += int64(dead)
	all.bytes, all.kept = -e.size, all.kept+kept
	if waiting+dead > 0 {
		e.files = 0
	}
	return append(calls, call{changeMessage, []any{id, waiting, dead, finished, kept}}), all, e, nil
}

// done updates this handle after the transaction of a decision.
func (s *Store) done(ctx context.Context, d *decision) {
	if d == nil || len(d.calls) == 0 {
		return
	}
	s.size.add(d.counts.recordBytes)
	for _, e := range d.ended {
		s.size.add(-e.size)
		if e.files > 0 {
			s.deleteFiles(ctx, e.id)
		}
	}
	if len(d.ended) > 0 { // jobs may have been released
		s.lookAgain()
		signal(s.dirty)
	}
}

// Update implements [queue.Store].
func (s *Store) Update(ctx context.Context, u *queue.Update) error {
	if u.MaxSize > 0 {
		if err := s.refreshSize(ctx); err != nil {
			return err
		}
	}
	var d *decision
	err := s.store(ctx, func(ctx context.Context, c *conn, _ bool) (err error) {
		if d, err = s.decide(ctx, c, u); err != nil {
			return err
		}
		_, err = c.exec(ctx, slices.Concat(d.calls, d.counts.calls(c), []call{commit})...)
		return err
	})
	if err == nil {
		s.done(ctx, d)
	}
	return err
}

// recordStore reads records.
type recordStore struct{ *tables }

// Record implements [queue.Store].
func (s recordStore) Record(ctx context.Context, name queue.Hash) (data []byte, err error) {
	err = s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		rows, err := c.query(ctx, "SELECT data FROM notify_queue_records WHERE name = $1", name[:])
		if err != nil || len(rows) == 0 {
			data = nil
			return err
		}
		if data, err = s.sealer.Open(rows[0][0], record.Records, name[:]); err != nil {
			return s.sealer.Damaged("a record of an incident")
		}
		return nil
	})
	return data, err
}

// group returns the value of the column grp.
func group(h queue.Hash) any {
	if h == (queue.Hash{}) {
		return nil
	}
	return h[:]
}

// Group implements [queue.Store].
func (s recordStore) Group(ctx context.Context, group, after queue.Hash, n int) (records []queue.NamedRecord, err error) {
	err = s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		records = nil
		for len(records) < n {
			rows, err := c.query(ctx, "SELECT name, data FROM notify_queue_records WHERE grp = $1 AND name > $2 ORDER BY name LIMIT $3", group[:],
				after[:], n-len(records))
			if err != nil {
				return err
			}
			for _, row := range rows {
				after = queue.Hash(row[0])
				if data, err := s.sealer.Open(row[1], record.Records, after[:]); err == nil { // a damaged one counts as missing
					records = append(records, queue.NamedRecord{Name: after, Data: data})
				}
			}
			if len(rows) == 0 {
				break
			}
		}
		return nil
	})
	return records, err
}

// GroupSizes implements [queue.Store].
func (s recordStore) GroupSizes(ctx context.Context) (sizes map[queue.Hash]int, err error) {
	err = s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		rows, err := c.query(ctx, "SELECT grp, count(*) FROM notify_queue_records WHERE grp IS NOT NULL GROUP BY grp")
		sizes = make(map[queue.Hash]int, len(rows))
		for _, row := range rows {
			sizes[queue.Hash(row[0])] = int(number(row[1]))
		}
		return err
	})
	return sizes, err
}

// dueRecords returns at most a number of records that are due after a place, and ends with the one
// that makes their sizes exceed a bound. total is their number without that bound.
const dueRecords = `SELECT name, due, data, total FROM (
		SELECT name, due, data, sum(length(data)) OVER (ORDER BY due, name) - length(data) AS preceding, count(*) OVER () AS total FROM (
			SELECT name, due, data FROM notify_queue_records
			WHERE due <= $1 AND due >= $2 AND (due > $2 OR name > $3) ORDER BY due, name LIMIT $4) d) r
	WHERE preceding <= $5 ORDER BY due, name`

// DueRecords implements [queue.Store].
func (s recordStore) DueRecords(
	ctx context.Context, now time.Time, after queue.DuePlace, n int,
) (records []queue.DueRecord, more bool, err error) {
	err = s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		rows, err := c.query(ctx, dueRecords, now.UnixMicro(), after.Due.UnixMicro(), after.Name[:], n, queue.MaxDueSize)
		records, more = make([]queue.DueRecord, len(rows)), len(rows) == n
		for i, row := range rows {
			r := &records[i]
			r.Name, r.Due = queue.Hash(row[0]), time.UnixMicro(number(row[1]))
			r.Data, _ = s.sealer.Open(row[2], record.Records, r.Name[:]) // a damaged one has none
			more = more || number(row[3]) > int64(len(rows))
		}
		return err
	})
	return records, more, err
}

// SurplusRecords implements [queue.Store].
func (s recordStore) SurplusRecords(ctx context.Context, keep, n int) (names []queue.Hash, err error) {
	err = s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		rows, err := c.query(ctx, `SELECT name FROM notify_queue_records ORDER BY due, name LIMIT least($2::BIGINT, greatest(
				(SELECT sum(records) FROM notify_queue_counts)::BIGINT - $1::BIGINT, 0))`, keep, n)
		names = nil
		for _, row := range rows {
			names = append(names, queue.Hash(row[0]))
		}
		return err
	})
	return names, err
}
