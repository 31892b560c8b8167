package caddyhttp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/notifier"
)

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

// Permits reports whether the service with these schemes may be used.
func (s *Services) Permits(schemes []string) bool {
	named := func(list []string) bool {
		return slices.ContainsFunc(list, func(scheme string) bool {
			return slices.Contains(schemes, strings.ToLower(scheme))
		})
	}
	return (len(s.Allow) == 0 || named(s.Allow)) && !named(s.Deny)
}

// check returns an error if the service of d may not be used. A nil s permits
// all services.
func (s *Services) check(d *notifier.Destination) error {
	if s == nil || s.Permits(d.Schemes()) {
		return nil
	}
	return fmt.Errorf("the service %s may not be used here; the setting services forbids it", d.Service())
}
