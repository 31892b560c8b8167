package notifier

import (
	"io"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/redact"
)

// Destination is a parsed notification URL: a service and the parameters that it
// sends with. It holds what the service keeps between messages, such as a
// session. It is safe for use by several goroutines.
type Destination struct {
	service  Service
	schema   *Schema
	options  *options
	entry    *entry
	template *template
	text     string // the URL as given, for a copy that keeps nothing
	policy   *egress.Policy
	location *time.Location
	redacted string
	warnings []string

	masksOnce sync.Once
	masks     *redact.Masker // of the secrets; made when first needed
}

// copy returns the destination without what its service keeps.
func (d *Destination) copy() (*Destination, error) { return Parse(d.text, d.policy) }

// Close closes what the service keeps between messages, such as a connection.
// The destination can still be used and opens what it needs.
func (d *Destination) Close() {
	if c, ok := d.service.(io.Closer); ok {
		_ = protect(c.Close)
	}
}

// Service returns the name of the destination's service, for example "Discord".
func (d *Destination) Service() string { return d.schema.Name }

// Schemes returns all schemes of the destination's service.
func (d *Destination) Schemes() []string { return d.entry.schemes }

// String returns the URL with every secret masked.
func (d *Destination) String() string { return d.redacted }

// URL returns the URL in its canonical form, with its secrets.
func (d *Destination) URL() string { return d.print(false) }

// masker returns the masker of the destination's secrets.
func (d *Destination) masker() *redact.Masker {
	d.masksOnce.Do(func() { d.masks = redact.NewMasker(d.schema.secrets()) })
	return d.masks
}

// redact masks the destination's secrets in a text.
func (d *Destination) redact(text string) string { return d.masker().Mask(text) }

// Recipients returns how many recipients a message to the destination has, such
// as chats or telephone numbers: see [Schema.Recipients].
func (d *Destination) Recipients() int {
	if n := d.schema.Recipients; n > 0 {
		return n
	}
	n := 0
	for _, p := range d.schema.params {
		if v, ok := d.schema.variables[p.index].(*listVar); ok && !p.list.repeats {
			n += v.len()
		}
	}
	return max(n, 1)
}

// Optional reports whether a failure of the destination does not count.
func (d *Destination) Optional() bool { return d.options.optional }

// Warnings returns what has no effect in the URL, one sentence each, without
// secrets. A program that loads URLs of an operator should log them.
func (d *Destination) Warnings() []string { return d.warnings }
