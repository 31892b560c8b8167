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

// readConfig reads a configuration as JSON, or what an adapter makes of it.
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
		return nil, fmt.Errorf("reading the configuration: %w; --config names its file", err)
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

// loadKey makes one key of a configuration ready for use, with the rules of
// the place where it stands. Nothing of the configuration is started, and the
// URLs of other keys are not looked at.
//
// A key of the notify app comes before one of the same name in a site.
func loadKey(config []byte, name string) (*resolved, error) {
	app, sites, err := findSettings(config)
	if err != nil {
		return nil, err
	}
	r, err := defaultSettings()
	if err != nil {
		return nil, err
	}
	_, shared := app.Keys[name]
	if r, err = app.only(name).over(r, parseAlone, zap.NewNop()); err != nil {
		return nil, fmt.Errorf("the global notify block: %w", err)
	}
	if shared {
		return r, nil
	}
	site, err := siteWith(sites, name)
	if err != nil {
		return nil, err
	}
	if site == nil {
		return nil, noSuchKey(name, append(sites, app))
	}
	return site.only(name).over(r, parseAlone, zap.NewNop())
}

// only is the settings without what sending to one key does not need.
func (s *Settings) only(name string) *Settings {
	c := *s
	c.DefaultURLs, c.Keys = nil, nil
	if k, ok := s.Keys[name]; ok {
		c.Keys = map[string]*Key{name: k}
	}
	return &c
}

// siteWith finds the site that has the key. Where several have it, they must
// mean the same.
func siteWith(sites []*Settings, name string) (*Settings, error) {
	var found *Settings
	for _, s := range sites {
		if _, ok := s.Keys[name]; !ok {
			continue
		}
		if found != nil && !reflect.DeepEqual(found.only(name), s.only(name)) {
			return nil, fmt.Errorf("several sites have a key %s, and they differ; put the key into the global notify block", name)
		}
		found = s
	}
	return found, nil
}

// noSuchKey says which keys there are. Their names are no secrets.
func noSuchKey(name string, all []*Settings) error {
	names := map[string]bool{}
	for _, s := range all {
		for name := range s.Keys {
			names[name] = true
		}
	}
	if len(names) == 0 {
		return errors.New("the configuration has no keys")
	}
	return fmt.Errorf("the configuration has no key %s; it has %s", name, strings.Join(slices.Sorted(maps.Keys(names)), ", "))
}

// findSettings finds the settings of the notify app and of each handler in a
// configuration.
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

// findHandlers collects the settings of the notify handlers below a value of
// JSON, wherever other handlers nest them.
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
