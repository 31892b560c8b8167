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
