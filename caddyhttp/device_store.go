package caddyhttp

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// deviceCache has the devices of all keys, so that a message to a key without one costs
// no more than a look at it. Where the store is shared, it is read anew each second.
type deviceCache struct {
	places atomic.Pointer[map[string]*devicesOfKey] // nil before it was read

	mu      sync.Mutex // held while it is read
	version []byte
}

// of returns the devices of the key with a place, or nil.
func (c *deviceCache) of(place string) *devicesOfKey {
	all := c.places.Load()
	if all == nil {
		return nil
	}
	return (*all)[place]
}

// any reports whether a device is known.
func (c *deviceCache) any() bool {
	all := c.places.Load()
	return all != nil && len(*all) > 0
}

// refreshDevices reads the devices that other gateways may have changed.
func (q *openQueue) refreshDevices(ctx context.Context) {
	if q.app.Load().resolved.push == nil || !q.shared && q.devices.places.Load() != nil {
		return
	}
	if err := q.devices.read(ctx, q); err != nil && q.devices.places.Load() == nil && ctx.Err() == nil {
		q.log.Debug("devices cannot be read yet", zap.Error(err))
	}
}

// read reads the devices if they have changed.
func (c *deviceCache) read(ctx context.Context, q *openQueue) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	version, err := q.CallersRecord(ctx, q.devicesVersion())
	if err != nil || c.places.Load() != nil && slices.Equal(version, c.version) {
		return err
	}
	all := map[string]*devicesOfKey{}
	for after, more := (queue.Hash{}), true; more; {
		records, err := q.CallersGroup(ctx, q.devicesGroup(), after, silencePage)
		if err != nil {
			return err
		}
		for _, r := range records {
			after = r.Name
			if s := decodeDevices(r.Data); len(s.All) > 0 {
				all[s.place()] = s
			}
		}
		more = len(records) == silencePage
	}
	c.version = version
	c.places.Store(&all)
	return nil
}

// devicesOf returns the devices of the key with a place. It reads them if that was not
// possible before.
func (q *openQueue) devicesOf(ctx context.Context, place string) (*devicesOfKey, error) {
	if q.devices.places.Load() == nil {
		if err := q.devices.read(ctx, q); err != nil {
			return nil, err
		}
	}
	return q.devices.of(place), nil
}

// findDevice returns a device of the key with a place, or nil. One that is not known may
// have subscribed at another gateway just now.
func (q *openQueue) findDevice(ctx context.Context, place, id string) (*device, error) {
	devices, err := q.devicesOf(ctx, place)
	if err != nil {
		return nil, err
	}
	if d := devices.find(id); d != nil || !q.shared {
		return d, nil
	}
	if err := q.devices.read(ctx, q); err != nil {
		return nil, err
	}
	return q.devices.of(place).find(id), nil
}

// changeDevices changes the devices of a key, and other records in the same transaction.
// adds reports whether it adds a device, which needs room in the queue. f gets their
// content, and returns the new one. It may be called several times.
func (q *openQueue) changeDevices(ctx context.Context, home, key string, adds bool, others []queue.Hash, f func(now time.Time, s *devicesOfKey, old [][]byte) ([]queue.Record, error)) error {
	names := append([]queue.Hash{q.devicesName(home + "\x00" + key), q.devicesVersion()}, others...)
	err := q.Apply(ctx, &queue.Ruled{Names: names, Adds: adds, Decide: func(old [][]byte, _ func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		now := q.Now()
		s := decodeDevices(old[0])
		s.Home, s.Key = home, key
		more, err := f(now, s, old[2:])
		if err != nil {
			return nil, err
		}
		return &queue.RuledChange{Records: append([]queue.Record{q.devicesRecord(s, now), devicesVersionRecord(now)}, more...)}, nil
	}})
	if err != nil {
		return err
	}
	if err := q.devices.read(ctx, q); err != nil {
		q.devices.places.Store(nil) // they are read when the store answers
	}
	return nil
}

// Errors of changes of devices.
var (
	errNoDevice       = errors.New("there is no such device, or the secret is not its own; subscribe again")
	errDeviceUnknown  = errors.New("the key has no such device; caddy notify devices list shows them")
	errTooManyDevices = errors.New("the key has as many devices as it can have (push max_devices); revoke one of them with caddy notify devices revoke")
)

// removeDevice removes a device of a key, with its state, and returns it.
func (q *openQueue) removeDevice(ctx context.Context, home, key, id string, allowed func(*device) bool) (removed *device, err error) {
	err = q.changeDevices(ctx, home, key, false, []queue.Hash{q.deviceStateName(id)}, func(_ time.Time, s *devicesOfKey, _ [][]byte) ([]queue.Record, error) {
		if removed = s.find(id); removed == nil || !allowed(removed) {
			return nil, errDeviceUnknown
		}
		s.remove(id)
		return make([]queue.Record, 1), nil
	})
	return removed, err
}
