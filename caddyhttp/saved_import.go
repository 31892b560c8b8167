package caddyhttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/internal/version"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// SaveKeys saves keys in the storage of the sites with configs, under the limits and the secret of
// configs, and returns a report for each. The sites may be running. It saves nothing and returns an
// error if there would be more than max_keys saved keys, or if a key has tags and neither configs
// nor the options have a default tag.
func (c *Config) SaveKeys(ctx context.Context, keys []saved.KeyText, options saved.SaveOptions) ([]saved.KeyReport, error) {
	pool := egress.NewPool(version.Agent)
	defer pool.Close()
	sender := notifier.NewSender(pool, notifier.DefaultConcurrency)
	defer sender.Close()
	s, fixed, err := c.savedKeys(options.Space, sender)
	if err != nil {
		return nil, err
	}
	if set := cmp.Or(s.DefaultTag, site.AllTag); options.DefaultTag != "" && !strings.EqualFold(options.DefaultTag, set) {
		return nil, fmt.Errorf("--default-tag is not what the configuration has; "+
			"write default_tag %s into %s, or give --default-tag %s",
			options.DefaultTag, s.Shared.Owner.Place(), set)
	}
	reports := make([]saved.KeyReport, len(keys))
	configs := map[string]configstore.Config{}
	var tagged []string // names of keys
	for i, k := range keys {
		if fixed[k.Name] {
			reports[i].Refused = errors.New("the configuration of --config has a key of this name, which takes precedence")
			continue
		}
		text := s.CheckText(ctx, k, &reports[i])
		if reports[i].Refused == nil {
			configs[k.Name] = text
		}
		if reports[i].Tagged && reports[i].Refused == nil {
			tagged = append(tagged, k.Name)
		}
	}
	if len(tagged) > 0 && s.DefaultTag == "" && options.DefaultTag == "" {
		slices.Sort(tagged)
		return nil, fmt.Errorf("nothing is saved, because URLs of %s have tags, and it is not decided "+
			"where a message without a tag goes: write default_tag untagged into %s to send it to the "+
			"URLs without tags, as Apprise API does, or give --default-tag all to send it to every URL",
			saved.NameKeys(tagged), s.Shared.Owner.Place())
	}
	existing, err := s.Store.Import(ctx, configs, s.MaxKeys, options.Replace)
	if errors.Is(err, configstore.ErrTooMany) {
		return nil, fmt.Errorf("nothing is saved, because there would be more than %d saved keys; raise max_keys in configs", s.MaxKeys)
	}
	if err != nil {
		return nil, err
	}
	for i, k := range keys {
		if reports[i].Refused == nil && slices.Contains(existing, k.Name) {
			reports[i].Refused = errors.New("it is saved already; replace it with --force")
		}
	}
	return reports, nil
}

// saved.Keys returns the saved keys of a space, and the names of the keys of the
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
