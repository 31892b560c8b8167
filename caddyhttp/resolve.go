package caddyhttp

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// settled are settings in use, with the values that only inheriting settings need.
type settled struct {
	*site.Site
	sources source.Set // besides the built-in ones
	configs *Configs   // with its defaults; nil if they are off
	console *Console   // nil if it is not set
	errors  string     // see Settings.Errors; "" for the default
}

// resolve returns the settings that s sets and, for what s does not set, the settings of base, or
// the defaults if base is nil. push are the devices of the app, or nil. parse makes a destination
// of a URL. Errors have the position in the Caddyfile, if it is known.
func (s *Settings) resolve(base *settled, push *site.Push, parse parseFunc, log *zap.Logger) (*settled, error) {
	if base == nil {
		base = &settled{}
	}
	r, err := s.settle(base, push, &keyLoader{parse: parse, file: s.Caddyfile, log: log})
	if e, ok := errors.AsType[*site.SettingError](err); ok {
		err = s.Caddyfile.Locate(e.Setting, err)
	}
	return r, s.Caddyfile.Locate(block.Begin, err)
}

func (s *Settings) settle(base *settled, push *site.Push, l *keyLoader) (r *settled, err error) {
	r = &settled{configs: base.configs, console: base.console, errors: cmp.Or(s.Errors, base.errors)}
	o := s.options()
	o.Base, o.Push, o.Log, o.Parse, o.Secret = base.Site, push, l.log, l.destination, placeholder.Resolve
	if err := s.setChecked(&o); err != nil {
		return nil, err
	}
	if r.sources, err = s.resolveSources(base.sources); err != nil {
		return nil, err
	}
	if s.Configs != nil {
		if r.configs, err = s.Configs.resolve(); err != nil {
			return nil, s.Caddyfile.Locate("configs", errs.Prefix("configs", err))
		}
	}
	if o.Managers, err = s.resolveManagers(r); err != nil {
		return nil, s.Caddyfile.Locate("console", errs.Prefix("console", err))
	}
	l.services = o.Services
	if l.services == nil && base.Site != nil {
		l.services = base.Services
	}
	if o.Keys, err = l.keyOptions(s.Keys); err != nil {
		return nil, err
	}
	if r.Site, err = site.New(o); err != nil {
		return nil, err
	}
	switch {
	case s.Configs != nil && s.Configs.Escalate != nil && r.PublicURL == "":
		return nil, s.Caddyfile.Locate(optionName("", "escalate"), fmt.Errorf("configs: escalate: %w", site.ErrNoPublicURL))
	case s.Console != nil && !r.Page:
		return nil, s.Caddyfile.Locate("console", errs.Prefix("console", errConsoleWithoutPages))
	}
	return r, nil
}

// options returns the options that need no check here.
func (s *Settings) options() site.Options {
	o := site.Options{
		Stateless: s.Stateless, Callbacks: s.AskCallback, ConfigID: s.ConfigID, MCP: s.MCP, Titles: s.Titles,
		PropagateTrace: s.PropagateTrace, Page: s.Page,
		MaxBody: s.MaxBody, Timeout: time.Duration(s.Timeout), MaxInFlight: s.MaxInFlight, TrustedOrigins: s.TrustedOrigins,
	}
	for _, url := range s.DefaultURLs {
		o.DefaultURLs = append(o.DefaultURLs, site.URL{URL: url, Dir: s.DefaultURLsDir})
	}
	if a := s.Attachments; a != nil {
		o.Files = &site.FileOptions{MaxSize: a.MaxSize, MaxCount: a.MaxCount, Remote: a.Remote}
	}
	if c := s.ClientLimits; c != nil {
		o.Clients = &site.ClientOptions{
			InFlight: c.InFlight, InFlightPerAddress: c.InFlightPerAddress, Memory: c.Memory,
			Deliveries: c.Deliveries, Requests: c.Requests, Bytes: c.Bytes, Retry: c.Retry, Wait: time.Duration(c.Wait),
		}
	}
	return o
}

