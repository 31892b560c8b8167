package device

import (
	"cmp"
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/webpush"
)

// deviceService pushes messages to a device of a key.
type deviceService struct {
	devices  *KeyDevices
	queue    *Registry
	key      site.Place
	keyName  string // the name that the key has now
	device   *Device
	name     string
	endpoint string
}

// Describe implements notifier.Service.
func (d *deviceService) Describe(s *notifier.Schema) {
	s.Name = "Device"
	s.URL("device://{name}")
	s.String(&d.name, "name", d.device.Name, "the name of the device")
	s.String(&d.endpoint, "endpoint", d.endpoint, "the address of the subscription").Secret()
	s.Limits = markup.Limits{Unit: markup.UTF8Bytes, Title: MaxTitle} // Send cuts what does not fit
	s.Acknowledge = notifier.AcknowledgeByButton
}

// payload returns the payload of a message.
func (d *deviceService) payload(ctx context.Context, m *notifier.Message) ([]byte, error) {
	p := d.device.payload(d.keyName, m)
	if m.ID != "" {
		p.Receipt = d.queue.Receipts.token(d.device.ID, m.ID)
		p.Badge = d.badge(ctx)
	}
	return p.encode()
}

// Send implements notifier.Service.
func (d *deviceService) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	payload, err := d.payload(ctx, m)
	if err != nil {
		return err
	}
	if err := checkEndpoint(d.device.Subscription.Endpoint, d.devices.Settings.Push.Hosts); err != nil {
		d.refused(context.WithoutCancel(ctx), errHostRemoved.Error())
		return notifier.Refused(errHostRemoved)
	}
	key, err := d.queue.PushKey(ctx)
	if errors.Is(err, ErrPushKeyLost) {
		return ErrPushKeyLost.Fault // whoever sees the result of a message can tell the operator
	}
	if err != nil {
		return err
	}
	settings, began, left := d.devices.Settings, d.queue.outbox.Queue.Now(), queue.DefaultMaxAge
	if !m.Expires.IsZero() {
		left = m.Expires.Sub(began)
	}
	p := newPush(m, left)
	p.Payload, p.Contact = payload, cmp.Or(settings.Push.Contact, settings.PublicURL)
	err = key.Send(ctx, c, &d.device.Subscription, p)
	if _, ended := errors.AsType[*webpush.GoneError](err); ended {
		d.gone(context.WithoutCancel(ctx))
	} else if why := webpush.Refusal(err); why != "" {
		d.refused(context.WithoutCancel(ctx), why)
	}
	if err != nil || m.ID == "" {
		return err
	}
	if err := d.queue.Receipts.pushed(context.WithoutCancel(ctx), d.key, d.device, m, began); err != nil {
		d.queue.outbox.Log.Warn("it cannot be stored that a device was sent a message, so that nobody waits for its receipt",
			zap.String("key", d.keyName), zap.String("device", d.device.Name), zap.Error(err))
	}
	return nil
}

// errHostRemoved is returned for a device whose push service was removed from push { services }
// after it subscribed.
var errHostRemoved = errors.New("the host of its push service is not allowed any more; the operator can allow it with push { " +
	"services <host> }")

// refused notes that the push service refuses messages for the device, and tells its key, at most
// once a day. The device is not removed: the reason may be a setting or the clock of the gateway,
// and then all devices fail.
func (d *deviceService) refused(ctx context.Context, why string) {
	q, tell := d.queue, false
	var s *State
	name := q.Records.state(d.device.ID)
	err := q.outbox.Queue.Records.Apply(ctx, &queue.Ruled{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
		now := q.outbox.Queue.Now()
		s = states.GetOrNew(tx, name)
		tell = s.refuse(d.device, d.key, why, now)
		q.Records.putState(tx, name, s, now)
		return nil
	}})
	switch {
	case err != nil:
		q.outbox.Log.Warn("it cannot be stored that a push service refuses the messages for a device", zap.String("key", d.keyName),
			zap.String("device", d.device.Name), zap.Error(err))
	case tell:
		conf := q.outbox.Current()
		q.changed(conf, refused, d.keyName, d.device.Name, "")
		q.tell(ctx, conf, SiteSettings{d.devices.Settings, d.devices.Site()}, d.key, d.device.ID, s.notTaken(d.device.Name), nil)
	}
}

// gone removes the device because its browser no longer has the subscription, and tells its key. A
// device that has subscribed again in the meantime stays.
func (d *deviceService) gone(ctx context.Context) {
	was, err := d.queue.remove(ctx, d.key, d.device.ID, d.device.same)
	switch {
	case errors.Is(err, ErrUnknown):
		return // another message has found that
	case err != nil:
		d.queue.outbox.Log.Warn("a device that has ended its subscription cannot be removed now; it is tried again with the next message",
			zap.String("key", d.keyName), zap.String("device", d.device.Name), zap.Error(err))
		return
	}
	conf := d.queue.outbox.Current()
	d.queue.changed(conf, gone, d.keyName, was.Name, "")
	d.queue.tell(ctx, conf, SiteSettings{d.devices.Settings, d.devices.Site()}, d.key, was.ID, was.gone(), nil)
}
