package caddyhttp

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// Settings are what can be set both for one site, on its handler, and for all
// sites, on the app. What a site does not set, it has from the app; what it
// does set replaces the app's value as a whole. Only keys add up: a site has
// those of the app and its own, and its own win.
type Settings struct {
	// The sets of destinations that `POST /notify/{KEY}` sends to, by name. A
	// name has 1 to 128 letters, digits, `_` and `-`; upper and lower case differ.
	Keys map[string]*Key `json:"keys,omitempty"`

	// Whether `POST /notify`, where the client brings the URLs, is open.
	// Default: true.
	Stateless *bool `json:"stateless,omitempty"`

	// The notification URLs that `POST /notify` sends to when a request brings
	// none. Placeholders such as `{env.DISCORD}` and `{file./run/secrets/discord}`
	// are resolved when the configuration loads.
	DefaultURLs []string `json:"default_urls,omitempty"`

	// Which services may be used. Default: all.
	Services *Services `json:"services,omitempty"`

	// Where the URLs that clients bring, and the attachments that they ask to
	// be fetched, may lead. Default: to public addresses.
	Egress *Egress `json:"egress,omitempty"`

	// What files clients may send along.
	Attachments *Attachments `json:"attachments,omitempty"`

	// How many bytes the JSON of a request may have, files in base64 included,
	// or the text of a form without its files. Default: 8388608 (8 MiB).
	MaxBody int64 `json:"max_body,omitempty"`

	// How long the delivery to one destination may take, all attempts together;
	// also how long fetching a request's attachments may take. Default: 30s.
	Timeout caddy.Duration `json:"timeout,omitempty"`

	// How many messages of clients the gateway may have under way at once, over
	// all sites; while it has that many, this site answers 503 to more, with
	// `Retry-After: 1` and before it reads them. What texts take of memory is
	// bounded by this number times `max_body`, some times over. Default: 1000.
	MaxInFlight int `json:"max_in_flight,omitempty"`

	// Whether the HTTP requests to destinations say which trace they belong to
	// (the headers `traceparent` and `tracestate`), where Caddy's `tracing` is in
	// front of the handler. Default: false.
	PropagateTrace *bool `json:"propagate_trace,omitempty"`

	// Whether browsers get a page on which to write a message, in answer to GET.
	// Default: true.
	Page *bool `json:"page,omitempty"`

	// The origins, such as `https://example.com`, whose pages may send messages
	// with the browser of who looks at them, or `*` for all. Other clients are
	// not concerned, and neither is the site itself. Default: none.
	TrustedOrigins []string `json:"trusted_origins,omitempty"`

	// Who messages come from, where a destination shows it.
	Identity *Identity `json:"identity,omitempty"`
}

// Services says which services notification URLs may name. A service is named
// by any of its schemas: `mailto` also stands for `mailtos`. Clients have to
// obey it, and so have keys and default URLs: a key of the app what the app
// says, a key of a site what the site says or else the app.
type Services struct {
	// If set, only these may be used.
	Allow []string `json:"allow,omitempty"`

	// These may not be used, even if they are allowed.
	Deny []string `json:"deny,omitempty"`
}

// Egress says which addresses URLs of clients, redirects of theirs, and
// attachments fetched for clients may lead to. Loopback, private, link-local
// and other addresses that are not public are refused unless they are allowed.
// URLs of the configuration may lead anywhere.
type Egress struct {
	// Ranges in CIDR notation, IP addresses, `private_ranges`, or `all`.
	Allow []string `json:"allow,omitempty"`

	// Ranges in CIDR notation, IP addresses, or `private_ranges`, refused even
	// if they are allowed.
	Deny []string `json:"deny,omitempty"`
}

// Attachments limits the files that go along with a message.
type Attachments struct {
	// How many bytes one file may have. Default: 209715200 (200 MiB).
	MaxSize int64 `json:"max_size,omitempty"`

	// How many files one request may have; 0 for none at all. Default: 6.
	MaxCount *int `json:"max_count,omitempty"`

	// Whether files are fetched from `http` and `https` addresses that a client
	// names. Default: true.
	Remote *bool `json:"remote,omitempty"`
}

