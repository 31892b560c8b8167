package caddyhttp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/internal/version"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// SaveKeys saves keys in a space of the configuration as [saved.Keys.Import] does, under the limits
// and the secret of configs. space is configstore.DefaultSpace or another name, or "" if there is only
// one. The sites may be running.
func (c *Config) SaveKeys(ctx context.Context, space string, keys []saved.KeyText, o saved.ImportOptions) ([]saved.KeyReport, error) {
	pool := egress.NewPool(version.Agent)
	defer pool.Close()
	sender := notifier.NewSender(pool, notifier.DefaultConcurrency)
	defer sender.Close()
	s, fixed, err := c.savedKeys(space, sender)
	if err != nil {
		return nil, err
	}
	o.Fixed = fixed
	return s.Import(ctx, keys, o)
}

// savedKeys returns the saved keys of a space, and the names of the keys of the
// configuration that take precedence over them. See [Config.SaveKeys].
func (c *Config) savedKeys(space string, sender *notifier.Sender) (s *saved.Keys, fixed map[string]bool, err error) {
	base, err := c.app.onlyKey("").resolve(nil, nil, parseUnshared, zap.NewNop())
	if err != nil {
		return nil, nil, err
	}
	storage, err := c.openStorage()
	if err != nil {
		return nil, nil, fmt.Errorf("opening the storage of --config: %w", err)
	}
	spaces := &saved.Spaces{Storage: storage}
	found := map[string]*saved.Keys{} // by the label of the space
	fixedIn := map[string]map[string]bool{}
	for _, handler := range c.sites {
		r, err := handler.onlyKey("").resolve(base, nil, parseUnshared, zap.NewNop())
		if err != nil {
			return nil, nil, err
		}
		owner := handler.configsOwner(handler)
		if handler.Configs == nil {
			owner = c.app.configsOwner(&c.app)
		}
		keys, err := newSavedKeys(r, spaces, owner, true, sender, zap.NewNop())
		if err != nil {
			return nil, nil, handler.Caddyfile.Locate("configs", errs.Prefix("configs", err))
		}
		if keys == nil {
			continue
		}
		label := keys.Shared.Label()
		if other := found[label]; other != nil &&
			(other.MaxKeys != keys.MaxKeys || other.MaxSize != keys.MaxSize || other.MaxURLs != keys.MaxURLs) {
			return nil, nil, fmt.Errorf("sites with the %s have different limits in configs; name a configuration with one of them", keys.Shared)
		}
		if other := found[label]; other != nil && other.DefaultTag != keys.DefaultTag {
			return nil, nil, fmt.Errorf("sites with the %s have different default_tag in configs; "+
				"name a configuration with one of them", keys.Shared)
		}
		if found[label] = keys; fixedIn[label] == nil {
			fixedIn[label] = map[string]bool{}
		}
		for _, settings := range []*Settings{&c.app, handler} {
			for name := range settings.Keys {
				fixedIn[label][name] = true
			}
		}
	}
	labels := slices.Sorted(maps.Keys(found))
	switch {
	case len(labels) == 0:
		return nil, nil, errors.New("the configuration of --config has no site with configs; write configs into the block of notify")
	case space == "" && len(labels) > 1:
		return nil, nil, fmt.Errorf("the sites of --config have several spaces of saved keys; name one with --space: %s",
			strings.Join(labels, ", "))
	case space == "":
		space = labels[0]
	case found[space] == nil:
		return nil, nil, fmt.Errorf("no site of --config has the space of --space; write one of %s", strings.Join(labels, ", "))
	}
	return found[space], fixedIn[space], nil
}

// openStorage returns the storage of the configuration.
func (c *Config) openStorage() (certmagic.Storage, error) {
	off := false
	ctx, err := caddy.ProvisionContext(&caddy.Config{
		Admin:      &caddy.AdminConfig{Disabled: true, Config: &caddy.ConfigSettings{Persist: &off}},
		StorageRaw: c.storage,
	})
	if err != nil {
		return nil, err
	}
	return ctx.Storage(), nil
}
