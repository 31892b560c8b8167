package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
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

// errLater is returned for an update that needs the status of a job that another update of the
// transaction stores or changes. It is decided in the next transaction.
var errLater = errors.New("the update belongs into the next transaction")

// deciding is updates that are decided in one transaction, one after the other.
type deciding struct {
	sealer  *record.Sealer
	records map[queue.Hash]*lockedRecord
	status  map[queue.JobID]queue.Status // of locked jobs
	missing []queue.JobID                // to lock, so that updates can be decided
	changes []queue.JobChange
	owned   []ownedRecord
	touched map[queue.JobID]bool // jobs that the transaction stores or changes
}

// lockedRecord is a record that nobody else can change.
type lockedRecord struct {
	data    []byte // after the updates so far; nil for a missing or damaged one
	sealed  []byte // if it has changed
	stored  int64  // its counted size before the transaction
	size    int64  // and now
	changed bool
	queue.Record
}

// ownedRecord is an owned record that is added or, without content, removed.
type ownedRecord struct {
	queue.OwnedRecord
	sealed []byte
}

// decided is an update with what the transaction stores beside its changes.
type decided struct {
	*queue.Update // nil for none
	jobs          []queue.JobID
	claimed       queue.JobID // without which the update is left out; zero for none
}

// decide locks the records of updates, and decides them. It begins a transaction, unless there is
// one. It returns an error for each update that the transaction leaves out. All that they have to
// read before they can be decided is read together.
func (t *tables) decide(ctx context.Context, c *conn, updates ...decided) (*decision, []error, error) {
	v := &deciding{
		sealer: t.sealer, records: map[queue.Hash]*lockedRecord{}, status: map[queue.JobID]queue.Status{},
		touched: map[queue.JobID]bool{},
	}
	var claimed []queue.JobID
	for i := range updates {
		u := &updates[i]
		if u.Update == nil {
			u.Update = &queue.Update{Decide: func(*queue.Tx) error { return nil }}
		}
		for _, name := range u.Names {
			v.records[name] = &lockedRecord{}
		}
		if u.claimed != (queue.JobID{}) {
			claimed = append(claimed, u.claimed)
		}
	}
	held, err := t.lock(ctx, c, v.records, claimed)
	if err != nil {
		return nil, nil, err
	}
	errs := make([]error, len(updates))
	var todo []int
	for i := range updates {
		if id := updates[i].claimed; id != (queue.JobID{}) && !held[id] {
			errs[i] = queue.ErrNotClaimed
		} else {
			todo = append(todo, i)
		}
	}
	for {
		todo = slices.DeleteFunc(todo, func(i int) bool {
			n := len(v.missing)
			errs[i] = v.run(updates[i], t.size.fits)
			return len(v.missing) == n
		})
		if len(todo) == 0 {
			break
		}
		if err := v.lockJobs(ctx, c); err != nil {
			return nil, nil, err
		}
	}
	d := new(decision)
	if err := t.changes(ctx, c, v.changes, d); err != nil {
		return nil, nil, err
	}
	d.records(v.records)
	d.owned(c.counter, v.owned)
	return d, errs, nil
}

// decideOne is decide for one update.
func (t *tables) decideOne(ctx context.Context, c *conn, u *queue.Update) (*decision, error) {
	d, errs, err := t.decide(ctx, c, decided{Update: u})
	if err == nil {
		err = errs[0]
	}
	return d, err
}

