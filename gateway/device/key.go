package device

import (
	"errors"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// KeyDevices adds the devices of keys to their destinations, for the settings of a site or
// of the app.
type KeyDevices struct {
	KeyOptions

	mu   sync.Mutex
	keys map[site.Place]keyWithDevices
}

// KeyOptions are the options of [NewKeyDevices].
type KeyOptions struct {
	Started  <-chan struct{}  // closed when Registry may be called
	Registry func() *Registry // returns nil without a queue
	Site     func() string    // returns the ID of the site
	Settings *site.Site
}

// NewKeyDevices returns the [KeyDevices] of a site.
func NewKeyDevices(o KeyOptions) *KeyDevices {
	return &KeyDevices{KeyOptions: o, keys: map[site.Place]keyWithDevices{}}
}

// keyWithDevices is a key before and after its devices are added.
type keyWithDevices struct {
	before, after *site.Key
	devices       *List
}

// Receivers returns the functions that a site calls to get its devices. It returns the zero value
// for a nil x.
func (x *KeyDevices) Receivers() site.Receivers {
	if x == nil {
		return site.Receivers{}
	}
	return site.Receivers{Ready: x.wait, Add: x.with}
}

// wait waits until the app has started: it has no queue before that.
func (x *KeyDevices) wait() error {
	<-x.Started
	if q := x.Registry(); q != nil && !q.Ready() {
		return outbox.ErrQueueUnavailable(errors.New("the devices cannot be read"))
	}
	return nil
}

// queue returns the devices in the queue, or nil if the app has not started, or is stopped.
func (x *KeyDevices) queue() *Registry {
	select {
	case <-x.Started:
		return x.Registry()
	default:
		return nil
	}
}

// with returns a copy of k with its devices as destinations, or k itself if it has none.
func (x *KeyDevices) with(k *site.Key) *site.Key {
	q := x.queue()
	if q == nil {
		return k
	}
	devices := q.Known(k.Place(x.Site()))
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
	after.Targets = slices.Clone(k.Targets)
	numbered := numberedTags(k)
	for i := range devices.All {
		t := x.target(q, devices, i, known, k.Name)
		if t.Tags = devices.tagsOf(&devices.All[i], numbered); len(t.Tags) < len(devices.All[i].Tags()) && k.Log != nil {
			k.Log.Warn("tags that a device has given itself do not count, because the key has them with a number; invite it with them",
				zap.String("device", devices.All[i].Name))
		}
		after.Targets = append(after.Targets, t)
	}
	after.DefaultTargets = k.Defaults.Choose(after.Targets)
	x.keys[devices.Place] = keyWithDevices{k, &after, devices}
	return &after
}

// target returns the destination of the device with an index, without its tags. It returns the
// destination in known if neither the device nor the name of the key has changed.
func (x *KeyDevices) target(q *Registry, devices *List, i int, known keyWithDevices, name string) notifier.Target {
	d := &devices.All[i]
	if old := known.devices; old != nil && known.before.Name == name && i < len(old.All) && old.All[i].same(d) {
		return known.after.Targets[len(known.before.Targets)+i]
	}
	service := &deviceService{devices: x, queue: q, key: devices.Place, keyName: name, device: d, endpoint: d.Subscription.Endpoint}
	return notifier.Target{Destination: notifier.NewPrivate(service, d.shown(), d.ID, x.Settings.Limits.Egress), Apart: true}
}

// numberedTags returns the tags with a number of the URLs of k.
func numberedTags(k *site.Key) numbered {
	out := numbered{}
	for _, t := range k.Targets {
		if !site.IsDevice(t.String()) {
			out.add(t.Tags)
		}
	}
	return out
}
