package caddyhttp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Defaults of the settings.
const (
	defaultMaxBody     = 8 << 20
	defaultMaxSize     = 200 << 20
	defaultMaxCount    = 6
	defaultMaxInFlight = 1000
)

// resolved are settings with all defaults, checked and ready for use. They do
// not change.
type resolved struct {
	keys           map[string]*key
	hasSecrets     bool                      // one of the keys has a token or a reader
	sources        map[string]*source.Source // of the configuration
	stateless      bool
	configID       bool              // X-Apprise-Config-ID names keys without a token, too
	defaultTargets []notifier.Target // of default_urls
	services       *serviceRule      // nil for all
	limits         api.Limits
	timeout        time.Duration
	maxInFlight    int
	inFlight       inFlightLimits
	memory         int64
	propagateTrace bool
	page           bool
	originCheck    *http.CrossOriginProtection // nil for no check
	identity       *notifier.Identity
	managers       *managers // nil if nobody may manage
	saved          finder    // of a handler, or of the app for mails

	push    *pushSettings // nil for no devices
	devices receivers

	publicURL string // the beginning of links to the gateway; "" if it is not known
}

// finder finds the saved keys of a site. The zero value finds none.
type finder struct {
	// find returns a key. The error is an [*api.Error], errNoKey if there is none.
	find func(ctx context.Context, name string) (*key, error)

	// protected reports whether a saved key has a token.
	protected func(context.Context) bool

	// names returns the names of all saved keys.
	names func(context.Context) ([]string, error)

	// places returns the places of keys by name (see [delivery.place]). It has none of a key
	// that does not exist.
	places func(ctx context.Context, names []string) (map[string]string, error)

	space string        // to which they belong; "" for the default one
	rules *rules.Rules  // of every saved key; nil for none
	inbox time.Duration // how long every saved key keeps its messages readable; 0 for not at all
}

// on reports whether the site has saved keys.
func (f *finder) on() bool { return f.find != nil }

// placesOf is like places, also if the site has no saved keys.
func (f *finder) placesOf(ctx context.Context, names []string) (map[string]string, error) {
	if !f.on() {
		return map[string]string{}, nil
	}
	return f.places(ctx, names)
}

// receivers adds the devices of keys to their destinations. The zero value adds none.
type receivers struct {
	// ready waits until the devices are known. The error, an [*api.Error], is returned if
	// they cannot be read, so that no message is answered as if there were none.
	ready func() error

	// add returns a key with its devices among its destinations: the same key if it has
	// none.
	add func(*key) *key
}

// on reports whether keys can have devices.
func (r *receivers) on() bool { return r.add != nil }

// wait waits until the devices are known.
func (r *receivers) wait() error {
	if r.ready == nil {
		return nil
	}
	return r.ready()
}

// with returns a key with its devices among its destinations.
func (r *receivers) with(k *key) *key {
	if r.add == nil || k == nil {
		return k
	}
	return r.add(k)
}

// key returns a key of the configuration or, if there is none, a saved one. The
// error is an [*api.Error].
func (r *resolved) key(ctx context.Context, name string) (*key, error) {
	if err := r.devices.wait(); err != nil {
		return nil, err
	}
	if k := r.configured(name); k != nil {
		return k, nil
	}
	if !r.saved.on() {
		return nil, errNoKey
	}
	k, err := r.saved.find(ctx, name)
	if err != nil {
		return nil, err
	}
	return r.devices.with(k), nil
}

// configured returns a key of the configuration with its devices, or nil.
func (r *resolved) configured(name string) *key {
	if k := r.keys[name]; k != nil {
		return r.devices.with(k)
	}
	return nil
}

// configuredKey returns name if a key of the configuration has it, and otherwise "".
func (r *resolved) configuredKey(name string) string {
	if r.keys[name] == nil {
		return ""
	}
	return name
}

// settled are settings with what only those need that inherit them.
type settled struct {
	*resolved
	configs *Configs     // with its defaults; nil if they are off
	console *Console     // nil if it is not set
	client  ClientLimits // as configured
}

// defaultSettings returns the settings of an app that sets nothing.
func defaultSettings() (*settled, error) {
	policy, err := egress.NewPolicy(nil, nil)
	if err != nil {
		return nil, err
	}
	identity := notifier.DefaultIdentity()
	r := &settled{resolved: &resolved{
		stateless: true,
		limits: api.Limits{
			MaxBody: defaultMaxBody, MaxFiles: defaultMaxCount, MaxFileSize: defaultMaxSize,
			RemoteFiles: true, FetchTimeout: notifier.DefaultTimeout, Egress: policy,
		},
		timeout:     notifier.DefaultTimeout,
		maxInFlight: defaultMaxInFlight,
		page:        true,
		originCheck: http.NewCrossOriginProtection(),
		identity:    &identity,
	}}
	return r, r.resolveClientLimits()
}

// resolve returns base with the values that s sets. parse makes a destination
// of a URL. Errors have the position in the Caddyfile, if it is known.
func (s *Settings) resolve(base *settled, parse parseFunc, log *zap.Logger) (*settled, error) {
	r, err := s.resolveAll(base, parse, log)
	return r, s.Caddyfile.locate(blockLine, err)
}