// Identity is who messages come from. Placeholders are not resolved in it, so
// that braces are refused, but for two in the icon.
type Identity struct {
	// The sender's name. Default: Caddy.
	Name string `json:"name,omitempty"`

	// What the sender is, in a few words. Default: Caddy Notifications.
	Description string `json:"description,omitempty"`

	// Where to read about the sender. Default: https://caddyserver.com/.
	URL string `json:"url,omitempty"`

	// The address of a picture for the message. `{type}` in it becomes `info`,
	// `success`, `warning` or `failure`, and `{size}` the size in pixels, such as
	// `72x72`. Default: none.
	Icon string `json:"icon,omitempty"`

	// The address of a picture of the sender. Default: none.
	Logo string `json:"logo,omitempty"`
}

// MarshalLogObject implements zapcore.ObjectMarshaler. Caddy's debug log
// prints whole modules; this shows counts and hides the URLs.
func (s *Settings) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddInt("keys", len(s.Keys))
	enc.AddInt("default_urls", len(s.DefaultURLs))
	return nil
}

const (
	defaultMaxBody  = 8 << 20
	defaultMaxSize  = 200 << 20
	defaultMaxCount = 6
)

// resolved are settings that are complete, checked and ready for use. They do not
// change.
type resolved struct {
	keys           map[string]*key
	stateless      bool
	defaultTargets []notifier.Target
	services       *Services
	limits         api.Limits
	timeout        time.Duration
	maxInFlight    int
	propagateTrace bool
	identity       *notifier.Identity
	page           bool
	origins        *http.CrossOriginProtection // nil for no check
}

// defaultSettings are those of an app that sets nothing.
func defaultSettings() (*resolved, error) {
	policy, err := egress.NewPolicy(nil, nil)
	if err != nil {
		return nil, err
	}
	identity := notifier.DefaultIdentity()
	return &resolved{
		stateless: true,
		limits: api.Limits{
			MaxBody: defaultMaxBody, MaxFiles: defaultMaxCount, MaxFileSize: defaultMaxSize,
			RemoteFiles: true, FetchTimeout: notifier.DefaultTimeout, Egress: policy,
		},
		timeout:     notifier.DefaultTimeout,
		maxInFlight: defaultMaxInFlight,
		identity:    &identity,
		page:        true,
		origins:     http.NewCrossOriginProtection(),
	}, nil
}

// over completes the settings with the rules of base.
func (s *Settings) over(base *resolved, parse parser, log *zap.Logger) (*resolved, error) {
	r := *base
	if s.Services != nil {
		if err := s.Services.checkWhole(); err != nil {
			return nil, fmt.Errorf("services: %w", err)
		}
		r.services = s.Services
	}
	if s.Egress != nil {
		var err error
		if r.limits.Egress, err = egress.NewPolicy(s.Egress.Allow, s.Egress.Deny); err != nil {
			return nil, err
		}
	}
	if err := s.limits(&r); err != nil {
		return nil, err
	}
	if s.Stateless != nil {
		if r.stateless = *s.Stateless; !r.stateless && len(s.DefaultURLs) > 0 {
			return nil, errStatelessDefaults
		}
	}
	if s.PropagateTrace != nil {
		r.propagateTrace = *s.PropagateTrace
	}
	if s.Page != nil {
		r.page = *s.Page
	}
	if len(s.TrustedOrigins) > 0 {
		var err error
		if r.origins, err = crossOrigin(s.TrustedOrigins); err != nil {
			return nil, fmt.Errorf("trusted_origins: %w", err)
		}
	}
	if s.Identity != nil {
		if err := s.Identity.check(); err != nil {
			return nil, fmt.Errorf("identity: %w", err)
		}
		r.identity = s.Identity.complete()
	}
	load := loader{parse: parse, services: r.services, log: log}
	if len(s.DefaultURLs) > 0 {
		r.defaultTargets = nil
		for i, text := range s.DefaultURLs {
			d, err := load.destination(text, fmt.Sprintf("default_urls, URL %d", i+1))
			if err != nil {
				return nil, err
			}
			r.defaultTargets = append(r.defaultTargets, notifier.Target{Destination: d})
		}
	}
	r.keys = maps.Clone(base.keys)
	for _, name := range slices.Sorted(maps.Keys(s.Keys)) {
		k, err := load.key(name, s.Keys[name])
		if err != nil {
			return nil, err
		}
		if r.keys == nil {
			r.keys = map[string]*key{}
		}
		r.keys[name] = k
	}
	return &r, nil
}

var errStatelessDefaults = errors.New("default_urls are what POST /notify sends to, which stateless off turns off; leave one of them out")

