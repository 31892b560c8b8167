package queue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/seal"
)

// Hash identifies a destination or a host. It is the keyed hash of a text, which
// [Store.Hash] returns, so that it reveals nothing without the store's secret.
type Hash = seal.Hash

// downAfter is the number of failures in a row after which a destination is
// down.
const downAfter = 3

// Health is the state of one destination.
//
// A destination is known if its last attempt succeeded, and down after three
// failures in a row of the kind that may get better. A failure that cannot get
// better, for example a wrong token, changes neither, because the destination
// answers; but the destination is failing until the next success.
type Health struct {
	Destination Hash   // of [Job.Destination]
	Host        string // of [Job.Host]
	Client      bool   // a client decides the destination

	Known       bool      // the last attempt succeeded
	Failures    int       // in a row
	DownSince   time.Time // the first of these failures; zero if the destination is not down
	LastSuccess time.Time // zero if unknown; after a crash, it may be up to 10 minutes too early
	LastError   string    // of the last failure, without secrets; empty after a success
	About       string    // the last [Attempt.About]
	Changed     time.Time // when Known or DownSince last changed, or LastSuccess was last stored

	// FailingSince is the first of the failures in a row, also of a destination that
	// is not down. Stores do not keep it.
	FailingSince time.Time

	// Stores do not keep these; [Destinations.Of] fills them in.
	Waiting      int       // jobs that wait
	WaitingSince time.Time // when the oldest message that waits came in; zero if none waits
}

// Down reports whether the destination is down.
func (h *Health) Down() bool { return !h.DownSince.IsZero() }

// Failing reports whether the last attempt failed, also if it cannot get better.
func (h *Health) Failing() bool { return h.Failures > 0 || h.LastError != "" }

// Attempt is the outcome of one attempt, as far as it tells about the
// destination.
type Attempt struct {
	Destination, Host string // as in [Job]
	Client            bool

	// Status is Delivered, Queued for a failure that may get better, or another
	// status for one that cannot.
	Status Status
	// Error is the reason of a failure, without secrets.
	Error string
	// About is what the caller wants to find in [Health.About], encrypted in the
	// store. If it is empty, About stays as it is.
	About string
	// Began is when the attempt began; zero if unknown.
	Began time.Time
}

// successEvery is the time after which a later success of a destination is
// stored.
const successEvery = 10 * time.Minute

// The bounds of what is remembered of destinations.
const (
	maxClientHealth = 10_000              // destinations of clients, which have failed
	clientHealth    = 2 * MaxRetryAfter   // how long one of them is remembered after its last attempt
	operatorHealth  = 30 * 24 * time.Hour // the same for one of the operator's
)

// health has the states of the destinations.
type health struct {
	changed chan struct{} // receives a value when there is something for take

	mu      sync.Mutex
	all     map[Hash]*destination
	clients int // how many of them are clients'
	unsaved map[Hash]struct{}
	wake    map[Hash]struct{} // have succeeded while jobs may wait for them
	turns   []turned
}

// destination is the compact form of a Health. Times are microseconds since
// 1970; 0 is none.
type destination struct {
	host      string
	lastError string
	about     string
	success   int64 // the last one
	stored    int64 // the last one that is stored, or will be
	failed    int64 // when the last attempt began that has failed in a way that may get better; 0 after a success
	failing   int64 // the first of the failures in a row
	attempt   int64 // the last one
	changed   int64
	failures  int32
	client    bool
	known     bool
	down      bool
	mayWait   bool // jobs may wait for it that are not due
}

// turned is a destination that went down or came back.
type turned struct {
	Health
	up bool
}

func newHealth() *health {
	return &health{
		changed: make(chan struct{}, 1),
		all:     map[Hash]*destination{}, unsaved: map[Hash]struct{}{}, wake: map[Hash]struct{}{},
	}
}

// state is what decides about the slots of a destination.
type state struct {
	known   bool
	untried bool // it has neither succeeded nor failed in a way that may get better
	down    bool
}

