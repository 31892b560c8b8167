package caddyhttp

import (
	"slices"
	"sync"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// keyDevices adds the devices of keys to their destinations, for the settings of a site or
// of the app. nil adds none.
type keyDevices struct {
	app      *App
	settings *resolved

	mu   sync.Mutex
	keys map[string]keyWithDevices // by place
}

// keyWithDevices is a key before and after its devices are added.
type keyWithDevices struct {
	before, after *key
	devices       *devicesOfKey
}

// newKeyDevices returns nil if no device can subscribe.
func newKeyDevices(a *App, r *resolved) *keyDevices {
	if r.push == nil {
		return nil
	}
	return &keyDevices{app: a, settings: r, keys: map[string]keyWithDevices{}}
}

// wait waits until the app has started, because it has no queue before.
func (x *keyDevices) wait() {
	if x != nil {
		<-x.app.started
	}
}

// queue returns the queue, or nil if the app has not started, or is stopped.
func (x *keyDevices) queue() *openQueue {
	select {
	case <-x.app.started:
		return x.app.queue
	default:
		return nil
	}
}

// with returns a key with its devices among its destinations: k itself if it has none.
func (x *keyDevices) with(k *key) *key {
	if x == nil || k == nil {
		return k
	}
	q := x.queue()
	if q == nil {
		return k
	}
	site := x.app.siteOf(x.settings)
	devices := q.devices.of(k.home(site) + "\x00" + k.name)
	if devices == nil {
		return k
	}
	place := devices.place()
	x.mu.Lock()
	defer x.mu.Unlock()
	known := x.keys[place]
	if known.before == k && known.devices == devices {
		return known.after
	}
	after := *k
	after.targets = slices.Clone(k.targets)
	for _, d := range devices.All {
		after.targets = append(after.targets, x.target(q, d, known, devices))
	}
	after.defaultTargets = k.defaults.choose(after.targets)
	x.keys[place] = keyWithDevices{k, &after, devices}
	return &after
}

// target returns the destination of a device. It is the one of before if the device has
// not changed.
func (x *keyDevices) target(q *openQueue, d *device, known keyWithDevices, devices *devicesOfKey) notifier.Target {
	i := slices.IndexFunc(devices.All, func(o *device) bool { return o == d })
	if old := known.devices; old != nil && i < len(old.All) && old.All[i].same(d) {
		t := known.after.targets[len(known.before.targets)+i]
		t.Tags = d.tags()
		return t
	}
	service := &deviceService{devices: x, queue: q, home: devices.Home, key: devices.Key, device: d, endpoint: d.subscription.Endpoint}
	return notifier.Target{Destination: notifier.NewPrivate(service, deviceScheme+d.Name, d.ID, x.settings.limits.Egress), Tags: d.tags()}
}
