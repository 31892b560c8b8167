package queue

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
)

// The caller has rules over time. The queue stores their decisions: it keeps their records, holds
// jobs for them, and lets a job that a rule releases wait for its turn in its incident.

// Ruled is a change by rules. It changes records, jobs that rules hold and, as part of an [Entry],
// the jobs of the entry. It must not name the records of lines, which belong to the queue.
type Ruled struct {
	Names []Hash

	// Held are jobs that Decide may release.
	Held []Job

	// Adds means that the change adds data, so that [Records.Apply] refuses it when the queue or
	// its disk is full, as [Queue.Accept] refuses a message. It has no meaning as part of an entry.
	Adds bool

	// Decide reads the records and changes them, as in [Update]. As part of an entry,
	// it may change the jobs of the entry that are Queued or Sending: they can be Held for a
	// rule, or Superseded.
	Decide func(tx *Tx) error

	// Size is as in [Update].
	Size int
}

// JoinRuled returns a change that makes both changes, one after the other. Either may be nil.
func JoinRuled(a, b *Ruled) *Ruled {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return &Ruled{
		Names: joinNames(a.Names, b.Names), Held: append(slices.Clip(a.Held), b.Held...), Size: a.Size + b.Size,
		Decide: func(tx *Tx) error {
			if err := a.Decide(tx); err != nil {
				return err
			}
			return b.Decide(tx)
		},
	}
}

// joinNames returns all names, each once.
func joinNames(a, b []Hash) []Hash {
	all := slices.Clip(a)
	for _, name := range b {
		if !slices.Contains(a, name) {
			all = append(all, name)
		}
	}
	return all
}

// callersRecord begins the content of a record of the caller. No record of the queue
// begins with it.
const callersRecord = 0

// dueSize is the size of the due time after callersRecord. The content includes the time because
// stores write only changed contents, and a new time alone is a change, too.
const dueSize = 8

// callers returns the content of a record of the caller, or nil.
func callers(b []byte) []byte {
	if len(b) < 1+dueSize || b[0] != callersRecord {
		return nil
	}
	return b[1+dueSize:]
}

// callersDue returns when a record of the caller is due.
func callersDue(b []byte) time.Time {
	return time.UnixMicro(int64(binary.BigEndian.Uint64(b[1:]))) //nolint:gosec // as asCallers has written it
}

// run calls Decide of u, which may be nil.
func (u *Ruled) run(tx *Tx) error {
	if u == nil {
		return nil
	}
	tx.callers = true
	err := u.Decide(tx)
	tx.callers = false
	return err
}

// asCallers returns a record of the caller as it is stored.
func (r Record) asCallers() Record {
	if len(r.Data) == 0 {
		return Record{}
	}
	b := append(make([]byte, 0, 1+dueSize+len(r.Data)), callersRecord)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Due.UnixMicro())) //nolint:gosec // it is only compared
	return Record{append(b, r.Data...), r.Due, r.Group}
}

// size returns Size of u, which may be nil.
func (u *Ruled) size() int {
	if u == nil {
		return 0
	}
	return u.Size
}

func (u *Ruled) names() []Hash {
	if u == nil {
		return nil
	}
	return u.Names
}

// joinLine adds a released job to the line of its incident.
func (l *line) joinLine(j *Job) {
	if l.find(j.JobID) == nil {
		l.jobs = append(l.jobs, linedJob{j.JobID, j.NewState, j.Note, Held})
	}
}

// unhold changes a job that a rule no longer holds. l is its line after arrange, or nil without an
// incident.
func (q *order) unhold(tx *Tx, id JobID, l *line, a arranged, now time.Time) {
	tx.Change(id, func(j *Job) {
		j.Rule, j.Updated, j.Expires = "", now, now.Add(q.options.Load().MaxAge)
		by, superseded := a.superseded[id]
		switch {
		case superseded:
			j.supersede(by, now)
		case l == nil || a.released == id:
			j.release(now)
		}
	})
}

// Records are the records of the caller.
type Records struct{ *order }

// Apply makes a change by rules.
func (q *Records) Apply(ctx context.Context, u *Ruled) error {
	now := q.Now()
	var lines []Hash
	lineOf := map[JobID]int{}
	for i := range u.Held {
		if j := &u.Held[i]; j.Incident != "" {
			lineOf[j.JobID] = indexOrAdd(&lines, q.lineName(j))
		}
	}
	var maxSize int64
	if u.Adds {
		maxSize = q.options.Load().MaxSize
	}
	err := q.store.Update(ctx, &Update{
		Names: slices.Concat(u.Names, lines), MaxSize: maxSize, Size: u.Size,
		Decide: func(tx *Tx) error {
			if err := u.run(tx); err != nil {
				return err
			}
			return q.releaseIn(tx, lines, lineOf, now)
		},
	})
	q.signal()
	return err
}

