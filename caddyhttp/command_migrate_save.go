package caddyhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/configstore"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// saveKeys saves the keys of an Apprise API in the storage of --config.
func (f *migrateFlags) saveKeys(cmd *cobra.Command, m *migration, saved []savedConfig) error {
	config, err := readConfig(cmd.InOrStdin(), f.config, f.adapter)
	if err != nil {
		return err
	}
	pool := egress.NewPool(userAgent)
	defer pool.Close()
	sender := notifier.NewSender(pool, notifier.DefaultConcurrency)
	defer sender.Close()
	s, fixed, err := findSavedKeys(config, sender)
	if err != nil {
		return err
	}
	configs := map[string]configstore.Config{}
	for _, c := range saved {
		if fixed[c.key] {
			m.skip("key %s: the configuration of --config has a key of this name, which takes precedence", c.key)
		} else if k, text, ok := m.savedForm(cmd.Context(), s, c); ok {
			m.keys = append(m.keys, k)
			configs[c.key] = text
		}
	}
	if n := len(m.defaultURLs); n > 0 {
		m.skip("APPRISE_STATELESS_URLS: write %s into default_urls of the Caddyfile", count(n, "URL"))
		m.defaultURLs = nil
	}
	if len(m.env) > 0 {
		m.note("the variables of the Apprise API are not moved with --save; without it, the command writes a Caddyfile with the settings that they stand for")
	}
	existing, err := s.store.Import(cmd.Context(), configs, s.MaxKeys, f.force)
	if errors.Is(err, configstore.ErrTooMany) {
		return fmt.Errorf("nothing is saved, because there would be more than %d saved keys; raise max_keys in configs", s.MaxKeys)
	}
	if err != nil {
		return err
	}
	for _, name := range existing {
		m.keys = slices.DeleteFunc(m.keys, func(k migratedKey) bool { return k.name == name })
		m.skip("key %s: it is saved already; replace it with --force", name)
	}
	return m.report(cmd.OutOrStdout(), fmt.Sprintf("Saved: %s in the storage of %s", count(len(m.keys), "key"), f.config))
}

// savedForm returns a key and its configuration as it is saved: byte for byte
// or, if something in it cannot be used, as text with the rest. It reports
// whether the key is moved.
func (m *migration) savedForm(ctx context.Context, s *savedKeys, c savedConfig) (k migratedKey, out configstore.Config, ok bool) {
	if err := checkKeyName(c.key); err != nil {
		m.skip("%s: %v", keyLabel(c.key), err)
		return k, out, false
	}
	if int64(len(c.text)) > s.MaxSize {
		m.skip("key %s: it has %d bytes; at most %d are allowed (max_size)", c.key, len(c.text), s.MaxSize)
		return k, out, false
	}
	k = migratedKey{name: c.key}
	out = configstore.Config{Format: c.format, Text: string(c.text)}
	entries, mistakes, warnings := s.entries(ctx, c.format, out.Text, s.fetch)
	if n := len(entries); n > s.MaxURLs {
		m.skip("key %s: it has %d URLs; at most %d are allowed (max_urls)", c.key, n, s.MaxURLs)
		return k, out, false
	}
	for _, w := range warnings {
		m.note("key %s, %v", c.key, w)
	}
	var lines strings.Builder
	tagged := 0
	for _, e := range entries {
		t, err := s.target(e)
		if err != nil {
			mistakes = append(mistakes, newSavedError(e.Line, e.Include, err))
			continue
		}
		k.urls = append(k.urls, migratedURL{label: label(t.Destination)})
		s.sender.Release(t.Destination)
		if len(e.Tags) > 0 {
			tagged++
			lines.WriteString(strings.Join(e.Tags, ",") + "=")
		}
		lines.WriteString(e.URL + "\n")
	}
	sortMistakes(mistakes)
	for _, e := range mistakes {
		m.skip("key %s, line %d: %s", c.key, e.line, e.text())
	}
	switch {
	case len(k.urls) == 0:
		m.skip("key %s: it has no URL that can be used", c.key)
		return k, out, false
	case len(mistakes) > 0:
		m.note("key %s: it is saved as text without what cannot be used, so its comments and groups are gone", c.key)
		out = configstore.Config{Format: configstore.FormatText, Text: lines.String()}
	}
	if tagged > 0 {
		m.note("key %s: a message without a tag goes to every URL; with Apprise API it goes to those without tags", c.key)
	}
	return k, out, true
}

// findSavedKeys returns the saved keys of the sites of a configuration, and the
// names of the keys in the configuration itself. It starts nothing.
func findSavedKeys(config []byte, sender *notifier.Sender) (s *savedKeys, fixed map[string]bool, err error) {
	app, sites, err := findSettings(config)
	if err != nil {
		return nil, nil, err
	}
	base, err := defaultSettings()
	if err != nil {
		return nil, nil, err
	}
	fixed = map[string]bool{}
	var found *resolved
	for i, settings := range append([]*Settings{app}, sites...) {
		for name := range settings.Keys {
			fixed[name] = true
		}
		r, err := settings.onlyKey("").resolve(base, parseUnshared, zap.NewNop())
		if err != nil {
			return nil, nil, err
		}
		if i == 0 {
			base = r
			continue
		}
		if r.configs != nil && found != nil && !reflect.DeepEqual(r.configs, found.configs) {
			return nil, nil, errors.New("sites of the configuration have different settings in configs; name a configuration with one of them")
		}
		if r.configs != nil {
			found = r
		}
	}
	if found == nil {
		return nil, nil, errors.New("the configuration of --config has no site with configs; write configs into the block of notify")
	}
	storage, err := findStorage(config)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the storage of --config: %w", err)
	}
	s, err = newSavedKeys(found, &savedStorage{storage: storage}, sender, zap.NewNop())
	return s, fixed, err
}

// findStorage returns the storage of a configuration.
func findStorage(config []byte) (certmagic.Storage, error) {
	var c struct {
		Storage json.RawMessage `json:"storage"`
	}
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, err
	}
	off := false
	ctx, err := caddy.ProvisionContext(&caddy.Config{
		Admin:      &caddy.AdminConfig{Disabled: true, Config: &caddy.ConfigSettings{Persist: &off}},
		StorageRaw: c.Storage,
	})
	if err != nil {
		return nil, err
	}
	return ctx.Storage(), nil
}
