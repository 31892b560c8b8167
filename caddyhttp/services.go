package caddyhttp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/gateway/site"
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

// rule returns the rule for a site; nil if s is nil.
func (s *Services) rule() *site.ServiceRule {
	if s == nil {
		return nil
	}
	return &site.ServiceRule{Allow: s.Allow, Deny: s.Deny}
}

// Permits reports whether the service with these schemes may be used.
func (s *Services) Permits(schemes []string) bool { return s.rule().Permits(schemes) }
