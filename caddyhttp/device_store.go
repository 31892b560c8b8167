package caddyhttp

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// deviceCache has the devices of all keys, so that a message to a key without one costs
// no more than a look at it. Where the store is shared, it is read anew each second.
type deviceCache struct {
	known atomic.Pointer[knownDevices] // nil before it was read

	mu      sync.Mutex // held while it is read
	version []byte
}

// knownDevices are the devices of all keys. They do not change.
type knownDevices struct {
	lists   map[site.Place]*device.List
	damaged map[queue.Hash]bool // the names of records that cannot be read
}

// of returns the devices of a key, or nil.
func (c *deviceCache) of(place site.Place) *device.List {
	known := c.known.Load()
	if known == nil {
		return nil
	}
	return known.lists[place]
}

// any reports whether a key has devices, also if they cannot be read.
func (c *deviceCache) any() bool {
	known := c.known.Load()
	return known != nil && len(known.lists)+len(known.damaged) > 0
}

// refreshDevices reads the devices that other gateways may have changed.
func (q *registry) refreshDevices(ctx context.Context) {
	if q.App.Load().Resolved.Push == nil || !q.Shared && q.devices.known.Load() != nil {
		return
	}
	if err := q.devices.read(ctx, q); err != nil && q.devices.known.Load() == nil && ctx.Err() == nil {
		q.Log.Debug("devices cannot be read yet", zap.Error(err))
	}
}

// read reads the devices if they have changed.
func (c *deviceCache) read(ctx context.Context, q *registry) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	version, err := q.CallersRecord(ctx, q.devicesVersion())
	if err != nil || c.known.Load() != nil && slices.Equal(version, c.version) {
		return err
	}
	known := &knownDevices{map[site.Place]*device.List{}, map[queue.Hash]bool{}}
	for after, more := (queue.Hash{}), true; more; {
		records, err := q.CallersGroup(ctx, q.devicesGroup(), after, outbox.SilencePage)
		if err != nil {
			return err
		}
		for _, r := range records {
			after = r.Name
			l, err := decodeDevices(r.Data)
			if err != nil {
				q.Log.Error("devices get no messages", zap.String("key", l.Key), zap.Error(err))
				known.damaged[r.Name] = true
			} else if len(l.All) > 0 {
				known.lists[l.Place] = l
			}
		}
		more = len(records) == outbox.SilencePage
	}
	c.version = version
	c.known.Store(known)
	return nil
}

// devicesOf returns the devices of a key, or nil. It reads them if that was not possible
// before. The error is errDevicesDamaged if they cannot be read.
func (q *registry) devicesOf(ctx context.Context, key site.Place) (*device.List, error) {
	if q.devices.known.Load() == nil {
		if err := q.devices.read(ctx, q); err != nil {
			return nil, err
		}
	}
	known := q.devices.known.Load()
	if known == nil { // they have changed meanwhile
		return nil, nil
	}
	l := known.lists[key]
	if l == nil && len(known.damaged) > 0 && known.damaged[q.devicesName(key)] {
		return nil, errDevicesDamaged
	}
	return l, nil
}

// findDevice returns a device of a key, or nil. One that is not known may have subscribed at
// another gateway just now.
func (q *registry) findDevice(ctx context.Context, key site.Place, id string) (*device.Device, error) {
	devices, err := q.devicesOf(ctx, key)
	if err != nil {
		return nil, err
	}
	if d := devices.Find(id); d != nil || !q.Shared {
		return d, nil
	}
	if err := q.devices.read(ctx, q); err != nil {
		return nil, err
	}
	return q.devices.of(key).Find(id), nil
}

// changeDevices changes the devices of a key, and other records in the same transaction.
// adds reports whether it adds a device, which needs room in the queue. f gets their
// content, and returns the new one. It may be called several times. Devices that cannot be
// read are not overwritten: another version of the gateway may be able to read them.
func (q *registry) changeDevices(ctx context.Context, key site.Place, adds bool, others []queue.Hash, f func(now time.Time, l *device.List, old [][]byte) ([]queue.Record, error)) error {
	return q.applyDevices(ctx, key, adds, others, func(now time.Time, old [][]byte) (*device.List, []queue.Record, error) {
		l, err := decodeDevices(old[0])
		if err != nil {
			return nil, nil, err
		}
		l.Place = key
		more, err := f(now, l, old[1:])
		return l, more, err
	})
}

// applyDevices stores the devices of a key that f returns, with the new content of other
// records, in one transaction. f gets their content before.
func (q *registry) applyDevices(ctx context.Context, key site.Place, adds bool, others []queue.Hash, f func(now time.Time, old [][]byte) (*device.List, []queue.Record, error)) error {
	names := append([]queue.Hash{q.devicesVersion(), q.devicesName(key)}, others...)
	err := q.Apply(ctx, &queue.Ruled{Names: names, Adds: adds, Decide: func(old [][]byte, _ func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		now := q.Now()
		l, more, err := f(now, old[1:])
		if err != nil {
			return nil, err
		}
		return &queue.RuledChange{Records: append([]queue.Record{devicesVersionRecord(now), q.devicesRecord(l, now)}, more...)}, nil
	}})
	if err != nil {
		return err
	}
	if err := q.devices.read(ctx, q); err != nil {
		q.devices.known.Store(nil) // they are read when the store answers
	}
	return nil
}

// errDevicesDamaged is returned for devices of a key that are in the store, but cannot be
// read.
var errDevicesDamaged = errors.New("the devices of the key cannot be read in the queue's store, so that they get no messages and none can be added; a later version of the gateway may have written them: start that one, restore a back-up of the queue (caddy notify queue backup), or remove them with caddy notify devices revoke <key> --all and invite the phones again")

// removeDevice removes a device of a key, with its state, and returns it. The error is
// [device.ErrUnknown] if there is none, or if it is not one that allowed reports.
func (q *registry) removeDevice(ctx context.Context, key site.Place, id string, allowed func(*device.Device) bool) (removed *device.Device, err error) {
	err = q.changeDevices(ctx, key, false, []queue.Hash{q.deviceStateName(id)}, func(_ time.Time, l *device.List, _ [][]byte) ([]queue.Record, error) {
		removed, err = l.Remove(id, allowed)
		return make([]queue.Record, 1), err
	})
	return removed, err
}

// removeAllDevices removes all devices of a key, and returns those that can be read.
func (q *registry) removeAllDevices(ctx context.Context, key site.Place) (removed []*device.Device, err error) {
	l, err := q.devicesOf(ctx, key)
	if errors.Is(err, errDevicesDamaged) {
		err := q.applyDevices(ctx, key, false, nil, func(_ time.Time, old [][]byte) (*device.List, []queue.Record, error) {
			l, err := decodeDevices(old[0])
			if err != nil {
				l = new(device.List)
			}
			return l, nil, nil // another gateway may have restored them meanwhile
		})
		if err == nil {
			q.Log.Warn("devices that cannot be read are removed", zap.String("key", key.Key))
		}
		return nil, err
	}
	if err != nil || l == nil {
		return nil, err
	}
	for i := range l.All { // each with its state
		d, err := q.removeDevice(ctx, key, l.All[i].ID, anyDevice)
		if err == nil {
			removed = append(removed, d)
		} else if !errors.Is(err, device.ErrUnknown) {
			return removed, err
		}
	}
	return removed, nil
}

// anyDevice allows to remove every device.
func anyDevice(*device.Device) bool { return true }
