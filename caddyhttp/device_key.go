package caddyhttp

import (
	"errors"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/device"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// keyDevices adds the devices of keys to their destinations, for the settings of a site or
// of the app. nil adds none.
type keyDevices struct {
	app      *App
	settings *resolved

	mu   sync.Mutex
	keys map[device.Place]keyWithDevices
}

// keyWithDevices is a key before and after its devices are added.
type keyWithDevices struct {
	before, after *key
	devices       *device.List
}

// newKeyDevices returns nil if no device can subscribe.
func newKeyDevices(a *App, r *resolved) *keyDevices {
	if r.push == nil {
		return nil
	}
	return &keyDevices{app: a, settings: r, keys: map[device.Place]keyWithDevices{}}
}

// wait waits until the app has started, because it has no queue before. The error, an
// [*api.Error], is returned if the devices are not known, so that no message is answered as
// if there were none.
func (x *keyDevices) wait() error {
	if x == nil {
		return nil
	}
	<-x.app.started
	if q := x.app.queue; q != nil && q.devices.known.Load() == nil {
		return errQueueUnavailable(errors.New("the devices cannot be read"))
	}
	return nil
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
	devices := q.devices.of(k.devicePlace(x.app.siteOf(x.settings)))
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
func (x *keyDevices) target(q *openQueue, devices *device.List, i int, known keyWithDevices) notifier.Target {
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