func (s *Settings) resolveAll(base *settled, parse parseFunc, log *zap.Logger) (*settled, error) {
	own := *base.resolved
	r := &settled{&own, base.configs, base.console, base.client}
	var err error
	if s.Services != nil {
		if err := s.Services.validate(); err != nil {
			return nil, fmt.Errorf("services: %w", err)
		}
		r.services = s.Services.rule()
	}
	if s.Egress != nil {
		if r.limits.Egress, err = egress.NewPolicy(s.Egress.Allow, s.Egress.Deny); err != nil {
			return nil, err
		}
	}
	if err := s.resolveLimits(r); err != nil {
		return nil, err
	}
	if s.Stateless != nil {
		if r.stateless = *s.Stateless; !r.stateless && len(s.DefaultURLs) > 0 {
			return nil, errDefaultsWithoutStateless
		}
	}
	if s.ConfigID != nil {
		r.configID = *s.ConfigID
	}
	if s.PropagateTrace != nil {
		r.propagateTrace = *s.PropagateTrace
	}
	if s.PublicURL != "" {
		if r.publicURL, err = parsePublicURL(s.PublicURL); err != nil {
			return nil, fmt.Errorf("public_url: %w", err)
		}
	}
	if s.Page != nil {
		r.page = *s.Page
	}
	if len(s.TrustedOrigins) > 0 {
		if r.originCheck, err = newOriginCheck(s.TrustedOrigins); err != nil {
			return nil, fmt.Errorf("trusted_origins: %w", err)
		}
	}
	if s.Configs != nil {
		if r.configs, err = s.Configs.resolve(); err != nil {
			return nil, s.Caddyfile.locate("configs", prefixError("configs", err))
		}
		if s.Configs.Escalate != nil && r.publicURL == "" {
			return nil, s.Caddyfile.locate(ruleName("", "escalate"), fmt.Errorf("configs: escalate: %w", errNoPublicURL))
		}
	}
	if err := s.resolveManagers(r); err != nil {
		return nil, err
	}
	if s.Identity != nil {
		if err := s.Identity.validate(); err != nil {
			return nil, fmt.Errorf("identity: %w", err)
		}
		r.identity = s.Identity.resolve()
	}
	if err := s.resolveSources(r.resolved); err != nil {
		return nil, err
	}
	return r, s.resolveTargets(r.resolved, &keyLoader{parse: parse, services: r.services, public: r.publicURL, push: r.push != nil, file: s.Caddyfile, log: log})
}

var errDefaultsWithoutStateless = errors.New("default_urls has no effect with stateless off, because only POST /notify uses it; remove one of them")

// defaultURLName returns the name of default URL i, counted from 0, in errors
// and in CaddyfileInfo.Lines.
func defaultURLName(i int) string { return fmt.Sprintf("default_urls, URL %d", i+1) }

// resolveTargets sets the targets of default URLs and keys.
func (s *Settings) resolveTargets(r *resolved, l *keyLoader) error {
	if len(s.DefaultURLs) > 0 {
		r.defaultTargets = nil
		for i, url := range s.DefaultURLs {
			d, err := l.destination(url, s.DefaultURLsDir)
			if err != nil {
				return l.locate(defaultURLName(i), err)
			}
			r.defaultTargets = append(r.defaultTargets, notifier.Target{Destination: d})
		}
		l.logWarnings()
	}
	loaded, err := l.loadAll(slices.Sorted(maps.Keys(s.Keys)), s.Keys)
	if err != nil {
		return err
	}
	keys := make(map[string]*key, len(r.keys)+len(loaded))
	maps.Copy(keys, r.keys)
	for _, k := range loaded {
		keys[k.name] = k
	}
	r.keys, r.hasSecrets = keys, false
	for _, k := range keys {
		r.hasSecrets = r.hasSecrets || len(k.tokens)+len(k.readers) > 0
	}
	return nil
}

// resolveLimits sets sizes, counts and times.
func (s *Settings) resolveLimits(r *settled) error {
	switch {
	case s.MaxBody < 0:
		return fmt.Errorf("max_body is %d; it must be a number of bytes above 0", s.MaxBody)
	case s.MaxBody > 0:
		r.limits.MaxBody = s.MaxBody
	}
	switch {
	case s.Timeout < 0:
		return errors.New("timeout is negative; it must be a duration above 0, such as 30s")
	case s.Timeout > 0:
		r.timeout = time.Duration(s.Timeout)
		r.limits.FetchTimeout = r.timeout
	}
	switch {
	case s.MaxInFlight < 0:
		return fmt.Errorf("max_in_flight is %d; it must be a number of messages above 0", s.MaxInFlight)
	case s.MaxInFlight > 0:
		r.maxInFlight = s.MaxInFlight
	}
	if s.ClientLimits != nil {
		r.client = *s.ClientLimits
	}
	err := r.resolveClientLimits()
	if err == nil && s.ClientLimits != nil { // limits of the app may be above those of a site
		err = r.checkInFlight()
	}
	if err != nil {
		return s.Caddyfile.locate("client_limits", prefixError("client_limits", err))
	}
	a := s.Attachments
	if a == nil {
		return nil
	}
	r.limits.MaxFileSize, r.limits.MaxFiles, r.limits.RemoteFiles = defaultMaxSize, defaultMaxCount, true
	switch {
	case a.MaxSize < 0:
		return fmt.Errorf("attachments: max_size is %d; it must be a number of bytes above 0", a.MaxSize)
	case a.MaxSize > 0:
		r.limits.MaxFileSize = a.MaxSize
	}
	if a.MaxCount != nil {
		if *a.MaxCount < 0 {
			return fmt.Errorf("attachments: max_count is %d; it must be 0 (no files) or more", *a.MaxCount)
		}
		r.limits.MaxFiles = *a.MaxCount
	}
	if a.Remote != nil {
		r.limits.RemoteFiles = *a.Remote
	}
	return nil
}
