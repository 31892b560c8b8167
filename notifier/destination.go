package notifier

import (
	"io"
	"slices"
	"strings"
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
	kind     *kind
	template *template
	text     string // the URL as given, for a fresh copy where nothing is to be kept
	guard    *egress.Policy
	location *time.Location
	redacted string
	warnings []string

	maskerOnce sync.Once
	masker     *redact.Masker // of the secrets; made when first needed
}

// Parse reads a notification URL. guard says where messages to it may lead:
// nil, for URLs of the operator, is anywhere. The error is a [*URLError].
func Parse(text string, guard *egress.Policy) (*Destination, error) {
	u, err := splitURL(text)
	if err != nil {
		return nil, err
	}
	if u.scheme == "http" || u.scheme == "https" {
		return parseNative(text, u, guard)
	}
	k := registry.byScheme[u.scheme]
	if k == nil {
		return nil, unknownScheme(u.scheme)
	}
	d := k.fresh(text, guard)
	if r, ok := d.service.(Rewriter); ok {
		if u, err = splitURL(r.Rewrite(text)); err != nil {
			return nil, err
		}
	}
	if d.warnings, d.template, err = d.schema.parse(u); err != nil {
		return nil, err
	}
	return d.finish()
}

// parseNative takes an address that a service itself has given out.
func parseNative(text string, u *raw, guard *egress.Policy) (*Destination, error) {
	address, _, _ := strings.Cut(strings.TrimSpace(text), "?")
	for _, k := range registry.kinds {
		for _, n := range k.schema.natives {
			values := n.match(address)
			if values == nil {
				continue
			}
			d := k.fresh(text, guard)
			d.schema.Scheme = k.schemes[0]
			for _, s := range k.schema.templates[0].schemes {
				if s.secure == (u.scheme == "https") {
					d.schema.Scheme = s.name
				}
			}
			if d.schema.server != nil {
				d.schema.server.Secure = u.scheme == "https"
			}
			query := u.query
			if n.bare != "" && len(query) > 0 && query[0].value == "" {
				values[n.bare], query = []string{query[0].key}, query[1:]
			}
			warnings, err := d.schema.assign(values, append(slices.Clone(n.implied), query...), nil)
			if err != nil {
				return nil, err
			}
			d.warnings, d.template = warnings, d.schema.templates[0]
			return d.finish()
		}
	}
	return nil, &URLError{Problem: "is a web address, but none that a service gives out; for a webhook of your own write json:// or jsons://, form:// or forms://"}
}

// fills says whether the parameters have a value for every place that t
// cannot do without.
func (s *Schema) fills(t *template) bool {
	full := true
	t.names(func(name string, optional bool) {
		p := s.byName[name]
		has := p.kind == KindList && len(p.items()) > 0 || p.kind != KindList && p.get() != ""
		full = full && (optional || has)
	})
	return full
}

func (k *kind) fresh(text string, guard *egress.Policy) *Destination {
	d := &Destination{service: k.new(), options: new(options), kind: k, text: text, guard: guard}
	d.schema = newSchema(d.service, d.options, k.compiled)
	return d
}

func (d *Destination) finish() (*Destination, error) {
	if f, ok := d.service.(Finisher); ok {
		if err := f.Finish(d.schema); err != nil {
			return nil, &URLError{Service: d.schema.Name, Problem: err.Error()}
		}
		if p := d.schema.byName["format"]; p.common {
			p.def = string(d.schema.Format)
		}
	}
	// A URL whose query brings what a place is for prints with it there. Where
	// none of the templates does, the query says it again.
	if !d.schema.fills(d.template) {
		for _, t := range d.schema.templates {
			if t.hasScheme(d.schema.Scheme) && d.schema.fills(t) {
				d.template = t
				break
			}
		}
	}
	d.location = time.Local
	if d.options.tz != "" {
		if l, err := time.LoadLocation(d.options.tz); err == nil {
			d.location = l
		}
	}
	d.redacted = d.schema.print(d.template, true)
	return d, nil
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
func (d *Destination) Schemes() []string { return d.kind.schemes }

// String is the URL with every secret masked, for people to read.
func (d *Destination) String() string { return d.redacted }

// URL is the URL in its canonical form, secrets included.
func (d *Destination) URL() string { return d.schema.print(d.template, false) }

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
