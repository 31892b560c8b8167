package caddyhttp

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/device"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/webpush"
)

// isDevice reports whether what is shown of a destination is that of a device.
func isDevice(shown string) bool { return strings.HasPrefix(shown, device.Scheme) }

// deviceService pushes messages to a device of a key.
type deviceService struct {
	devices  *keyDevices
	queue    *registry
	key      device.Place
	device   *device.Device
	name     string
	endpoint string
}

// maxPushTitle is the maximum length of a title, in bytes.
const maxPushTitle = 250

// Describe implements notifier.Service.
func (d *deviceService) Describe(s *notifier.Schema) {
	s.Name = "Device"
	s.URL("device://{name}")
	s.String(&d.name, "name", d.device.Name, "the name of the device")
	s.String(&d.endpoint, "endpoint", d.endpoint, "the address of the subscription").Secret()
	s.Limits = markup.Limits{Unit: markup.UTF8Bytes, Title: maxPushTitle} // Send cuts the text
	s.Acknowledge = notifier.AcknowledgeByButton
}

// payload returns the payload of a message.
func (d *deviceService) payload(ctx context.Context, m *notifier.Message) ([]byte, error) {
	p := d.device.Payload(d.key.Key, m)
	if m.ID != "" {
		p.Receipt = d.queue.receiptToken(d.device.ID, m.ID)
		p.Badge = d.queue.openIncidents(ctx, d.key)
	}
	return p.Encode()
}

// Send implements notifier.Service.
func (d *deviceService) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	payload, err := d.payload(ctx, m)
	if err != nil {
		return err
	}
	key, err := d.queue.pushKey(ctx)
	if err != nil {
		return err
	}
	settings, began, left := d.devices.settings, d.queue.Now(), queue.DefaultMaxAge
	if !m.Expires.IsZero() {
		left = m.Expires.Sub(began)
	}
	p := device.NewPush(m, left)
	p.Payload, p.Contact = payload, cmp.Or(settings.push.contact, settings.publicURL)
	err = key.Send(ctx, c, &d.device.Subscription, p)
	if _, gone := errors.AsType[*webpush.GoneError](err); gone {
		d.gone(context.WithoutCancel(ctx))
	}
	if err != nil || m.ID == "" {
		return err
	}
	if err := d.pushed(context.WithoutCancel(ctx), m, began); err != nil {
		d.queue.log.Warn("it cannot be stored that a device was sent a message, so that nobody waits for its receipt", zap.String("key", d.key.Key), zap.String("device", d.device.Name), zap.Error(err))
	}
	return nil
}

// gone removes the device, whose browser no longer has the subscription, and tells its
// key. A device that has subscribed anew meanwhile stays.
func (d *deviceService) gone(ctx context.Context) {
	removed, err := d.queue.removeDevice(ctx, d.key, d.device.ID, d.device.Same)
	switch {
	case errors.Is(err, device.ErrUnknown):
		return // another message has found that
	case err != nil:
		d.queue.log.Warn("a device that has ended its subscription cannot be removed now; it is tried again with the next message", zap.String("key", d.key.Key), zap.String("device", d.device.Name), zap.Error(err))
		return
	}
	d.queue.deviceChanged(deviceGone, d.key.Key, removed.Name, "")
	d.queue.tellOfDevice(ctx, siteSettings{d.devices.settings, d.devices.site()}, d.key, removed.ID, removed.Gone(), nil)
}