// state returns the state of a destination.
func (h *health) state(id Hash) state {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d := h.all[id]; d != nil {
		return state{d.known, !d.known && d.failures == 0, d.down}
	}
	return state{untried: true}
}

// observe records the outcome of an attempt. It returns the state to store if it
// has become known, down or neither, and reports whether jobs are to be woken.
func (h *health) observe(id Hash, a Attempt, now time.Time) (state *Health, wake bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.all[id]
	if d == nil {
		// Of a client's destinations, only those that fail are remembered.
		if a.Client && (a.Status != Queued || h.clients >= maxClientHealth) {
			return nil, false
		}
		d = &destination{client: a.Client, mayWait: true}
		h.add(id, d)
	}
	t := now.UnixMicro()
	d.attempt = t
	if a.Host != "" {
		d.host = a.Host
	}
	if a.About != "" && a.About != d.about {
		d.about = a.About
	}
	known, down, stored := d.known, d.down, d.stored
	switch a.Status {
	case Delivered:
		wake = h.succeeded(id, d, t)
	case Queued:
		h.failed(id, d, a, t)
	default:
		if d.failing == 0 {
			d.failing = t
		}
		d.lastError = a.Error
	}
	if d.down == down && (d.known == known || !d.known) && d.stored == stored {
		return nil, wake // a single failure is not stored
	}
	d.changed = t
	h.unsaved[id] = struct{}{}
	out := d.health(id)
	return &out, wake
}

// succeeded records that a destination has taken a message at t. It reports whether jobs
// are to be woken. The caller holds the lock.
func (h *health) succeeded(id Hash, d *destination, t int64) (wake bool) {
	if d.down && !d.client {
		h.turn(turned{d.health(id), true})
	}
	known := d.known
	d.known, d.down, d.failures, d.failing, d.failed, d.success, d.lastError = true, false, 0, 0, 0, t, ""
	if !known || !d.client && t-d.stored >= successEvery.Microseconds() {
		d.stored = t
	}
	if wake = d.mayWait || !known; wake {
		h.wake[id] = struct{}{}
	}
	return wake
}

// wakeUp lets the store offer jobs of a destination again.
func (h *health) wakeUp(id Hash) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wake[id] = struct{}{}
}

// failed records an attempt that has failed at t in a way that may get better. The caller
// holds the lock.
func (h *health) failed(id Hash, d *destination, a Attempt, t int64) {
	if d.failures == 0 {
		d.failing = t
	}
	d.failures++
	d.failed = max(d.failed, micro(a.Began))
	d.known, d.lastError, d.mayWait = false, a.Error, true
	if d.failures >= downAfter && !d.down {
		d.down = true
		if !d.client {
			h.turn(turned{d.health(id), false})
		}
	}
}

// failure is the last failed attempt of a destination that is down.
type failure struct {
	began  time.Time
	since  time.Time // the first of the failures in a row
	reason string
}

// failure returns the last failed attempt of a destination, or nil if it is not
// down or has not been attempted since the start.
func (h *health) failure(id Hash) *failure {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.all[id]
	if d == nil || !d.down || d.failed == 0 {
		return nil
	}
	return &failure{fromMicro(d.failed), fromMicro(d.failing), d.lastError}
}

// add adds a destination.
func (h *health) add(id Hash, d *destination) {
	h.all[id] = d
	if d.client {
		h.clients++
	}
}

// turn notes that a destination went down or came back.
func (h *health) turn(t turned) {
	h.turns = append(h.turns, t)
	h.signal()
}

func (h *health) signal() {
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// takeTurns returns the destinations that went down or came back since the last
// call.
func (h *health) takeTurns() []turned {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.turns
	h.turns = nil
	return t
}

// waits notes that a job that is not due waits for a destination.
func (h *health) waits(id Hash) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d := h.all[id]; d != nil {
		d.mayWait = true
	}
}