// releaseIn changes the jobs that tx releases. names are the names of their lines, and lineOf has
// the index of each job's line; a job without an incident has none.
func (q *order) releaseIn(tx *Tx, names []Hash, lineOf map[JobID]int, now time.Time) error {
	lines, err := q.readLines(tx, names)
	if err != nil {
		return err
	}
	released := map[JobID]bool{}
	for i := range tx.release {
		j := &tx.release[i]
		released[j.JobID] = true
		if at, ok := lineOf[j.JobID]; ok {
			lines[at].joinLine(j)
		} else {
			q.unhold(tx, j.JobID, nil, arranged{}, now)
		}
	}
	arrangedLines := make([]arranged, len(lines))
	for i, l := range lines {
		arrangedLines[i] = l.arrange()
		arrangedLines[i].change(tx, now, func(id JobID) bool { return released[id] })
	}
	for i := range tx.release {
		id := tx.release[i].JobID
		if at, ok := lineOf[id]; ok {
			q.unhold(tx, id, lines[at], arrangedLines[at], now)
		}
	}
	q.putLines(tx, names, lines, now)
	return nil
}

// indexOrAdd returns the index of a name. It adds a new name.
func indexOrAdd(names *[]Hash, name Hash) int {
	if i := slices.Index(*names, name); i >= 0 {
		return i
	}
	*names = append(*names, name)
	return len(*names) - 1
}

// Get returns a record of the caller, or nil if there is none or it is damaged.
func (q *Records) Get(ctx context.Context, name Hash) ([]byte, error) {
	b, err := q.store.Record(ctx, name)
	if _, damaged := errors.AsType[*DamagedError](err); damaged {
		return nil, nil
	}
	return callers(b), err
}

// Group returns at most n records of a caller's group, in the order of their names, after the name
// after. If it returns fewer than n, no more follow.
func (q *Records) Group(ctx context.Context, group, after Hash, n int) ([]NamedRecord, error) {
	records, err := q.store.Group(ctx, group, after, n)
	for i := range records {
		records[i].Data = callers(records[i].Data)
	}
	return records, err
}

// GroupSizes returns how many records each of the caller's groups has.
func (q *Records) GroupSizes(ctx context.Context) (map[Hash]int, error) {
	return q.store.GroupSizes(ctx)
}

// Load returns a message with its text and files, as [Store.Load] does.
func (q *Queue) Load(ctx context.Context, id uuid.UUID) (m *Message, release func(), err error) {
	return q.store.Load(ctx, id)
}

// refresh calls Refresh.
func (w *dueWork) refresh() {
	refresh := func(int) {
		if o := w.options.Load(); o.Refresh != nil {
			o.Refresh(w.ctx)
		}
	}
	refresh(0)
	w.every(dueEvery, refresh)
}

// arm calls Arm, and once more later if it fails.
func (w *dueWork) arm(o *Options) {
	if o.Arm == nil {
		return
	}
	if err := o.Arm(w.ctx); err != nil {
		w.check(err)
		w.recheck.Store(true)
	}
}

// recheckHeld calls Recheck with the jobs that rules hold.
func (w *dueWork) recheckHeld(o *Options) {
	ok := w.eachHeld(func(held []Job) {
		o.Recheck(w.ctx, slices.DeleteFunc(slices.Clone(held), func(j Job) bool { return !j.heldByRule() }))
	})
	if !ok {
		w.recheck.Store(true)
	}
}

// tidyCallers reports whether a record belongs to the caller, and lets the caller remove it because
// there are too many.
func (w *dueWork) tidyCallers(name Hash) bool {
	b, err := w.store.Record(w.ctx, name)
	if err != nil || callers(b) == nil {
		return false
	}
	if o := w.options.Load(); o.Due != nil {
		w.check(o.Due(w.ctx, name, callers(b), true))
	}
	return true
}

// releaseHeld makes a job that a rule holds due, and returns 1, or 0 if the job is not held. The
// record of the rule still names the job.
func (q *Records) releaseHeld(ctx context.Context, j *Job) (n int, err error) {
	err = q.Apply(ctx, &Ruled{Held: []Job{*j}, Decide: func(tx *Tx) error {
		status, err := tx.StatusOf(j.JobID)
		if n = 0; status == Held {
			n = 1
			tx.Release(*j)
		}
		return err
	}})
	return n, err
}

// heldByRule reports whether a rule holds the job.
func (j *Job) heldByRule() bool { return j.Status == Held && j.Rule != "" }