// run decides an update. If it needs jobs that are not locked, it adds them to v.missing, and is
// decided again.
func (v *deciding) run(u decided, fits func(size, maxSize int64) bool) error {
	old := make([][]byte, len(u.Names))
	for i, name := range u.Names {
		old[i] = v.records[name].data
	}
	var asked error
	tx, err := u.Run(old, func(ids []queue.JobID) ([]queue.Status, error) {
		statuses := make([]queue.Status, len(ids))
		for i, id := range ids {
			status, ok := v.status[id]
			switch {
			case v.touched[id]:
				asked = errLater
			case !ok:
				v.missing = append(v.missing, id)
				asked = cmp.Or(asked, errMissing)
			}
			statuses[i] = status
		}
		if asked != nil {
			return nil, asked
		}
		return statuses, nil
	})
	switch {
	case asked != nil:
		return asked
	case err != nil:
		return refusef("%w", err)
	}
	changed := make([]lockedRecord, len(u.Names))
	grown := int64(0)
	for i, name := range u.Names {
		old := v.records[name]
		changed[i] = *old
		if r, ok := tx.Changed(i); ok {
			n := &changed[i]
			if n.Record, n.data, n.sealed, n.changed = r, r.Data, nil, true; len(r.Data) > 0 {
				n.sealed = v.sealer.Seal(r.Data, record.Records, name[:])
			}
			n.size = record.UpdateSize(n.sealed)
			grown += n.size - old.size
		}
	}
	var owned []ownedRecord
	for _, r := range tx.Owned() {
		o := ownedRecord{OwnedRecord: r}
		if len(r.Data) > 0 {
			o.sealed = v.sealer.Seal(r.Data, record.Records, r.Name[:])
		}
		grown += record.UpdateSize(o.sealed)
		owned = append(owned, o)
	}
	if u.MaxSize > 0 && grown > 0 && !fits(grown, u.MaxSize) {
		return queue.ErrFull
	}
	for i, name := range u.Names {
		*v.records[name] = changed[i]
	}
	v.owned, v.changes = append(v.owned, owned...), append(v.changes, tx.Jobs()...)
	for _, change := range tx.Jobs() {
		v.touched[change.ID] = true
	}
	for _, id := range u.jobs {
		v.touched[id] = true
	}
	return nil
}

// errMissing is returned to an update that is decided again when its jobs are locked.
var errMissing = errors.New("the jobs are not locked yet")

// lock locks records, and reads them. Then it locks claimed jobs, and returns those that this handle
// has claimed.
func (t *tables) lock(ctx context.Context, c *conn, records map[queue.Hash]*lockedRecord, claimed []queue.JobID) (
	held map[queue.JobID]bool, err error,
) {
	// All transactions lock records in the same order.
	var sorted array
	for _, name := range slices.SortedFunc(maps.Keys(records), func(a, b queue.Hash) int { return bytes.Compare(a[:], b[:]) }) {
		sorted.bytes(slices.Clone(name[:]))
	}
	var lock []call
	if len(records) > 0 {
		lock = []call{{addRecords, []any{sorted}}, {lockRecords, []any{sorted}}}
	}
	if len(claimed) > 0 {
		lock = append(lock, call{lockClaimed, append(jobArrays(claimed), t.owner)})
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
			return nil, err
		}
		if len(claimed) > 0 {
			held = map[queue.JobID]bool{}
			for _, row := range results[len(results)-1].Rows {
				held[queue.JobID{Message: id(row[0]), Index: int(number(row[1]))}] = true
			}
			results = results[:len(results)-1]
		}
		if len(records) == 0 {
			break
		}
		if rows = results[len(results)-1].Rows; len(rows) >= len(records) {
			break
		}
	}
	for _, row := range rows {
		if name := queue.Hash(row[0]); len(row[1]) > 0 {
			// A damaged one counts as missing.
			r := records[name]
			if r.data, err = t.openRecord(ctx, c, row[1], name); err != nil {
				return nil, err
			}
			r.stored = record.UpdateSize(row[1])
			r.size = r.stored
		}
	}
	return held, nil
}

// records adds the calls that change locked records. It removes the rows that were added to lock
// missing records.
func (d *decision) records(records map[queue.Hash]*lockedRecord) {
	var name, due, grp, data, removed array
	grp.oid = oidBytea
	for n, r := range records {
		switch {
		case r.changed && len(r.sealed) > 0:
			name.bytes(slices.Clone(n[:]))
			due.bigint(r.Due.UnixMicro())
			g, _ := group(r.Group).([]byte)
			grp.bytes(g)
			data.bytes(r.sealed)
			d.counts.records += 1 - min(r.stored, 1)
		case r.changed || r.stored == 0:
			removed.bytes(slices.Clone(n[:]))
			d.counts.records -= min(r.stored, 1)
		}
		d.counts.recordBytes += r.size - r.stored
	}
	if len(name.items) > 0 {
		d.calls = append(d.calls, call{changeRecords, []any{name, due, grp, data}})
	}
	if len(removed.items) > 0 {
		d.calls = append(d.calls, call{removeRecords, []any{removed}})
	}
}

