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
