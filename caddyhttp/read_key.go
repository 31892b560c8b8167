package caddyhttp

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// LoadedKey is a key of a configuration, with the settings for messages to it.
type LoadedKey struct {
	Targets  []notifier.Target
	Identity *notifier.Identity // the sender
	Timeout  time.Duration      // for one destination, all attempts together

	key *site.Key
}

// Choose returns the targets that a tag expression selects, or an error if there
// are none. The empty expression stands for default_tag of the key.
func (k *LoadedKey) Choose(e notifier.TagExpr) ([]notifier.Target, error) {
	if len(k.Targets) == 0 {
		return nil, fmt.Errorf("the key %s has no URL, and its devices and its inbox get "+
			"messages only from the running gateway; send to its address there", k.key.Name)
	}
	return k.key.Choose(e)
}

// Key loads a key with the settings of the place that defines it. A key of the
// app takes precedence over one of a site. The URLs of other keys may be wrong.
func (c *Config) Key(name string) (*LoadedKey, error) {
	r, err := c.resolveKey(name)
	if err != nil {
		return nil, err
	}
	k := r.Keys[name]
	return &LoadedKey{Targets: k.Targets, Identity: r.Identity, Timeout: r.Limits.Timeout, key: k}, nil
}

// resolveKey returns the settings of the place that defines a key, with no other
// key.
func (c *Config) resolveKey(name string) (*settled, error) {
	push, err := c.push.resolve()
	if err != nil {
		return nil, errs.Prefix("push", err)
	}
	r, err := c.app.onlyKey(name).resolve(nil, push, parseUnshared, zap.NewNop())
	if err != nil {
		return nil, fmt.Errorf("the global option notify: %w", err)
	}
	if _, ok := c.app.Keys[name]; ok {
		return r, nil
	}
	handler, err := findSite(c.sites, name)
	if err != nil {
		return nil, err
	}
	if handler == nil {
		return nil, c.noKeyError(name)
	}
	return handler.onlyKey(name).resolve(r, push, parseUnshared, zap.NewNop())
}

// onlyKey returns the settings without other keys and default URLs.
func (s *Settings) onlyKey(name string) *Settings {
	c := *s
	c.DefaultURLs, c.Keys, c.Sources, c.MCP = nil, nil, nil, nil // mcp needs the tokens
	if k := s.Keys[name]; k != nil {
		only := *k
		only.Accept = nil                    // it may name sources
		only.Tokens, only.Readers = nil, nil // they are for clients
		c.Keys = map[string]*Key{name: &only}
	} else if _, ok := s.Keys[name]; ok {
		c.Keys = map[string]*Key{name: nil}
	}
	return &c
}

// withoutBlock returns the settings without what tells blocks of a Caddyfile apart.
func (s *Settings) withoutBlock() *Settings {
	c := *s
	c.Block, c.Caddyfile = 0, nil
	return &c
}

// findSite returns the site that defines a key, or nil. If several sites define
// it, their settings for it must be the same.
func findSite(sites []*Settings, name string) (*Settings, error) {
	var found *Settings
	for _, s := range sites {
		if _, ok := s.Keys[name]; !ok {
			continue
		}
		if found != nil && !reflect.DeepEqual(found.onlyKey(name).withoutBlock(), s.onlyKey(name).withoutBlock()) {
			return nil, fmt.Errorf("several sites define the key %s, with different settings; define it in the global option notify", name)
		}
		found = s
	}
	return found, nil
}

// noKeyError returns the error for a key that does not exist. It lists the keys,
// whose names are not secret.
func (c *Config) noKeyError(name string) error {
	names := c.keyNames()
	if len(names) == 0 {
		return errors.New("the configuration has no keys; add key <name> { … } to a notify block")
	}
	return fmt.Errorf("the configuration has no key %s; it has %s", name, strings.Join(slices.Sorted(maps.Keys(names)), ", "))
}

// keyNames returns the names of all keys, of the app and of sites.
func (c *Config) keyNames() map[string]bool {
	names := map[string]bool{}
	for name := range c.app.Keys {
		names[name] = true
	}
	for _, s := range c.sites {
		for name := range s.Keys {
			names[name] = true
		}
	}
	return names
}
