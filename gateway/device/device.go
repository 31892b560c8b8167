package device

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/webpush"
)

// Device is a phone or a browser that has subscribed to a key.
type Device struct {
	ID           string // random, but no secret
	Name         string // unique within the key
	Granted      []string
	Own          []string // tags that the device has chosen besides those that were granted
	By           string   // the user who has subscribed; "" if nobody is known
	Created      time.Time
	Subscription webpush.Subscription

	secret [sha256.Size]byte // the hash of the secret
}

// newDevice returns a device with an ID, whose client has a secret.
func newDevice(secret string) *Device {
	return &Device{ID: uuid.NewString(), secret: sha256.Sum256([]byte(secret))}
}

// NewSecret returns a secret of 128 random bits, which can be part of an address.
func NewSecret() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Hash returns the hash of the destination of the device with an ID.
func Hash(id string) string { return notifier.PrivateHash(id) }

// shown returns what the destination of d is shown as.
func (d *Device) shown() string { return site.DeviceScheme + d.Name }

// Tags returns the tags of the device.
func (d *Device) Tags() []string { return slices.Concat(d.Granted, d.Own) }

// same reports whether d and o are the same device with the same name and subscription.
func (d *Device) same(o *Device) bool {
	a, b := &d.Subscription, &o.Subscription
	return d.ID == o.ID && d.Name == o.Name && a.Endpoint == b.Endpoint && a.Keys == b.Keys
}

// HasSecret reports whether text is the secret of the device. The time that it takes does
// not depend on the secret.
func (d *Device) HasSecret(text string) bool {
	sum := sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(d.secret[:], sum[:]) == 1
}

func (d *Device) fields(c *wire.Codec) {
	wire.Text(c, 1, &d.ID)
	wire.Text(c, 2, &d.Name)
	wire.Texts(c, 3, &d.Granted)
	wire.Texts(c, 4, &d.Own)
	wire.Text(c, 5, &d.By)
	wire.Time(c, 6, &d.Created)
	wire.Array(c, 7, d.secret[:])
	wire.Text(c, 8, &d.Subscription.Endpoint)
	wire.Text(c, 9, &d.Subscription.Keys.P256DH)
	wire.Text(c, 10, &d.Subscription.Keys.Auth)
}

// added returns the message to a key about a new device. by is the user who has added it;
// "" if nobody is known.
func (d *Device) added() *notifier.Message {
	body := "From now on it gets the messages for this key. If you do not know it, revoke it."
	if d.By != "" {
		body = d.By + " has added it. " + body
	}
	return &notifier.Message{Title: "New device: " + d.Name, Body: body, Type: notifier.Info}
}

// gone returns the message to a key about a device that was removed, because its browser
// has ended the subscription.
func (d *Device) gone() *notifier.Message {
	return &notifier.Message{
		Title: "Device gone: " + d.Name, Type: notifier.Warning,
		Body: "Its browser has ended the subscription, so that it was removed and gets no more messages. If that was not intended, " +
			"invite it again.",
	}
}

// JSON is a device as clients see it.
type JSON struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Tags    []string  `json:"tags"`
	Secret  string    `json:"secret,omitempty"` // of a new device
	Created time.Time `json:"created,omitzero"`
	By      string    `json:"by,omitempty"`      // the user who has subscribed
	Service string    `json:"service,omitempty"` // the host of the push service
	Sent    time.Time `json:"sent,omitzero"`     // the last message that its push service has taken
	Seen    time.Time `json:"seen,omitzero"`     // the last receipt
	Missing int       `json:"missing,omitempty"` // receipts in a row
}

// Short returns what a device is told about itself after a change.
func (d *Device) Short() JSON {
	return JSON{ID: d.ID, Name: d.Name, Tags: append([]string{}, d.Tags()...)}
}

// JSON returns all that is shown of the device. s is what is known of it, or nil.
func (d *Device) JSON(s *State) JSON {
	out := d.Short()
	out.Created, out.By, out.Service = d.Created.UTC(), d.By, d.Subscription.Host()
	if s != nil {
		out.Sent, out.Seen, out.Missing = s.Sent.UTC(), s.Seen.UTC(), s.Missing
	}
	return out
}
