package queue

import (
	"errors"
	"math"
	"sync"
	"time"

	"go.uber.org/zap"
)

// The bounds of the work that is due in records.
const (
	dueEvery   = time.Second
	dueRarely  = 30              // times dueEvery, if nothing has to be punctual
	dueAtOnce  = 1000            // records that are read at once
	duePages   = 20              // such reads after each dueEvery
	dueOverlap = 2 * time.Second // by which reads overlap: a record can be stored some time after it is due
	dueWorkers = 8
	maxOfTurn  = 2 * dueAtOnce  // records of one turn that are remembered
	maxDue     = 50 * dueAtOnce // records of all turns that are remembered
	maxFailing = time.Minute    // until a failed record is tried again
	restOfLine = time.Minute    // until the record of an incident with waiting jobs is looked at again
)

// ErrUnknown is returned by [Options.Due] for a record that this version of the program does
// not know. It stays as it is.
var ErrUnknown = errors.New("another version of the program has stored this record")

// dueWork does the work that is due in records. Records are read in the order in which they are
// due, and take turns: the work on one record of each turn is done at a time, in that order, so
// that a turn with very many records delays no other. Records that were read are remembered until
// their work is done.
type dueWork struct {
	*order

	// Used only by the goroutine that looks for work.
	swept  DuePlace  // where the search through all that is due goes on; zero for the beginning
	newest time.Time // records that are due later were not read yet
	later  *DuePlace // how far lookLater has come; nil for done

	mu      sync.Mutex
	turns   map[string]*dueTurn
	ready   []*dueTurn // in this order; they have records, and none of them is worked on
	known   map[Hash]struct{}
	resting map[Hash]restingRecord
	workers int
}

// dueTurn has the records of one turn, in the order in which they are due.
type dueTurn struct {
	name    string
	waiting []Hash
	working bool
}

// restingRecord is a record that is left alone for a time, because its work has failed or there is
// nothing to do yet.
type restingRecord struct {
	wait  time.Duration
	until time.Time
}

// over reports whether the time is over. A clock that was set back ends it.
func (r restingRecord) over(now time.Time) bool {
	return !now.Before(r.until) || now.Before(r.until.Add(-r.wait))
}

func newDueWork(o *order) *dueWork {
	return &dueWork{order: o, turns: map[string]*dueTurn{}, known: map[Hash]struct{}{}, resting: map[Hash]restingRecord{}}
}

// workDue calls Due for the records that are due, and Recheck when held jobs have to be checked. It
// does both at the start, too.
func (w *dueWork) workDue() {
	work := func(n int) {
		o := w.options.Load()
		if w.recheck.Swap(false) {
			if o.Due != nil {
				w.arm(o)
				w.recheckHeld(o)
			}
		} else if (o.Punctual == nil || !o.Punctual()) && n%dueRarely != 0 && w.later == nil && !w.changed.Load() {
			return
		}
		w.check(w.look(w.Now()))
	}
	w.changed.Store(true)
	work(0)
	w.every(dueEvery, work)
}

// look reads due records, and begins to work on them. Mostly that is one page. While very many are
// due, each look reads the next page of them and, so that they need not wait, the records that have
// become due since the last look.
func (w *dueWork) look(now time.Time) error {
	if err := w.lookLater(now); err != nil {
		return err
	}
	fromBeginning := w.swept == DuePlace{}
	last, more, err := w.read(now, w.swept)
	if err != nil {
		return err
	}
	if w.swept = last; !more {
		w.swept = DuePlace{}
	}
	if fromBeginning && !more {
		w.newest = now
		return nil
	}
	if now.Before(w.newest) {
		w.newest = now // the clock was set back
	}
	from := DuePlace{Due: w.newest.Add(-dueOverlap)}
	for range duePages {
		if from, more, err = w.read(now, from); err != nil {
			return err
		}
		if w.newest = from.Due; !more {
			w.newest = now
			break
		}
	}
	return nil
}

// lookLater looks, after a change of the clock, for records that are due later because they were
// written when the clock was ahead. It reads some at a time.
func (w *dueWork) lookLater(now time.Time) error {
	if w.changed.Swap(false) {
		w.later = &DuePlace{Due: now}
	}
	for n := 0; w.later != nil && n < duePages; n++ {
		last, more, err := w.readAll(now, *w.later, time.UnixMicro(math.MaxInt64), func(o *Options, r *DueRecord) bool {
			data := callers(r.Data)
			return data != nil && o.Ahead != nil && o.Ahead(data, now)
		})
		if err != nil {
			return err
		}
		if w.later = &last; !more {
			w.later = nil
		}
	}
	return nil
}

