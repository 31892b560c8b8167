package caddyhttp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// serviceRule names the services that may be used by their schemes. nil permits all.
type serviceRule struct {
	allow []string // all if it is empty
	deny  []string
}

// permits reports whether the service with these schemes may be used.
func (s *serviceRule) permits(schemes []string) bool {
	if s == nil {
		return true
	}
	named := func(list []string) bool {
		return slices.ContainsFunc(list, func(scheme string) bool {
			return slices.Contains(schemes, strings.ToLower(scheme))
		})
	}
	return (len(s.allow) == 0 || named(s.allow)) && !named(s.deny)
}

// check returns an error if the service of d may not be used.
func (s *serviceRule) check(d *notifier.Destination) error {
	if s.permits(d.Schemes()) {
		return nil
	}
	return fmt.Errorf("the service %s may not be used here; the setting services forbids it", d.Service())
}

// equal reports whether two sites have the same rules.
func (s *serviceRule) equal(o *serviceRule) bool {
	return slices.Equal(s.allow, o.allow) && slices.Equal(s.deny, o.deny)
}

// serviceRules are rules that a service must all comply with.
type serviceRules []*serviceRule

// check returns an error if the service of d may not be used.
func (r serviceRules) check(d *notifier.Destination) error {
	for _, s := range r {
		if err := s.check(d); err != nil {
			return err
		}
	}
	return nil
}

// services returns the names of the services that the configuration sends to.
func (a *directory) services() (names []string) {
	for _, s := range append(slices.Clip(a.sites), a.resolved) {
		for _, t := range s.defaultTargets {
			names = append(names, t.Service())
		}
		for _, k := range s.keys {
			for _, t := range k.targets {
				names = append(names, t.Service())
			}
		}
	}
	return names
}
