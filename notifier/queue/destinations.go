package queue

import (
	"context"
	"slices"
	"time"
)

// Destinations knows the states of the destinations, which it keeps from the outcomes of
// attempts and exchanges with the store.
type Destinations struct {
	*core
	health *health
}

// wakeDestinations makes jobs due that wait for destinations which have
// succeeded.
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

// Observe tells the queue about an attempt that the caller has made without a
// job. Attempts that end with [Queue.Settle] or that the queue makes are known.
func (d *Destinations) Observe(a Attempt) { d.observe(a, d.Now()) }

// All returns the states of all destinations that have been attempted
// in the last 30 days or that jobs wait for, in no order. Those of clients are
// only there while they fail or jobs wait for them.
func (d *Destinations) All(ctx context.Context) ([]Health, error) {
	waiting, err := d.store.Waiting(ctx)
	if err != nil {
		return nil, err
	}
	return addWaiting(d.health.get(), waiting), nil
}

// Of returns the states of the given destinations, as [Destinations.All] does. It leaves out
// those without a state.
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
