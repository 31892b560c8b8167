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
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// KeyText is the text to save under the name of a key.
type KeyText struct {
	Name   string
	Format string // configstore.FormatText or configstore.FormatYAML
	Text   string
}

// SavedKeyReport tells what SaveKeys has done with a KeyText.
type SavedKeyReport struct {
	Refused  error    // why the key is not saved; nil if it is
	Mistakes []string // what in the text cannot be used, with the lines
	Warnings []string // what in the text has no effect, with the lines
	URLs     int      // the number of URLs that can be used
	Tagged   bool     // one of these URLs has a tag

	// Rewritten means that the key is saved as text without its mistakes, and so
	// without its comments and groups.
	Rewritten bool
}

// SaveOptions are options of [Config.SaveKeys].
type SaveOptions struct {
	// Space is a space of saved keys, configstore.DefaultSpace, or "" if there is only
	// one.
	Space string

	// DefaultTag confirms what a message without a tag reaches, which is default_tag
	// in configs, or "all" where that is not set; "" for no confirmation.
	DefaultTag string

	Replace bool // saved keys of the same names
}

// SaveKeys saves keys where the sites with configs keep their own, under the
// limits and the secret of configs, and returns a report for each. The sites may
// be running. It saves nothing and returns an error if there would be more than
// max_keys saved keys, or if a key has tags and neither configs nor the options have
// a default tag.
func (c *Config) SaveKeys(ctx context.Context, keys []KeyText, options SaveOptions) ([]SavedKeyReport, error) {
	pool := egress.NewPool(userAgent)
	defer pool.Close()
	sender := notifier.NewSender(pool, notifier.DefaultConcurrency)
	defer sender.Close()
	s, fixed, err := c.savedKeys(options.Space, sender)
	if err != nil {
		return nil, err
	}
	if set := cmp.Or(s.DefaultTag, site.AllTag); options.DefaultTag != "" && !strings.EqualFold(options.DefaultTag, set) {
		return nil, fmt.Errorf("--default-tag is not what the configuration has; write default_tag %s into %s, or give --default-tag %s", options.DefaultTag, s.space.owner.place(), set)
	}
	reports := make([]SavedKeyReport, len(keys))
	configs := map[string]configstore.Config{}
	var tagged []string // names of keys
	for i, k := range keys {
		if fixed[k.Name] {
			reports[i].Refused = errors.New("the configuration of --config has a key of this name, which takes precedence")
			continue
		}
		text := s.checkText(ctx, k, &reports[i])
		if reports[i].Refused == nil {
			configs[k.Name] = text
		}
		if reports[i].Tagged && reports[i].Refused == nil {
			tagged = append(tagged, k.Name)
		}
	}
	if len(tagged) > 0 && s.DefaultTag == "" && options.DefaultTag == "" {
		slices.Sort(tagged)
		return nil, fmt.Errorf("nothing is saved, because URLs of %s have tags, and it is not decided where a message without a tag goes: write default_tag untagged into %s to send it to the URLs without tags, as Apprise API does, or give --default-tag all to send it to every URL", nameKeys(tagged), s.space.owner.place())
	}
	existing, err := s.store.Import(ctx, configs, s.MaxKeys, options.Replace)
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

// nameKeys returns "the key ops" or "the keys home, ops".
func nameKeys(names []string) string {
	if len(names) == 1 {
		return "the key " + names[0]
	}
	return "the keys " + strings.Join(names, ", ")
}

// checkText fills the report about k, and returns what to save: the text byte for
// byte or, if something in it cannot be used, as text with the rest.
func (s *savedKeys) checkText(ctx context.Context, k KeyText, report *SavedKeyReport) (out configstore.Config) {
	if report.Refused = site.CheckKeyName(k.Name); report.Refused != nil {
		return out
	}
	if int64(len(k.Text)) > s.MaxSize {
		report.Refused = fmt.Errorf("it has %d bytes; at most %d are allowed (max_size)", len(k.Text), s.MaxSize)
		return out
	}
	entries, mistakes, warnings := s.entries(ctx, k.Format, k.Text, s.fetch)
	if n := len(entries); n > s.MaxURLs {
		report.Refused = fmt.Errorf("it has %d URLs; at most %d are allowed (max_urls)", n, s.MaxURLs)
		return out
	}
	for _, w := range warnings {
		report.Warnings = append(report.Warnings, w.Error())
	}
	var lines strings.Builder
	for _, e := range entries {
		t, err := s.target(e)
		if err != nil {
			mistakes = append(mistakes, newSavedError(e.Line, e.Include, err))
			continue
		}
		s.sender.Release(t.Destination)
		report.URLs++
		if len(e.Tags) > 0 {
			report.Tagged = true
			lines.WriteString(strings.Join(e.Tags, ",") + "=")
		}
		lines.WriteString(e.URL + "\n")
	}
	sortMistakes(mistakes)
	for _, e := range mistakes {
		text := e.text()
		if e.line > 0 {
			text = fmt.Sprintf("line %d: %s", e.line, text)
		}
		report.Mistakes = append(report.Mistakes, text)
	}
	switch {
	case report.URLs == 0:
		report.Refused = errors.New("it has no URL that can be used")
	case len(mistakes) > 0:
		report.Rewritten = true
		return configstore.Config{Format: configstore.FormatText, Text: lines.String()}
	}
	return configstore.Config{Format: k.Format, Text: k.Text}
}

// savedKeys returns the saved keys of a space, and the names of the keys of the
// configuration that take precedence over them. See [Config.SaveKeys].
func (c *Config) savedKeys(space string, sender *notifier.Sender) (s *savedKeys, fixed map[string]bool, err error) {
	base, err := defaultSettings()
	if err != nil {
		return nil, nil, err
	}
	if base, err = c.app.onlyKey("").resolve(base, parseUnshared, zap.NewNop()); err != nil {
		return nil, nil, err
	}
	storage, err := c.openStorage()
	if err != nil {
		return nil, nil, fmt.Errorf("opening the storage of --config: %w", err)
	}
	spaces := &savedSpaces{storage: storage}
	found := map[string]*savedKeys{} // by the label of the space
	fixedIn := map[string]map[string]bool{}
	for _, handler := range c.sites {
		r, err := handler.onlyKey("").resolve(base, parseUnshared, zap.NewNop())
		if err != nil {
			return nil, nil, err
		}
		owner := handler.configsOwner(handler)
		if handler.Configs == nil {
			owner = c.app.configsOwner(&c.app)
		}
		keys, err := newSavedKeys(r, spaces, owner, true, sender, zap.NewNop())
		if err != nil {
			return nil, nil, handler.Caddyfile.locate("configs", site.PrefixError("configs", err))
		}
		if keys == nil {
			continue
		}
		label := keys.space.label()
		if other := found[label]; other != nil && (other.MaxKeys != keys.MaxKeys || other.MaxSize != keys.MaxSize || other.MaxURLs != keys.MaxURLs) {
			return nil, nil, fmt.Errorf("sites with the %s have different limits in configs; name a configuration with one of them", keys.space)
		}
		if other := found[label]; other != nil && other.DefaultTag != keys.DefaultTag {
			return nil, nil, fmt.Errorf("sites with the %s have different default_tag in configs; name a configuration with one of them", keys.space)
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
		return nil, nil, fmt.Errorf("the sites of --config have several spaces of saved keys; name one with --space: %s", strings.Join(labels, ", "))
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
