package device

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Registry are the devices.
type Registry struct {
	*outbox.Outbox
	Alerts        *alerting.Incidents
	Devices       deviceCache
	Vapid         pushKeyCache
	Registrations Limiter
}

// deviceCache has the devices of all keys, so that a message to a key without one costs
// no more than a look at it. Where the store is shared, it is read anew each second.
type deviceCache struct {
	Known atomic.Pointer[knownDevices] // nil before it was read

	mu      sync.Mutex // held while it is read
	version []byte
}

// knownDevices are the devices of all keys. They do not change.
type knownDevices struct {
	Lists   map[site.Place]*List
	damaged map[queue.Hash]bool // the names of records that cannot be read
}

// Of returns the devices of a key, or nil.
func (c *deviceCache) Of(place site.Place) *List {
	known := c.Known.Load()
	if known == nil {
		return nil
	}
	return known.Lists[place]
}

// Any reports whether a key has devices, also if they cannot be read.
func (c *deviceCache) Any() bool {
	known := c.Known.Load()
	return known != nil && len(known.Lists)+len(known.damaged) > 0
}

// RefreshDevices reads the devices that other gateways may have changed.
func (q *Registry) RefreshDevices(ctx context.Context) {
	if q.App.Load().Resolved.Push == nil || !q.Shared && q.Devices.Known.Load() != nil {
		return
	}
	if err := q.Devices.Read(ctx, q); err != nil && q.Devices.Known.Load() == nil && ctx.Err() == nil {
		q.Log.Debug("devices cannot be read yet", zap.Error(err))
	}
}

// Read reads the devices if they have changed.
func (c *deviceCache) Read(ctx context.Context, q *Registry) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	version, err := q.Queue.CallersRecord(ctx, q.DevicesVersion())
	if err != nil || c.Known.Load() != nil && slices.Equal(version, c.version) {
		return err
	}
	known := &knownDevices{map[site.Place]*List{}, map[queue.Hash]bool{}}
	for after, more := (queue.Hash{}), true; more; {
		records, err := q.Queue.CallersGroup(ctx, q.DevicesGroup(), after, outbox.SilencePage)
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
				known.Lists[l.Place] = l
			}
		}
		more = len(records) == outbox.SilencePage
	}
	c.version = version
	c.Known.Store(known)
	return nil
}

// DevicesOf returns the devices of a key, or nil. It reads them if that was not possible
// before. The error is ErrDevicesDamaged if they cannot be read.
func (q *Registry) DevicesOf(ctx context.Context, key site.Place) (*List, error) {
	if q.Devices.Known.Load() == nil {
		if err := q.Devices.Read(ctx, q); err != nil {
			return nil, err
		}
	}
	known := q.Devices.Known.Load()
	if known == nil { // they have changed meanwhile
		return nil, nil
	}
	l := known.Lists[key]
	if l == nil && len(known.damaged) > 0 && known.damaged[q.DevicesName(key)] {
		return nil, ErrDevicesDamaged
	}
	return l, nil
}

// FindDevice returns a device of a key, or nil. One that is not known may have subscribed at
// another gateway just now.
func (q *Registry) FindDevice(ctx context.Context, key site.Place, id string) (*Device, error) {
	devices, err := q.DevicesOf(ctx, key)
	if err != nil {
		return nil, err
	}
	if d := devices.Find(id); d != nil || !q.Shared {
		return d, nil
	}
	if err := q.Devices.Read(ctx, q); err != nil {
		return nil, err
	}
	return q.Devices.Of(key).Find(id), nil
}

// ChangeDevices changes the devices of a key, and other records in the same transaction.
// adds reports whether it adds a device, which needs room in the queue. f gets their
// content, and returns the new one. It may be called several times. Devices that cannot be
// read are not overwritten: another version of the gateway may be able to read them.
func (q *Registry) ChangeDevices(ctx context.Context, key site.Place, adds bool, others []queue.Hash, f func(now time.Time, l *List, old [][]byte) ([]queue.Record, error)) error {
	return q.applyDevices(ctx, key, adds, others, func(now time.Time, old [][]byte) (*List, []queue.Record, error) {
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
func (q *Registry) applyDevices(ctx context.Context, key site.Place, adds bool, others []queue.Hash, f func(now time.Time, old [][]byte) (*List, []queue.Record, error)) error {
	names := append([]queue.Hash{q.DevicesVersion(), q.DevicesName(key)}, others...)
	err := q.Queue.Apply(ctx, &queue.Ruled{Names: names, Adds: adds, Decide: func(old [][]byte, _ func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		now := q.Queue.Now()
		l, more, err := f(now, old[1:])
		if err != nil {
			return nil, err
		}
		return &queue.RuledChange{Records: append([]queue.Record{DevicesVersionRecord(now), q.devicesRecord(l, now)}, more...)}, nil
	}})
	if err != nil {
		return err
	}
	if err := q.Devices.Read(ctx, q); err != nil {
		q.Devices.Known.Store(nil) // they are read when the store answers
	}
	return nil
}

// ErrDevicesDamaged is returned for devices of a key that are in the store, but cannot be
// read.
var ErrDevicesDamaged = errors.New("the devices of the key cannot be read in the queue's store, so that they get no messages and none can be added; a later version of the gateway may have written them: start that one, restore a back-up of the queue (caddy notify queue backup), or remove them with caddy notify devices revoke <key> --all and invite the phones again")

// RemoveDevice removes a device of a key, with its state, and returns it. The error is
// [device.ErrUnknown] if there is none, or if it is not one that allowed reports.
func (q *Registry) RemoveDevice(ctx context.Context, key site.Place, id string, allowed func(*Device) bool) (removed *Device, err error) {
	err = q.ChangeDevices(ctx, key, false, []queue.Hash{q.deviceStateName(id)}, func(_ time.Time, l *List, _ [][]byte) ([]queue.Record, error) {
		removed, err = l.Remove(id, allowed)
		return make([]queue.Record, 1), err
	})
	return removed, err
}

// RemoveAllDevices removes all devices of a key, and returns those that can be read.
func (q *Registry) RemoveAllDevices(ctx context.Context, key site.Place) (removed []*Device, err error) {
	l, err := q.DevicesOf(ctx, key)
	if errors.Is(err, ErrDevicesDamaged) {
		err := q.applyDevices(ctx, key, false, nil, func(_ time.Time, old [][]byte) (*List, []queue.Record, error) {
			l, err := decodeDevices(old[0])
			if err != nil {
				l = new(List)
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
		d, err := q.RemoveDevice(ctx, key, l.All[i].ID, AnyDevice)
		if err == nil {
			removed = append(removed, d)
		} else if !errors.Is(err, ErrUnknown) {
			return removed, err
		}
	}
	return removed, nil
}

// AnyDevice allows to remove every device.
func AnyDevice(*Device) bool { return true }

// ListDevices returns the JSON of the devices of a key, which is never nil.
func (q *Registry) ListDevices(ctx context.Context, key site.Place) ([]JSON, error) {
	devices, err := q.DevicesOf(ctx, key)
	if err != nil || devices == nil {
		return []JSON{}, err
	}
	states, err := q.DeviceStates(ctx, devices.All)
	if err != nil {
		return nil, err
	}
	out := make([]JSON, len(devices.All))
	for i := range devices.All {
		out[i] = devices.All[i].JSON(states[i])
	}
	return out, nil
}

// Values of devices in push.
const (
	DevicesInvited = "invited"
	DevicesUsers   = "users"
)

// The bounds of max_devices.
const MaxMaxDevices = 500
