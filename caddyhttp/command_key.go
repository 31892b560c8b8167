package caddyhttp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"go.uber.org/zap"
)

// readConfig returns a configuration as JSON, adapted if necessary. The file
// "-" is standard input.
func readConfig(stdin io.Reader, file, adapter string) ([]byte, error) {
	file = cmp.Or(file, "Caddyfile")
	var text []byte
	var err error
	if file == "-" {
		text, err = io.ReadAll(stdin)
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w; set --config to its file", err)
	}
	if adapter == "" && json.Valid(text) {
		return text, nil
	}
	a := caddyconfig.GetAdapter(cmp.Or(adapter, "caddyfile"))
	if a == nil {
		return nil, fmt.Errorf("there is no config adapter %s", adapter)
	}
	if text, _, err = a.Adapt(text, map[string]any{"filename": file}); err != nil {
		return nil, fmt.Errorf("adapting the configuration: %w", err)
	}
	return text, nil
}

// loadKey returns the settings of the place that defines a key, with no other
// key. It starts nothing of the configuration, and the URLs of other keys may
// be wrong. A key of the notify app takes precedence over one of a site.
func loadKey(config []byte, name string) (*resolved, error) {
	app, sites, err := findSettings(config)
	if err != nil {
		return nil, err
	}
	r, err := defaultSettings()
	if err != nil {
		return nil, err
	}
	if r, err = app.onlyKey(name).resolve(r, parseUnshared, zap.NewNop()); err != nil {
		return nil, fmt.Errorf("the global option notify: %w", err)
	}
	if _, ok := app.Keys[name]; ok {
		return r, nil
	}
	site, err := findSite(sites, name)
	if err != nil {
		return nil, err
	}
	if site == nil {
		return nil, noKeyError(name, append(sites, app))
	}
	return site.onlyKey(name).resolve(r, parseUnshared, zap.NewNop())
}

// onlyKey returns the settings without other keys and default URLs.
func (s *Settings) onlyKey(name string) *Settings {
	c := *s
	c.DefaultURLs, c.Keys, c.Sources = nil, nil, nil
	if k := s.Keys[name]; k != nil {
		only := *k
		only.Accept = nil // it may name sources
		c.Keys = map[string]*Key{name: &only}
	} else if _, ok := s.Keys[name]; ok {
		c.Keys = map[string]*Key{name: nil}
	}
	return &c
}

// withoutInfo returns the settings without what the Caddyfile adapter records.
func (s *Settings) withoutInfo() *Settings {
	c := *s
	c.Caddyfile = nil
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
		if found != nil && !reflect.DeepEqual(found.onlyKey(name).withoutInfo(), s.onlyKey(name).withoutInfo()) {
			return nil, fmt.Errorf("several sites define the key %s, with different settings; define it in the global option notify", name)
		}
		found = s
	}
	return found, nil
}

// noKeyError returns the error for a key that does not exist. It lists the keys,
// whose names are not secret.
func noKeyError(name string, all []*Settings) error {
	names := map[string]bool{}
	for _, s := range all {
		for name := range s.Keys {
			names[name] = true
		}
	}
	if len(names) == 0 {
		return errors.New("the configuration has no keys; add key <name> { … } to a notify block")
	}
	return fmt.Errorf("the configuration has no key %s; it has %s", name, strings.Join(slices.Sorted(maps.Keys(names)), ", "))
}

// findSettings returns the settings of the notify app and of each notify
// handler in a configuration.
func findSettings(config []byte) (app *Settings, sites []*Settings, err error) {
	var c struct {
		Apps struct {
			Notify Settings        `json:"notify"`
			HTTP   json.RawMessage `json:"http"`
		} `json:"apps"`
	}
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, nil, fmt.Errorf("reading the configuration: %w", err)
	}
	if len(c.Apps.HTTP) > 0 {
		var tree any
		d := json.NewDecoder(bytes.NewReader(c.Apps.HTTP))
		d.UseNumber()
		if err := d.Decode(&tree); err != nil {
			return nil, nil, fmt.Errorf("reading the configuration: %w", err)
		}
		if sites, err = findHandlers(tree, nil); err != nil {
			return nil, nil, fmt.Errorf("reading the configuration: %w", err)
		}
	}
	return &c.Apps.Notify, sites, nil
}

// findHandlers appends to found the settings of the notify handlers in a JSON
// value, at any depth, because other handlers can contain them.
func findHandlers(tree any, found []*Settings) (_ []*Settings, err error) {
	switch tree := tree.(type) {
	case []any:
		for _, v := range tree {
			if found, err = findHandlers(v, found); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		if tree["handler"] == "notify" {
			text, err := json.Marshal(tree)
			if err != nil {
				return nil, err
			}
			s := new(Settings)
			return append(found, s), json.Unmarshal(text, s)
		}
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			if found, err = findHandlers(tree[name], found); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}
