package saved

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// Spaces are the spaces of saved keys that the sites of a configuration use.
type Spaces struct {
	Storage certmagic.Storage

	// Emit emits an event, and Forget removes what the gateway keeps for a key that a user has deleted.
	// Both are needed only for changes.
	Emit   func(name string, data func() map[string]any)
	Forget func(ctx context.Context, at site.Place, name, user string)

	byName map[string]*Space
}

// Space is a space of saved keys. The sites that use it have the same keys.
type Space struct {
	name  string // "" for the default space
	index configstore.Index

	// The options of the first configs with this space.
	options Options
	Owner   ConfigsOwner

	sites []*Keys

	// The rules of the sites through which keys of the space may be saved, without
	// repetition.
	policies []*egress.Policy
	services site.ServiceRules

	mu      sync.Mutex // held while the storage is checked
	Checked time.Time
	err     error // of the last check
}

// ConfigsOwner identifies the configs of a site or of the app.
type ConfigsOwner struct {
	ID any    // comparable; copies of a site in several servers have the same
	At string // its position; "" if it is unknown
}

// String names the owner in an error about another configs.
func (o ConfigsOwner) String() string {
	if o.At == "" {
		return "configs of another site"
	}
	return o.Place()
}

// Place names the configs in an error about it.
func (o ConfigsOwner) Place() string {
	if o.At == "" {
		return "configs"
	}
	return "configs at " + o.At
}

// Join returns the space of c. It returns an error if the space is used by configs that may not
// share it with c.
func (s *Spaces) Join(c Options, owner ConfigsOwner) (*Space, error) {
	space := s.byName[c.Space]
	if space == nil {
		space = &Space{name: c.Space, options: c, Owner: owner}
		if s.byName == nil {
			s.byName = map[string]*Space{}
		}
		s.byName[c.Space] = space
		return space, nil
	}
	first, other := space.options, space.Owner.String()
	differs := func(setting string) error {
		return fmt.Errorf("%s differs from that of %s, and both have the %s of saved keys; write the same into both, or give each its own "+
			"space (configs <space>)", setting, other, space)
	}
	switch {
	case c.Space == "" && owner.ID != space.Owner.ID:
		one, two := owner.String(), other
		if owner.At == "" {
			one = "this configs"
		} else if len(two) < len(one) || len(two) == len(one) && two < one {
			one, two = two, one // the first in the file, because Caddy loads sites in any order
		}
		return nil, fmt.Errorf("%s and %s name no space, so two sites would share the saved keys of the default one; write configs <space> in "+
			"both, with different names to keep the keys apart or with the same name to share them", one, two)
	case c.Trusted != first.Trusted:
		return nil, differs("trust")
	case c.Include != first.Include:
		return nil, differs("include")
	case c.Secret != first.Secret:
		return nil, differs("secret")
	}
	return space, nil
}

// Label returns the name of the space, or "default" if it has none.
func (p *Space) Label() string {
	if p.name == "" {
		return configstore.DefaultSpace
	}
	return p.name
}

// String names the space in an error.
func (p *Space) String() string {
	if p.name == "" {
		return "default space"
	}
	return "space " + p.name
}

// add adds a site to the space and sets the rules for its saved URLs: the rules of the site itself
// and, because another site may have saved a URL, of every site of the space that saves. Otherwise
// a client that may save at one site could use the rules of another.
func (p *Space) add(s *Keys, saves bool) {
	p.sites = append(p.sites, s)
	changed := false
	if policy := s.settings.Limits.Egress; saves &&
		!slices.ContainsFunc(p.policies, func(o *egress.Policy) bool { return o.Key() == policy.Key() }) {
		p.policies, changed = append(p.policies, policy), true
	}
	if services := s.settings.Services; saves && services != nil && !slices.ContainsFunc(p.services, services.Equal) {
		p.services, changed = append(p.services, services), true
	}
	if !changed {
		p.setRules(s)
		return
	}
	for _, one := range p.sites {
		p.setRules(one)
	}
}

// setRules sets the rules for saved URLs at a site.
func (p *Space) setRules(s *Keys) {
	own := s.settings
	if s.services = slices.Clone(p.services); own.Services != nil && !slices.ContainsFunc(s.services, own.Services.Equal) {
		s.services = append(s.services, own.Services)
	}
	if s.Trusted {
		return
	}
	s.policy = own.Limits.Egress
	if slices.ContainsFunc(p.policies, func(o *egress.Policy) bool { return o.Key() != s.policy.Key() }) {
		s.policy = egress.Strictest(append([]*egress.Policy{s.policy}, p.policies...)...)
	}
}

// statusAge is how long the result of a storage check is reused, so that frequent health checks
// cost little.
const statusAge = 5 * time.Second

// Check returns an error if the storage cannot be read or written.
func (p *Space) Check(ctx context.Context, store *configstore.Store) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.Checked) >= statusAge {
		p.err, p.Checked = store.Check(ctx), time.Now()
	}
	return p.err
}

// CheckSpace returns an error if name cannot be the name of a space.
func CheckSpace(name string) error {
	if err := configstore.CheckSpace(name); err != nil {
		return fmt.Errorf("space: %w", err)
	}
	return nil
}