// read reads the records after a place that are due, and returns the place of the last one. It
// reports whether more follow.
func (w *dueWork) read(now time.Time, after DuePlace) (last DuePlace, more bool, err error) {
	return w.readAll(now, after, now, func(*Options, *DueRecord) bool { return true })
}

// readAll is read for the matching records that are due until a time.
func (w *dueWork) readAll(
	now time.Time, after DuePlace, until time.Time, match func(*Options, *DueRecord) bool,
) (last DuePlace, more bool, err error) {
	records, more, err := w.store.DueRecords(w.ctx, until, after, dueAtOnce)
	if err != nil || len(records) == 0 {
		return after, false, err
	}
	o := w.options.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range records {
		if match(o, &records[i]) {
			w.add(o, &records[i], now)
		}
	}
	for range min(dueWorkers-w.workers, len(w.ready)) {
		w.workers++
		w.loops.Go(w.work)
	}
	return records[len(records)-1].DuePlace, more, nil
}

// add adds a record that is due to its turn. The caller holds w.mu.
func (w *dueWork) add(o *Options, r *DueRecord, now time.Time) {
	if rest, ok := w.resting[r.Name]; ok && !rest.over(now) {
		return
	}
	if _, ok := w.known[r.Name]; ok || len(w.known) >= maxDue {
		return
	}
	var name string
	if data := callers(r.Data); data != nil {
		if o.Due == nil {
			return
		}
		if o.Turn != nil {
			var known bool
			if name, known = o.Turn(r.Name, data); !known {
				return
			}
		}
		name = "caller's " + name
	}
	t := w.turns[name]
	if t == nil {
		t = &dueTurn{name: name}
		w.turns[name] = t
	}
	if len(t.waiting) >= maxOfTurn {
		return // a later look finds it
	}
	w.known[r.Name] = struct{}{}
	if t.waiting = append(t.waiting, r.Name); len(t.waiting) == 1 && !t.working {
		w.ready = append(w.ready, t)
	}
}

// work works on records until none is ready.
func (w *dueWork) work() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.ready) > 0 && !w.closing() {
		t := w.ready[0]
		w.ready[0] = nil
		w.ready = w.ready[1:]
		name := t.waiting[0]
		t.waiting, t.working = t.waiting[1:], true
		w.mu.Unlock()
		rest, failed := w.do(name)
		w.mu.Lock()
		t.working = false
		if len(t.waiting) > 0 {
			w.ready = append(w.ready, t)
		} else {
			delete(w.turns, t.name)
		}
		delete(w.known, name)
		w.rest(name, rest, failed)
	}
	w.workers--
}

// rest leaves a record alone for a time; 0 for not at all. The time is longer if the record has
// failed before, too. The caller holds w.mu.
func (w *dueWork) rest(name Hash, rest time.Duration, failed bool) {
	if rest == 0 {
		delete(w.resting, name)
		return
	}
	if failed {
		rest = min(max(2*w.resting[name].wait, rest), maxFailing)
	}
	if len(w.resting) >= maxDue {
		clear(w.resting)
	}
	w.resting[name] = restingRecord{rest, w.Now().Add(rest)}
}

// do does the work that is due in a record. It returns how long to leave the record alone.
func (w *dueWork) do(name Hash) (rest time.Duration, failed bool) {
	o := w.options.Load()
	b, err := w.store.Record(w.ctx, name)
	if _, damaged := errors.AsType[*DamagedError](err); damaged || err == nil && b != nil && callers(b) == nil {
		if _, err := decodeLine(b); err == nil { // otherwise another version has stored it
			w.tidyRecord(name, w.Now())
		}
		return restOfLine, false
	}
	if err == nil && (b == nil || o.Due == nil || !o.isDue(b, w.Now())) {
		return 0, false // it was done meanwhile
	}
	if err == nil {
		err = o.Due(w.ctx, name, callers(b), false)
	}
	switch {
	case err == nil:
		return 0, false
	case errors.Is(err, ErrUnknown):
		return maxFailing, false
	}
	w.checkDue(err)
	return dueEvery, true
}

// isDue reports whether a record of the caller is due.
func (o *Options) isDue(b []byte, now time.Time) bool {
	return !callersDue(b).After(now) || o.Ahead != nil && o.Ahead(callers(b), now)
}

// checkDue logs an error of work that was due, as a failure of the store if it is one.
func (q *core) checkDue(err error) {
	_, unavailable := errors.AsType[*UnavailableError](err)
	if unavailable || errors.Is(err, ErrFull) {
		q.check(err)
		return
	}
	now, last := q.Now().Unix(), q.loggedDue.Load()
	if q.ctx.Err() == nil && now-last >= 60 && q.loggedDue.CompareAndSwap(last, now) {
		q.options.Load().Logger.Warn("what is due at this time cannot be done now; it is tried again", zap.Error(err))
	}
}
