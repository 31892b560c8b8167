package notifier

import (
	"io"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/redact"
)

// Destination is a notification URL, understood: a service and where it is to
// send. It holds what the service wants to keep between messages. It is safe
// for use by several goroutines.
type Destination struct {
	service  Service
	schema   *Schema
	options  *options
	entry    *entry
	template *template
	text     string // the URL as given, for a fresh copy where nothing is to be kept
	guard    *egress.Policy
	location *time.Location
	redacted string
	warnings []string

	maskerOnce sync.Once
	masker     *redact.Masker // of the secrets; made when first needed
}

// copy is the destination without what it has kept.
func (d *Destination) copy() (*Destination, error) { return Parse(d.text, d.guard) }

// Close ends what the service keeps between messages, such as a connection.
// The destination can be used again afterwards, and opens what it needs.
func (d *Destination) Close() {
	if c, ok := d.service.(io.Closer); ok {
		_ = protect(c.Close)
	}
}

// Service is the name of the destination's service, for example "Discord".
func (d *Destination) Service() string { return d.schema.Name }

// Schemes are all schemes of the destination's service.
func (d *Destination) Schemes() []string { return d.entry.schemes }

// String is the URL with every secret masked, for people to read.
func (d *Destination) String() string { return d.redacted }

// URL is the URL in its canonical form, secrets included.
func (d *Destination) URL() string { return d.print(false) }

// redact masks the destination's secrets in a text.
func (d *Destination) redact(text string) string {
	d.maskerOnce.Do(func() { d.masker = redact.NewMasker(d.schema.secrets()) })
	return d.masker.Mask(text)
}

// Optional says that a failure of the destination is not one of the request.
func (d *Destination) Optional() bool { return d.options.optional }

// Warnings tell what of the URL has no effect, one sentence each and without
// secrets. Whoever loads URLs of an operator should log them.
func (d *Destination) Warnings() []string { return d.warnings }