// setChecked sets the options that are checked here, because only the adapter has their
// settings.
func (s *Settings) setChecked(o *site.Options) (err error) {
	if err := s.checkSite(o.Base == nil); err != nil {
		return fmt.Errorf("site: %w", err)
	}
	if s.Services != nil {
		if err := s.Services.validate(); err != nil {
			return fmt.Errorf("services: %w", err)
		}
		o.Services = s.Services.rule()
	}
	if s.Egress != nil {
		if o.Egress, err = message.NewPolicy(s.Egress.Allow, s.Egress.Deny); err != nil {
			return err
		}
	}
	if s.PublicURL != "" {
		if o.PublicURL, err = parsePublicURL(s.PublicURL); err != nil {
			return fmt.Errorf("public_url: %w", err)
		}
	}
	if s.Errors != "" {
		if err := checkErrors(s.Errors); err != nil {
			return fmt.Errorf("errors: %w", err)
		}
	}
	if s.Identity != nil {
		if err := s.Identity.validate(); err != nil {
			return fmt.Errorf("identity: %w", err)
		}
		o.Identity = s.Identity.resolve()
	}
	o.Ruler, err = s.resolveRuler()
	return err
}

// defaultURLName returns the name of default URL i, counted from 0, in errors
// and in block.Info.
func defaultURLName(i int) string { return fmt.Sprintf("default_urls, URL %d", i+1) }

// maxSiteName is the maximum length of the name of a site, in bytes.
const maxSiteName = 64

var (
	errSiteName   = errors.New("the name of a site has 1 to 64 letters, digits, _ and -")
	errGlobalSite = errors.New("it names one site, so it belongs into the notify of that site, and not into the global option")
)

// checkSiteName returns an error if a site cannot have the name.
func checkSiteName(name string) error {
	outside := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}
	if name == "" || len(name) > maxSiteName || strings.ContainsFunc(name, outside) {
		return errSiteName
	}
	return nil
}

// checkSite returns an error if the settings have a name that they cannot have. global means that
// the settings are for all sites.
func (s *Settings) checkSite(global bool) error {
	switch {
	case s.Site == "":
		return nil
	case global:
		return errGlobalSite
	}
	return checkSiteName(s.Site)
}

// errPublicURL is returned for an address that links cannot begin with.
var errPublicURL = errors.New("it must be the address at which the gateway is reached, " +
	"such as https://alerts.example.com, with the path before /notify if there is one, " +
	"and without a user, a query and a fragment")

// parsePublicURL returns the beginning of links to the gateway, without a slash at its
// end.
func parsePublicURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" ||
		u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return "", errPublicURL
	}
	if strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r == '"' || r == '<' || r == '>' || r == '{' || r == '}' || r == '#' || r == '*'
	}) {
		return "", errPublicURL
	}
	if site.HasDotSegment(u.Path) || strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), httpapi.RouteNotify) {
		return "", errPublicURL
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// checkSchemes returns an error if one of the schemes does not exist.
func checkSchemes(schemes []string) error {
	for _, scheme := range schemes {
		if notifier.SchemesOf(scheme) == nil {
			instead := "write what precedes :// in the URLs of a service, such as discord"
			if similar := notifier.SimilarServices(scheme); len(similar) > 0 && block.Quote(scheme) != "" {
				instead = "you may mean " + strings.Join(similar, " or ")
			}
			return fmt.Errorf("unknown scheme%s; %s", block.Quote(scheme), instead)
		}
	}
	return nil
}

// validate returns an error if a scheme does not exist or no service is left.
func (s *Services) validate() error {
	if err := checkSchemes(slices.Concat(s.Allow, s.Deny)); err != nil {
		return err
	}
	for _, scheme := range s.Allow {
		if s.Permits(notifier.SchemesOf(scheme)) {
			return nil
		}
	}
	if len(s.Allow) > 0 {
		return errors.New("no service is left, because deny names every service in allow; remove a scheme from deny")
	}
	return nil
}

// rule returns the rule for a site; nil if s is nil.
func (s *Services) rule() *site.ServiceRule {
	if s == nil {
		return nil
	}
	return &site.ServiceRule{Allow: s.Allow, Deny: s.Deny}
}

// Permits reports whether the service with these schemes may be used.
func (s *Services) Permits(schemes []string) bool { return s.rule().Permits(schemes) }