// owned adds the calls that change owned records.
func (d *decision) owned(counter int, owned []ownedRecord) {
	for _, r := range owned {
		if len(r.sealed) == 0 {
			d.calls = append(d.calls, call{removeOwned, []any{counter, r.Name[:], record.UpdateOverhead}})
			continue
		}
		d.calls = append(d.calls, call{addOwned, []any{r.Name[:], r.Due.UnixMicro(), group(r.Group), r.sealed}})
		d.counts.recordBytes += record.UpdateSize(r.sealed)
		d.counts.records++
	}
}

const (
	addRecords = `INSERT INTO notify_queue_records (name, due, data) SELECT n, 0, '' FROM unnest($1::BYTEA[]) AS u (n) ON CONFLICT ` +
		`(name) DO NOTHING`
	lockClaimed = `SELECT j.message, j.idx FROM notify_queue_jobs j JOIN unnest($1::UUID[], $2::BIGINT[]) AS k (message, idx)
		ON j.message = k.message AND j.idx = k.idx WHERE j.status = 2 AND j.owner = $3 ORDER BY j.message, j.idx FOR UPDATE OF j`
	lockRecords   = `SELECT name, data FROM notify_queue_records WHERE name = ANY ($1::BYTEA[]) ORDER BY name FOR UPDATE`
	changeRecords = `UPDATE notify_queue_records r SET due = k.due, grp = k.grp, data = k.data
		FROM unnest($1::BYTEA[], $2::BIGINT[], $3::BYTEA[], $4::BYTEA[]) AS k (name, due, grp, data) WHERE r.name = k.name`
	addOwned      = `INSERT INTO notify_queue_records (name, due, grp, data) VALUES ($1, $2, $3, $4)`
	removeRecords = `DELETE FROM notify_queue_records WHERE name = ANY ($1::BYTEA[])`

	// removeOwned removes a record that this transaction has not read, and counts it. Nobody else
	// changes the record, so nothing waits between this and the end of the transaction.
	removeOwned = `WITH gone AS (DELETE FROM notify_queue_records WHERE name = $2 RETURNING length(data) AS size)
		UPDATE notify_queue_counts SET records = records - 1, record_bytes = record_bytes - (SELECT size + $3::BIGINT FROM gone) WHERE shard = $1
			AND EXISTS (SELECT 1 FROM gone)`
)

// lockJobs reads the statuses of the missing jobs. Nobody else can change them until the transaction ends.
func (v *deciding) lockJobs(ctx context.Context, c *conn) error {
	rows, err := c.query(ctx, `SELECT j.message, j.idx, j.status FROM notify_queue_jobs j
		WHERE (j.message, j.idx) IN (SELECT m, i FROM unnest($1::UUID[], $2::BIGINT[]) AS k (m, i)) ORDER BY j.message, j.idx FOR UPDATE`,
		jobArrays(v.missing)...)
	for _, id := range v.missing {
		v.status[id] = 0
	}
	v.missing = nil
	for _, row := range rows {
		v.status[queue.JobID{Message: id(row[0]), Index: int(number(row[1]))}] = queue.Status(number(row[2]))
	}
	return err
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
		finished, kept = now.UnixMicro(), queue.KeptSize(e.size, total, dead)
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
		if d, err = s.decideOne(ctx, c, u); err != nil {
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
		if data, err = s.openRecord(ctx, c, rows[0][0], name); err == nil && data == nil {
			err = s.sealer.Damaged("a record of an incident")
		}
		return err
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
			if r.Data, err = s.openRecord(ctx, c, row[2], r.Name); err != nil { // a damaged one has none
				return err
			}
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