// limits takes over sizes, counts and times.
func (s *Settings) limits(r *resolved) error {
	switch {
	case s.MaxBody < 0:
		return errors.New("max_body must be a number of bytes above 0")
	case s.MaxBody > 0:
		r.limits.MaxBody = s.MaxBody
	}
	switch {
	case s.Timeout < 0:
		return errors.New("timeout must be longer than 0")
	case s.Timeout > 0:
		r.timeout = time.Duration(s.Timeout)
		r.limits.FetchTimeout = r.timeout
	}
	switch {
	case s.MaxInFlight < 0:
		return errors.New("max_in_flight must be a number of messages above 0")
	case s.MaxInFlight > 0:
		r.maxInFlight = s.MaxInFlight
	}
	a := s.Attachments
	if a == nil {
		return nil
	}
	r.limits.MaxFileSize, r.limits.MaxFiles, r.limits.RemoteFiles = defaultMaxSize, defaultMaxCount, true
	switch {
	case a.MaxSize < 0:
		return errors.New("attachments: max_size must be a number of bytes above 0")
	case a.MaxSize > 0:
		r.limits.MaxFileSize = a.MaxSize
	}
	if a.MaxCount != nil {
		if *a.MaxCount < 0 {
			return errors.New("attachments: max_count must be 0, for none, or more")
		}
		r.limits.MaxFiles = *a.MaxCount
	}
	if a.Remote != nil {
		r.limits.RemoteFiles = *a.Remote
	}
	return nil
}

func (s *Services) check() error {
	for _, schema := range slices.Concat(s.Allow, s.Deny) {
		if notifier.SchemesOf(schema) == nil {
			return fmt.Errorf("%s is no schema of a service; write what stands before :// in its URLs, such as discord", plainWord(schema))
		}
	}
	return nil
}

// checkWhole also looks at both lists together.
func (s *Services) checkWhole() error {
	if err := s.check(); err != nil {
		return err
	}
	for _, schema := range s.Allow {
		if s.has(notifier.SchemesOf(schema)) {
			return nil
		}
	}
	if len(s.Allow) > 0 {
		return errors.New("deny takes away all that allow names, so that no service is left; take something out of deny")
	}
	return nil
}

// has says whether the service with these schemas may be used.
func (s *Services) has(schemas []string) bool {
	names := func(list []string) bool {
		return slices.ContainsFunc(list, func(schema string) bool {
			return slices.Contains(schemas, strings.ToLower(schema))
		})
	}
	return (len(s.Allow) == 0 || names(s.Allow)) && !names(s.Deny)
}

// permit returns an error where the destination's service may not be used. A
// nil s permits all.
func (s *Services) permit(d *notifier.Destination) error {
	if s == nil || s.has(d.Schemes()) {
		return nil
	}
	return fmt.Errorf("%s: the service may not be used here", d.Service())
}

var (
	errBraces     = errors.New("there are braces in it, but placeholders are not replaced here; write the text itself")
	errIconBraces = errors.New("there are braces in it other than those of {type} and {size}, but other placeholders are not replaced here")
	errAddress    = errors.New("an address is expected that begins with http:// or https:// and a host")
)

// check returns an error that begins with the name of what is wrong.
func (id *Identity) check() error {
	for _, p := range []struct{ name, value string }{{"name", id.Name}, {"description", id.Description}, {"url", id.URL}, {"logo", id.Logo}} {
		if strings.ContainsAny(p.value, "{}") {
			return fmt.Errorf("%s: %w", p.name, errBraces)
		}
	}
	if strings.ContainsAny(iconPlaceholders.Replace(id.Icon), "{}") {
		return fmt.Errorf("icon: %w", errIconBraces)
	}
	for _, p := range []struct{ name, value string }{{"url", id.URL}, {"icon", id.Icon}, {"logo", id.Logo}} {
		if p.value == "" {
			continue
		}
		u, err := url.Parse(iconPlaceholders.Replace(p.value))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("%s: %w", p.name, errAddress)
		}
	}
	return nil
}

// iconPlaceholders puts examples into an icon's address.
var iconPlaceholders = strings.NewReplacer("{type}", "info", "{size}", "72x72")

// complete fills in what is not set.
func (id *Identity) complete() *notifier.Identity {
	out := notifier.DefaultIdentity()
	out.Name = cmp.Or(id.Name, out.Name)
	out.Description = cmp.Or(id.Description, out.Description)
	out.URL = cmp.Or(id.URL, out.URL)
	out.Icon, out.Logo = id.Icon, id.Logo
	return &out
}
