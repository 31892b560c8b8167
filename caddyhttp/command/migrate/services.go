package migrate

import (
	"errors"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// schemePrefix matches the part of an item in a list of services that Apprise API uses.
var schemePrefix = lazyregexp.New(`^[A-Za-z][A-Za-z0-9]+`)

// deniedByDefault is the default of APPRISE_DENY_SERVICES.
const deniedByDefault = "windows,dbus,gnome,macosx,syslog"

// setServices makes the setting services. As in Apprise API, the allowed
// services take precedence over the denied ones.
func (s *settings) setServices() error {
	known := func(list string) (known, unknown []string) {
		for _, item := range strings.FieldsFunc(list, isListSeparator) {
			scheme := strings.ToLower(schemePrefix.FindString(item))
			if scheme == "" {
				continue
			}
			if notifier.SchemesOf(scheme) == nil {
				unknown = append(unknown, scheme)
			} else if !slices.Contains(known, scheme) {
				known = append(known, scheme)
			}
		}
		return known, unknown
	}
	if allow := s.env["APPRISE_ALLOW_SERVICES"]; allow != "" {
		var unknown []string
		if s.services.Allow, unknown = known(allow); len(s.services.Allow) == 0 {
			return errors.New("APPRISE_ALLOW_SERVICES: none of its services exists here, " +
				"so no message could be sent; caddy notify services lists all")
		}
		for _, scheme := range unknown {
			s.report.skip("APPRISE_ALLOW_SERVICES: there is no service %s", scheme)
		}
		return nil
	}
	deny, ok := s.env["APPRISE_DENY_SERVICES"]
	if !ok {
		deny = deniedByDefault
	}
	// An unknown service cannot be used, so it need not be denied.
	s.services.Deny, _ = known(deny)
	return nil
}
