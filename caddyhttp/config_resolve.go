package caddyhttp

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// Defaults of the settings.
const (
	defaultMaxBody     = 8 << 20
	defaultMaxSize     = 200 << 20
	defaultMaxCount    = 6
	defaultMaxInFlight = 1000
)

// settled are settings with what only those need that inherit them.
type settled struct {
	*site.Site
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
	r := &settled{Site: &site.Site{
		Stateless: true,
		Limits: site.Limits{
			Limits: api.Limits{
				MaxBody: defaultMaxBody, MaxFiles: defaultMaxCount, MaxFileSize: defaultMaxSize,
				RemoteFiles: true, FetchTimeout: notifier.DefaultTimeout, Egress: policy,
			},
			Timeout:  notifier.DefaultTimeout,
			InFlight: site.InFlightLimits{Total: defaultMaxInFlight},
		},
		Page:        true,
		OriginCheck: http.NewCrossOriginProtection(),
		Identity:    &identity,
	}}
	return r, r.resolveClientLimits()
}

// resolve returns base with the values that s sets. parse makes a destination
// of a URL. Errors have the position in the Caddyfile, if it is known.
func (s *Settings) resolve(base *settled, parse parseFunc, log *zap.Logger) (*settled, error) {
	r, err := s.resolveAll(base, parse, log)
	return r, s.Caddyfile.Locate(block.Begin, err)
}

func (s *Settings) resolveAll(base *settled, parse parseFunc, log *zap.Logger) (*settled, error) {
	own := *base.Site
	r := &settled{&own, base.configs, base.console, base.client}
	var err error
	if s.Services != nil {
		if err := s.Services.validate(); err != nil {
			return nil, fmt.Errorf("services: %w", err)
		}
		r.Services = s.Services.rule()
	}
	if s.Egress != nil {
		if r.Limits.Egress, err = egress.NewPolicy(s.Egress.Allow, s.Egress.Deny); err != nil {
			return nil, err
		}
	}
	if err := s.resolveLimits(r); err != nil {
		return nil, err
	}
	if s.Stateless != nil {
		if r.Stateless = *s.Stateless; !r.Stateless && len(s.DefaultURLs) > 0 {
			return nil, errDefaultsWithoutStateless
		}
	}
	if s.ConfigID != nil {
		r.ConfigID = *s.ConfigID
	}
	if s.PropagateTrace != nil {
		r.PropagateTrace = *s.PropagateTrace
	}
	if s.PublicURL != "" {
		if r.PublicURL, err = parsePublicURL(s.PublicURL); err != nil {
			return nil, fmt.Errorf("public_url: %w", err)
		}
	}
	if s.Page != nil {
		r.Page = *s.Page
	}
	if len(s.TrustedOrigins) > 0 {
		if r.OriginCheck, err = site.NewOriginCheck(s.TrustedOrigins); err != nil {
			return nil, fmt.Errorf("trusted_origins: %w", err)
		}
	}
	if s.Configs != nil {
		if r.configs, err = s.Configs.resolve(); err != nil {
			return nil, s.Caddyfile.Locate("configs", errs.Prefix("configs", err))
		}
		if s.Configs.Escalate != nil && r.PublicURL == "" {
			return nil, s.Caddyfile.Locate(ruleName("", "escalate"), fmt.Errorf("configs: escalate: %w", errNoPublicURL))
		}
	}
	if err := s.resolveManagers(r); err != nil {
		return nil, err
	}
	if s.Identity != nil {
		if err := s.Identity.validate(); err != nil {
			return nil, fmt.Errorf("identity: %w", err)
		}
		r.Identity = s.Identity.resolve()
	}
	if err := s.resolveSources(r.Site); err != nil {
		return nil, err
	}
	return r, s.resolveTargets(r.Site, &keyLoader{parse: parse, services: r.Services, public: r.PublicURL, push: r.Push != nil, file: s.Caddyfile, log: log})
}

var errDefaultsWithoutStateless = errors.New("default_urls has no effect with stateless off, because only POST /notify uses it; remove one of them")

// defaultURLName returns the name of default URL i, counted from 0, in errors
// and in block.Info.Lines.
func defaultURLName(i int) string { return fmt.Sprintf("default_urls, URL %d", i+1) }

// resolveTargets sets the targets of default URLs and keys.
func (s *Settings) resolveTargets(r *site.Site, l *keyLoader) error {
	if len(s.DefaultURLs) > 0 {
		r.DefaultTargets = nil
		for i, url := range s.DefaultURLs {
			d, err := l.destination(url, s.DefaultURLsDir)
			if err != nil {
				return l.locate(defaultURLName(i), err)
			}
			r.DefaultTargets = append(r.DefaultTargets, notifier.Target{Destination: d})
		}
		l.logWarnings()
	}
	loaded, err := l.loadAll(slices.Sorted(maps.Keys(s.Keys)), s.Keys)
	if err != nil {
		return err
	}
	keys := make(map[string]*site.Key, len(r.Keys)+len(loaded))
	maps.Copy(keys, r.Keys)
	for _, k := range loaded {
		keys[k.Name] = k
	}
	r.Keys, r.HasSecrets = keys, false
	for _, k := range keys {
		r.HasSecrets = r.HasSecrets || len(k.Tokens)+len(k.Readers) > 0
	}
	return nil
}

// resolveLimits sets sizes, counts and times.
func (s *Settings) resolveLimits(r *settled) error {
	switch {
	case s.MaxBody < 0:
		return fmt.Errorf("max_body is %d; it must be a number of bytes above 0", s.MaxBody)
	case s.MaxBody > 0:
		r.Limits.MaxBody = s.MaxBody
	}
	switch {
	case s.Timeout < 0:
		return errors.New("timeout is negative; it must be a duration above 0, such as 30s")
	case s.Timeout > 0:
		r.Limits.Timeout = time.Duration(s.Timeout)
		r.Limits.FetchTimeout = r.Limits.Timeout
	}
	switch {
	case s.MaxInFlight < 0:
		return fmt.Errorf("max_in_flight is %d; it must be a number of messages above 0", s.MaxInFlight)
	case s.MaxInFlight > 0:
		r.Limits.InFlight.Total = s.MaxInFlight
	}
	if s.ClientLimits != nil {
		r.client = *s.ClientLimits
	}
	err := r.resolveClientLimits()
	if err == nil && s.ClientLimits != nil { // limits of the app may be above those of a site
		err = r.checkInFlight()
	}
	if err != nil {
		return s.Caddyfile.Locate("client_limits", errs.Prefix("client_limits", err))
	}
	a := s.Attachments
	if a == nil {
		return nil
	}
	r.Limits.MaxFileSize, r.Limits.MaxFiles, r.Limits.RemoteFiles = defaultMaxSize, defaultMaxCount, true
	switch {
	case a.MaxSize < 0:
		return fmt.Errorf("attachments: max_size is %d; it must be a number of bytes above 0", a.MaxSize)
	case a.MaxSize > 0:
		r.Limits.MaxFileSize = a.MaxSize
	}
	if a.MaxCount != nil {
		if *a.MaxCount < 0 {
			return fmt.Errorf("attachments: max_count is %d; it must be 0 (no files) or more", *a.MaxCount)
		}
		r.Limits.MaxFiles = *a.MaxCount
	}
	if a.Remote != nil {
		r.Limits.RemoteFiles = *a.Remote
	}
	return nil
}
