package notifier

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"sync"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// unusable is the service of a destination from [Unusable]. URLs cannot name it.
type unusable struct {
	url      string
	err      error
	unfilled bool // see Unfilled
}

func (u *unusable) Describe(s *Schema) {
	s.Name = "Unknown"
	s.URL("unusable://{url}")
	s.String(&u.url, "url", "", "the URL")
}

// Send implements [Service]. A delivery does not call it (see delivery.attempts).
func (u *unusable) Send(context.Context, *Client, *Message) error { return u.err }

// unusableEntry is made at its first use, because newEntry uses variables of the
// package that may be initialized later than this one.
var unusableEntry = sync.OnceValue(func() *entry { return newEntry(new(unusable)) })

// Unusable returns a destination for a URL that cannot be used because of err: each delivery to it
// fails permanently with err. The text of err is for clients. If the URL can be parsed, the
// destination is shown and identified like the one from [Parse]; otherwise only the scheme is
// shown, if a service has it.
func Unusable(url string, policy *egress.Policy, err error) *Destination {
	return newUnusable(url, policy, &unusable{err: permanent(err)})
}

// Unfilled is like [Unusable] for a URL whose variables have no values. Only its scheme is
// shown, because the rest names the variables.
func Unfilled(url string, policy *egress.Policy, err error) *Destination {
	return newUnusable(url, policy, &unusable{err: permanent(err), unfilled: true})
}

func newUnusable(url string, policy *egress.Policy, u *unusable) *Destination {
	e := unusableEntry()
	own := *e.schema
	sum := sha256.Sum256([]byte(url))
	shown := &printed{hash: base64.RawURLEncoding.EncodeToString(sum[:])}
	if d, err := Parse(url, nil); err == nil && !u.unfilled {
		own.Name = d.Service()
		shown = &printed{redacted: d.String(), hash: d.Hash()}
		d.Close()
	} else if scheme, _, ok := strings.Cut(url, "://"); ok && registry.byScheme[strings.ToLower(scheme)] != nil {
		own.Name = registry.byScheme[strings.ToLower(scheme)].schema.Name
		shown.redacted = strings.ToLower(scheme) + "://"
	}
	t := e.schema.templates[0]
	d := &Destination{
		entry: e, schema: &own, service: u, options: e.options, template: t, scheme: &t.Schemes[0],
		text: url, policy: policy,
	}
	if shown.redacted == "" {
		shown.redacted = "an unknown URL"
	}
	d.printed.Store(shown)
	return d
}

// permanent returns err as an error for which another attempt is useless.
func permanent(err error) error {
	if temporary(err) {
		return unusableError{err}
	}
	return err
}

// unusableError is the permanent error of each delivery to an unusable URL.
type unusableError struct{ error }

func (e unusableError) Unwrap() error { return e.error }
