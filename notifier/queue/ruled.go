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

// Rules over time are the caller's. The queue stores what they decide: it keeps their
// records, holds jobs for them, and lets a job that a rule releases wait for its turn
// among those of its incident.

// Ruled is a change by rules: of records, of jobs that they hold and, as part of an
// [Entry], of its jobs. The names of the records must not be those of destinations.
type Ruled struct {
	Names []Hash

	// Held are jobs that Decide may release.
	Held []Job

	// Adds means that the change adds what is to be kept, so that [Records.Apply] refuses it
	// when the queue or its disk is full, as [Queue.Accept] refuses a message. It has no
	// meaning as part of an entry.
	Adds bool

	// Decide is that of an [Update]. As part of an entry, it may change the jobs of the
	// entry that are Queued or Sending: they can be Held for a rule, or Superseded.
	Decide func(old [][]byte, status StatusFunc) (*RuledChange, error)

	// Size is that of an [Update].
	Size int
}

// RuledChange is the result of [Ruled.Decide].
type RuledChange struct {
	Records []Record      // one for each name
	Owned   []OwnedRecord // of the caller; one of Names owns each of them
	Jobs    []JobChange   // of jobs that rules hold

	// Release are jobs that are held no more, in the order in which they are sent, with
	// their ID, Incident, Destination, NewState and Note. Of an incident, those before the
	// newest state become Superseded. With an entry, they are of the incident and the
	// destination of one of its jobs, which replaces them; otherwise they are some of
	// Held.
	Release []Job

	// Quiet means that the message which [Options.Dead] has returned is not accepted. It
	// has no meaning outside of [Options.Ended].
	Quiet bool
}

// JoinRuled returns a change that makes both changes, of different records. Either may
// be nil.
func JoinRuled(a, b *Ruled) *Ruled {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	n := len(a.Names)
	return &Ruled{
		Names: append(slices.Clip(a.Names), b.Names...), Held: append(slices.Clip(a.Held), b.Held...), Size: a.Size + b.Size,
		Decide: func(old [][]byte, status StatusFunc) (*RuledChange, error) {
			x, err := a.Decide(old[:n], status)
			if err != nil {
				return nil, err
			}
			y, err := b.Decide(old[n:], status)
			if err != nil {
				return nil, err
			}
			return &RuledChange{
				Records: append(slices.Clip(x.Records), y.Records...), Owned: append(slices.Clip(x.Owned), y.Owned...), Jobs: append(slices.Clip(x.Jobs), y.Jobs...), Release: append(slices.Clip(x.Release), y.Release...),
				Quiet: x.Quiet || y.Quiet,
			}, nil
		},
	}
}

// callersRecord begins the content of a record of the caller. No record of the queue
// begins with it.
const callersRecord = 0

// dueSize is the size of the time after callersRecord. It is that at which the record is
// due: stores write only what has changed, and a later time alone is a change, too.
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

// decide calls Decide of u, which may be nil, with its records.
func (u *Ruled) decide(old [][]byte, status StatusFunc) (*RuledChange, error) {
	if u == nil {
		return new(RuledChange), nil
	}
	own := make([][]byte, len(old))
	for i, b := range old {
		own[i] = callers(b)
	}
	c, err := u.Decide(own, status)
	if err != nil {
		return nil, err
	}
	out := *c
	out.Records = make([]Record, len(c.Records))
	for i, r := range c.Records {
		out.Records[i] = r.asCallers()
	}
	out.Owned = make([]OwnedRecord, len(c.Owned))
	for i, r := range c.Owned {
		out.Owned[i] = OwnedRecord{r.Name, r.asCallers()}
	}
	return &out, nil
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

// unhold changes a job that a rule holds no more. l is its line after arrange, or nil
// without an incident.
func (q *order) unhold(id JobID, l *line, a arranged, now time.Time) JobChange {
	return JobChange{id, func(j *Job) {
		j.Rule, j.Updated, j.Expires = "", now, now.Add(q.options.Load().MaxAge)
		by, superseded := a.superseded[id]
		switch {
		case superseded:
			j.supersede(by, now)
		case l == nil || a.released == id:
			j.release(now)
		}
	}}
}

// Records are the records of the caller.
type Records struct{ *order }

// Apply makes a change by rules.
func (q *Records) Apply(ctx context.Context, u *Ruled) error {
	now := q.Now()
	names := slices.Clone(u.Names)
	lineOf := map[JobID]int{}
	for i := range u.Held {
		j := &u.Held[i]
		if j.Incident != "" {
			lineOf[j.JobID] = indexOrAdd(&names, q.lineName(j))
		}
	}
	n := len(u.Names)
	var maxSize int64
	if u.Adds {
		maxSize = q.options.Load().MaxSize
	}
	err := q.store.Update(ctx, &Update{
		Names: names, MaxSize: maxSize, Size: u.Size,
		Decide: func(old [][]byte, status StatusFunc) (*Change, error) {
			d, err := u.decide(old[:n], status)
			if err != nil {
				return nil, err
			}
			lines, err := q.readLines(old[n:], status)
			if err != nil {
				return nil, err
			}
			c := &Change{Jobs: d.Jobs, Owned: d.Owned}
			released := map[JobID]bool{}
			for i := range d.Release {
				j := &d.Release[i]
				released[j.JobID] = true
				if at, ok := lineOf[j.JobID]; ok {
					lines[at-n].joinLine(j)
				} else {
					c.Jobs = append(c.Jobs, q.unhold(j.JobID, nil, arranged{}, now))
				}
			}
			arrangedLines := make([]arranged, len(lines))
			for i, l := range lines {
				arrangedLines[i] = l.arrange()
				c.Jobs = append(c.Jobs, arrangedLines[i].changes(now, func(id JobID) bool { return released[id] })...)
			}
			for i := range d.Release {
				id := d.Release[i].JobID
				if at, ok := lineOf[id]; ok {
					c.Jobs = append(c.Jobs, q.unhold(id, lines[at-n], arrangedLines[at-n], now))
				}
			}
			c.Records = append(d.Records, q.records(lines, now)...)
			return c, nil
		},
	})
	q.signal()
	return err
}

// indexOrAdd returns the index of a name, which it adds if it is new.
func indexOrAdd(names *[]Hash, name Hash) int {
	for i, n := range *names {
		if n == name {
			return i
		}
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

// Group returns at most n of the caller's records of a group, in the order of
// their names, after the one with the name after. If they are fewer, no more follow.
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

// tidyCallers reports whether a record is one of the caller, which may remove it because
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

// releaseHeld makes a job due that a rule holds, and returns how many it was. The record
// of the rule names a job then that is not held.
func (q *Records) releaseHeld(ctx context.Context, j *Job) (n int, err error) {
	err = q.Apply(ctx, &Ruled{Held: []Job{*j}, Decide: func(_ [][]byte, status StatusFunc) (*RuledChange, error) {
		statuses, err := status([]JobID{j.JobID})
		if err != nil {
			return nil, err
		}
		n = 0
		c := new(RuledChange)
		if statuses[0] == Held {
			n, c.Release = 1, []Job{*j}
		}
		return c, nil
	}})
	return n, err
}

// heldByRule reports whether a rule holds the job.
func (j *Job) heldByRule() bool { return j.Status == Held && j.Rule != "" }
