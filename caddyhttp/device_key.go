package caddyhttp

import (
	"errors"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// keyDevices adds the devices of keys to their destinations, for the settings of a site or
// of the app.
type keyDevices struct {
	started  <-chan struct{}  // closed when registry may be called
	registry func() *registry // nil without a queue
	site     func() string    // the ID of the site
	settings *resolved

	mu   sync.Mutex
	keys map[device.Place]keyWithDevices
}

// keyWithDevices is a key before and after its devices are added.
type keyWithDevices struct {
	before, after *key
	devices       *device.List
}

// receivers returns the zero value for nil.
func (x *keyDevices) receivers() receivers {
	if x == nil {
		return receivers{}
	}
	return receivers{ready: x.wait, add: x.with}
}

// wait waits until the app has started, because it has no queue before.
func (x *keyDevices) wait() error {
	<-x.started
	if q := x.registry(); q != nil && q.devices.known.Load() == nil {
		return errQueueUnavailable(errors.New("the devices cannot be read"))
	}
	return nil
}

// queue returns the devices in the queue, or nil if the app has not started, or is stopped.
func (x *keyDevices) queue() *registry {
	select {
	case <-x.started:
		return x.registry()
	default:
		return nil
	}
}

// with returns a key with its devices among its destinations: k itself if it has none.
func (x *keyDevices) with(k *key) *key {
	q := x.queue()
	if q == nil {
		return k
	}
	devices := q.devices.of(k.devicePlace(x.site()))
	if devices == nil {
		return k
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	known := x.keys[devices.Place]
	if known.before == k && known.devices == devices {
		return known.after
	}
	after := *k
	after.targets = slices.Clone(k.targets)
	numbered := k.numberedTags()
	for i := range devices.All {
		t := x.target(q, devices, i, known)
		if t.Tags = devices.TagsOf(&devices.All[i], numbered); len(t.Tags) < len(devices.All[i].Tags()) && k.log != nil {
			k.log.Warn("tags that a device has given itself do not count, because the key has them with a number; invite it with them", zap.String("key", k.name), zap.String("device", devices.All[i].Name))
		}
		after.targets = append(after.targets, t)
	}
	after.defaultTargets = k.defaults.choose(after.targets)
	x.keys[devices.Place] = keyWithDevices{k, &after, devices}
	return &after
}

// target returns the destination of the device with an index, without its tags. It is the
// one of before if the device has not changed.
func (x *keyDevices) target(q *registry, devices *device.List, i int, known keyWithDevices) notifier.Target {
	d := &devices.All[i]
	if old := known.devices; old != nil && i < len(old.All) && old.All[i].Same(d) {
		return known.after.targets[len(known.before.targets)+i]
	}
	service := &deviceService{devices: x, queue: q, key: devices.Place, device: d, endpoint: d.Subscription.Endpoint}
	return notifier.Target{Destination: notifier.NewPrivate(service, d.Shown(), d.ID, x.settings.limits.Egress)}
}

// numberedTags returns the tags with a number of the URLs of k.
func (k *key) numberedTags() device.Numbered {
	out := device.Numbered{}
	for _, t := range k.targets {
		if !isDevice(t.String()) {
			out.Add(t.Tags)
		}
	}
	return out
}