// takeWake returns the destinations to wake. The caller calls waits for each that turns out to have
// more waiting jobs.
func (h *health) takeWake() (ids []Hash) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.wake {
		ids = append(ids, id)
		if d := h.all[id]; d != nil {
			d.mayWait = false
		}
	}
	clear(h.wake)
	return ids
}

// wakeAgain undoes takeWake.
func (h *health) wakeAgain(ids []Hash) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		h.wake[id] = struct{}{}
	}
}

// toSave returns the states that are not stored.
func (h *health) toSave() (all []Health) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.unsaved {
		if d := h.all[id]; d != nil {
			all = append(all, d.health(id))
		} else {
			all = append(all, Health{Destination: id}) // forgotten
		}
	}
	return all
}

// storeSuccesses adds the last successes to the states that are not stored.
func (h *health) storeSuccesses() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, d := range h.all {
		if d.known && !d.client && d.success > d.stored {
			d.stored, d.changed = d.success, d.success
			h.unsaved[id] = struct{}{}
		}
	}
}

// saved notes that states are stored.
func (h *health) saved(all ...Health) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range all {
		id := all[i].Destination
		if d := h.all[id]; d == nil || d.changed <= micro(all[i].Changed) {
			delete(h.unsaved, id)
		}
	}
}

// merge adopts states that an earlier process or another gateway has stored, if they
// have changed later than the states of h. It reports whether there were any.
func (h *health) merge(all []Health) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range all {
		s := &all[i]
		d := h.all[s.Destination]
		if d != nil && d.changed >= micro(s.Changed) {
			continue
		}
		if d == nil {
			d = &destination{client: s.Client}
			h.add(s.Destination, d)
		}
		changed = true
		*d = destination{
			host: s.Host, lastError: s.LastError, about: s.About, success: micro(s.LastSuccess), stored: micro(s.LastSuccess),
			failing: micro(s.DownSince), attempt: micro(s.Changed),
			changed: micro(s.Changed), failures: int32(min(s.Failures, 1<<30)), client: s.Client, known: s.Known, down: s.Down(), mayWait: true,
		}
	}
	return changed
}

// forget removes what has not been attempted for long.
func (h *health) forget(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, d := range h.all {
		keep := operatorHealth
		if d.client {
			keep = clientHealth
		}
		if now.UnixMicro()-d.attempt <= keep.Microseconds() {
			continue
		}
		delete(h.all, id)
		if d.client {
			h.clients--
		}
		if d.changed != 0 {
			h.unsaved[id] = struct{}{}
		}
	}
}

// get returns the states of the given destinations that are remembered, or of
// all if none is given.
func (h *health) get(ids ...Hash) (all []Health) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(ids) == 0 {
		all = make([]Health, 0, len(h.all))
		for id, d := range h.all {
			all = append(all, d.health(id))
		}
		return all
	}
	for _, id := range ids {
		if d := h.all[id]; d != nil {
			all = append(all, d.health(id))
		}
	}
	return all
}

// count returns the numbers of the operator's destinations.
func (h *health) count() (n Counts) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range h.all {
		switch {
		case d.client:
		case d.down:
			n.Down++
		case d.failures > 0 || d.lastError != "": // as Health.Failing
			n.Failing++
		case d.known:
			n.Known++
		}
	}
	return n
}

// health returns the state as callers see it.
func (d *destination) health(id Hash) Health {
	out := Health{
		Destination: id, Host: d.host, Client: d.client, Known: d.known, Failures: int(d.failures),
		LastSuccess: fromMicro(d.success), LastError: d.lastError, About: d.about, Changed: fromMicro(d.changed),
		FailingSince: fromMicro(d.failing),
	}
	if d.down {
		out.DownSince = fromMicro(d.failing)
	}
	return out
}

// micro returns t in microseconds since 1970; the zero time is 0.
func micro(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// fromMicro is the inverse of micro.
func fromMicro(t int64) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMicro(t)
}

