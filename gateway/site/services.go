package site

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// ServiceRule names the services that may be used by their schemes. nil permits all.
type ServiceRule struct {
	Allow []string // all if it is empty
	Deny  []string
}

// Permits reports whether a service with these schemes may be used.
func (s *ServiceRule) Permits(schemes []string) bool {
	if s == nil {
		return true
	}
	named := func(list []string) bool {
		return slices.ContainsFunc(list, func(scheme string) bool {
			return slices.Contains(schemes, strings.ToLower(scheme))
		})
	}
	return (len(s.Allow) == 0 || named(s.Allow)) && !named(s.Deny)
}

// Check returns an error if the service of d may not be used.
func (s *ServiceRule) Check(d *notifier.Destination) error {
	if s.Permits(d.Schemes()) {
		return nil
	}
	return fmt.Errorf("the service %s may not be used here; the setting services forbids it", d.Service())
}

// Equal reports whether two sites have the same rules.
func (s *ServiceRule) Equal(o *ServiceRule) bool {
	return slices.Equal(s.Allow, o.Allow) && slices.Equal(s.Deny, o.Deny)
}

// ServiceRules permit a service if each of them does.
type ServiceRules []*ServiceRule

// Check returns the error of the first rule that does not permit the service of d.
func (r ServiceRules) Check(d *notifier.Destination) error {
	for _, s := range r {
		if err := s.Check(d); err != nil {
			return err
		}
	}
	return nil
}
