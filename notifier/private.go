package notifier

import (
	"crypto/sha256"
	"encoding/base64"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// NewPrivate returns a destination with a service that no URL can name, for a program that knows
// its destinations by other means. It is shown as shown, which contains no secret, and id
// identifies it among all destinations. Messages to it may go where policy allows. svc belongs to
// the destination; its Describe is called once more.
func NewPrivate(svc Service, shown, id string, policy *egress.Policy) *Destination {
	e := newEntry(svc)
	e.private = true
	t := e.schema.templates[0]
	d := &Destination{
		entry: e, schema: e.schema, service: svc, options: e.options, template: t, scheme: &t.Schemes[0],
		text: shown, policy: policy, recipients: 1, location: time.Local,
	}
	d.printed.Store(&printed{redacted: shown, hash: PrivateHash(id)})
	return d
}

// PrivateHash returns the [Destination.Hash] of a private destination with the ID.
func PrivateHash(id string) string {
	sum := sha256.Sum256([]byte("private " + id))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// withPolicy returns a private destination with another policy, and the same service.
func (d *Destination) withPolicy(policy *egress.Policy) *Destination {
	out := &Destination{
		entry: d.entry, schema: d.schema, service: d.service, options: d.options, template: d.template, scheme: d.scheme,
		text: d.text, policy: policy, recipients: 1, location: time.Local,
	}
	out.printed.Store(d.printed.Load())
	return out
}
