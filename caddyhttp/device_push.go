package caddyhttp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"sort"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/webpush"
)

// deviceScheme begins what a device is shown as. No URL can have it.
const deviceScheme = "device://"

// isDevice reports whether what is shown of a destination is that of a device.
func isDevice(shown string) bool { return strings.HasPrefix(shown, deviceScheme) }

// deviceService pushes messages to a device of a key.
type deviceService struct {
	devices   *keyDevices
	queue     *openQueue
	home, key string // see [delivery.place]
	device    *device
	name      string
	endpoint  string
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

// pushPayload is what the service worker of a device gets.
type pushPayload struct {
	Key         string        `json:"key"`
	Title       string        `json:"title,omitempty"`
	Text        string        `json:"text,omitempty"`
	Type        notifier.Type `json:"type"`
	Time        time.Time     `json:"time"`
	Incident    string        `json:"incident,omitempty"`    // the tag of the notification
	Renotify    bool          `json:"renotify,omitempty"`    // the incident opens
	Link        string        `json:"link,omitempty"`        // the page of the incident
	Acknowledge bool          `json:"acknowledge,omitempty"` // the incident can be acknowledged there
	Badge       *int          `json:"badge,omitempty"`       // how many incidents of the key are open
	Device      string        `json:"device"`
	Receipt     string        `json:"receipt,omitempty"` // the token for the receipt
}

// encode returns the payload as JSON, with as much of the text as fits.
func (p *pushPayload) encode() ([]byte, error) {
	text := p.Text
	out, err := p.json()
	if err != nil || len(out) <= webpush.MaxPayload {
		return out, err
	}
	n := sort.Search(min(len(text), webpush.MaxPayload), func(n int) bool {
		p.Text = markup.TruncateBytes(text, n)
		var b []byte
		b, err = p.json()
		return err != nil || len(b) > webpush.MaxPayload
	})
	p.Text = markup.TruncateBytes(text, max(n-1, 0))
	return p.json()
}

func (p *pushPayload) json() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(p)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// payload returns the payload of a message.
func (d *deviceService) payload(ctx context.Context, m *notifier.Message) ([]byte, error) {
	p := &pushPayload{
		Key: d.key, Title: m.Title, Text: m.Body, Type: m.Type, Time: m.Time.UTC(), Device: d.device.ID,
		Incident: m.Incident.ID, Renotify: m.Incident.State == notifier.Open, Link: m.AcknowledgeURL, Acknowledge: m.AcknowledgeURL != "",
	}
	if m.ID != "" {
		p.Receipt = d.queue.receiptToken(d.device.ID, m.ID)
		p.Badge = d.queue.openIncidents(ctx, d.home+"\x00"+d.key)
	}
	return p.encode()
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
	settings := d.devices.settings
	p := &webpush.Push{Payload: payload, TTL: timeToLive(d.queue.Now(), m.Expires), Topic: m.Incident.ID, Contact: cmp.Or(settings.push.contact, settings.publicURL)}
	switch {
	case m.Digest:
		p.Urgency = webpush.UrgencyLow
	case m.Type == notifier.Failure || m.Type == notifier.Warning:
		p.Urgency = webpush.UrgencyHigh
	}
	began := d.queue.Now()
	err = key.Send(ctx, c, d.device.subscription, p)
	if _, gone := errors.AsType[*webpush.GoneError](err); gone {
		d.gone(context.WithoutCancel(ctx))
	}
	if err != nil || m.ID == "" {
		return err
	}
	if err := d.pushed(context.WithoutCancel(ctx), m, began); err != nil {
		d.queue.log.Warn("it cannot be stored that a device was sent a message, so that nobody waits for its receipt", zap.String("key", d.key), zap.String("device", d.device.Name), zap.Error(err))
	}
	return nil
}

// timeToLive returns how many seconds a push service keeps a message that is worthless
// after a time.
func timeToLive(now, expires time.Time) int {
	left := queue.DefaultMaxAge
	if !expires.IsZero() {
		left = expires.Sub(now)
	}
	return int(math.Ceil(min(max(left.Seconds(), 0), webpush.MaxTTL)))
}

// gone removes the device, whose browser no longer has the subscription, and tells its
// key. A device that has subscribed anew meanwhile stays.
func (d *deviceService) gone(ctx context.Context) {
	removed, err := d.queue.removeDevice(ctx, d.home, d.key, d.device.ID, d.device.same)
	switch {
	case errors.Is(err, errDeviceUnknown):
		return // another message has found that
	case err != nil:
		d.queue.log.Warn("a device that has ended its subscription cannot be removed now; it is tried again with the next message", zap.String("key", d.key), zap.String("device", d.device.Name), zap.Error(err))
		return
	}
	d.queue.deviceChanged(deviceGone, d.key, removed.Name, "")
	d.queue.tellOfDevice(ctx, d.devices, d.home, d.key, removed.ID, textOfGone(removed.Name), nil)
}