// addWaiting fills in what waits for destinations. It adds destinations without a state for which
// jobs wait.
func addWaiting(all []Health, waiting []Waiting) []Health {
	byHash := make(map[Hash]int, len(all))
	for i := range all {
		byHash[all[i].Destination] = i
	}
	for _, w := range waiting {
		i, ok := byHash[w.Destination]
		if !ok {
			i = len(all)
			all = append(all, Health{Destination: w.Destination, Client: w.Client})
		}
		all[i].Waiting, all[i].WaitingSince = w.Jobs, w.Since
	}
	return slices.Clip(all)
}

// Destinations has the states of the destinations. It derives them from the outcomes of attempts,
// and exchanges them with the store.
type Destinations struct {
	*core
	health *health
}

// wakeDestinations makes jobs due that wait for destinations that have succeeded.
func (d *Destinations) wakeDestinations() error {
	ids := d.health.takeWake()
	if len(ids) == 0 {
		return nil
	}
	more, err := d.store.Wake(d.ctx, Wake{Now: d.Now(), Destinations: ids, Max: wakeAtOnce})
	if err != nil {
		d.health.wakeAgain(ids)
		d.check(err)
		return err
	}
	for _, id := range more {
		d.health.waits(id)
	}
	return nil
}

// observe records the outcome of an attempt, and returns the state to store, if
// there is one.
func (d *Destinations) observe(a Attempt, now time.Time) *Health {
	state, wake := d.health.observe(d.store.Hash(a.Destination), a, now)
	if wake {
		d.signal()
	}
	return state
}

// saveHealth stores the states that are not stored with a settlement.
func (d *Destinations) saveHealth() {
	states := d.health.toSave()
	for some := range slices.Chunk(states, saveAtOnce) {
		if err := d.store.SaveHealth(context.WithoutCancel(d.ctx), some...); err != nil {
			d.check(err)
			return
		}
		d.health.saved(some...)
	}
}

// mergeHealth adopts the states that other processes have stored, all of them or
// those not older than age.
func (d *Destinations) mergeHealth(age time.Duration) error {
	states, err := d.store.Health(d.ctx, age)
	if d.health.merge(states) {
		d.signal()
	}
	return err
}

// tell calls Down and Up.
func (d *Destinations) tell() {
	for {
		select {
		case <-d.stop:
			return
		case <-d.health.changed:
		}
		for _, t := range d.health.takeTurns() {
			o := d.options.Load()
			f := o.Down
			if t.up {
				f = o.Up
			}
			if f == nil {
				continue
			}
			waiting, err := d.store.Waiting(d.ctx, t.Destination)
			d.check(err)
			f(addWaiting([]Health{t.Health}, waiting)[0])
		}
	}
}

// Observe records an attempt that the caller has made without a job. It is not needed for attempts
// that end with [Queue.Settle] or that the queue makes.
func (d *Destinations) Observe(a Attempt) { d.observe(a, d.Now()) }

// All returns the states of all destinations that were attempted in the last 30 days or that jobs
// wait for, in no order. A client's destination is included only while it fails or jobs wait for
// it.
func (d *Destinations) All(ctx context.Context) ([]Health, error) {
	waiting, err := d.store.Waiting(ctx)
	if err != nil {
		return nil, err
	}
	return addWaiting(d.health.get(), waiting), nil
}

// Of returns the states of destinations, as [Destinations.All] does. It leaves out destinations
// without a state.
func (d *Destinations) Of(ctx context.Context, destinations ...Hash) ([]Health, error) {
	if len(destinations) == 0 {
		return nil, nil
	}
	waiting, err := d.store.Waiting(ctx, destinations...)
	if err != nil {
		return nil, err
	}
	return addWaiting(d.health.get(destinations...), waiting), nil
}

// Counts are numbers of destinations.
type Counts struct{ Known, Failing, Down int }

// Count returns the numbers of the operator's destinations that are known and do
// not fail, that have failed and are not down, and that are down.
func (d *Destinations) Count() Counts { return d.health.count() }
