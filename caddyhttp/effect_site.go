package caddyhttp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/similar"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// checkUse returns an error if no message can be sent to the site, or if no key accepts a
// source that the site configures.
func (h *Handler) checkUse() error {
	r := h.api.Resolved
	switch {
	case r.Saved.On():
		return nil
	case len(r.Keys) == 0 && !r.Stateless:
		return h.Caddyfile.Locate(block.Begin,
			errors.New("stateless off leaves nothing that messages could be sent to, because there is no key; "+
				"add key <name> { … }, add configs for saved keys, or remove stateless off"))
	case len(h.app.unknownSources) > 0:
		return nil // a misspelt accept may be the reason, so checkSources comes first
	}
	return h.checkFroms(maps.Values(r.Keys))
}

// checkFroms returns an error if no key of the app or of a site accepts a source that the
// app configures, or if no key of a site accepts one that the site configures. All sites
// must be known.
func (a *App) checkFroms() error {
	saved, all := a.settled.configs != nil, slices.Collect(maps.Values(a.gateway.Conf.Global.Keys))
	for _, h := range a.handlers {
		if h.api.Resolved.Saved.On() {
			saved = true
			continue
		}
		if err := h.checkFroms(maps.Values(h.api.Resolved.Keys)); err != nil {
			return err
		}
		all = slices.AppendSeq(all, maps.Values(h.api.Resolved.Keys))
	}
	if saved {
		return nil
	}
	return a.Settings.checkFroms(slices.Values(all))
}

// checkFroms returns an error if none of the keys accepts a source that s configures.
func (s *Settings) checkFroms(keys iter.Seq[*site.Key]) error {
	for _, name := range slices.Sorted(maps.Keys(s.Sources)) {
		accepted := false
		for k := range keys {
			accepted = accepted || k.CheckSource(name) == nil
		}
		if !accepted {
			return s.Caddyfile.Locate("from "+name,
				fmt.Errorf("from %[1]s: no key accepts messages from this source; add %[1]s to accept of a key, or remove the block", name))
		}
	}
	return nil
}

// checkMatcher returns an error if all paths of a matcher name keys that do not exist.
func checkMatcher(h httpcaddyfile.Helper, own *Handler, has *httpapi.SiteRoutes, paths []string) error {
	if has.Configs {
		return nil // it may be a saved key
	}
	names := slices.Collect(maps.Keys(own.Keys))
	var app struct {
		Keys map[string]json.RawMessage `json:"keys"`
	}
	if global, ok := h.Option("notify").(httpcaddyfile.App); ok {
		if err := json.Unmarshal(global.Value, &app); err != nil {
			return err
		}
	}
	names = slices.Sorted(slices.Values(slices.AppendSeq(names, maps.Keys(app.Keys))))
	missing := ""
	for _, path := range paths {
		key := keyOfPattern(path)
		if key == "" || reachesRoute(path, has, names) {
			return nil
		}
		missing = cmp.Or(missing, key)
	}
	if missing == "" {
		return nil
	}
	text := fmt.Sprintf("the matcher takes only addresses of the key %s, and there is no such key", markup.TruncateBytes(missing, 64))
	if near := similar.Names(missing, names); len(near) > 0 {
		text += "; you may mean " + strings.Join(near, " or ")
	}
	return errors.New(text + "; correct it, add the key to this block or to the global option notify, or add configs for saved keys")
}

// keyOfPattern returns the key, or the beginning of the keys, in a pattern of Caddy's path
// matcher, or "" if the pattern has none.
func keyOfPattern(pattern string) string {
	rest, ok := strings.CutPrefix(strings.ToLower(pattern), httpapi.RouteNotify+"/")
	if !ok {
		return ""
	}
	rest = pattern[len(pattern)-len(rest):] // as it is written
	if i := strings.IndexAny(rest, `/*?[\{%`); i >= 0 {
		rest = rest[:i]
	}
	return rest
}

// reachesRoute reports whether a pattern of Caddy's path matcher, which ignores case, may
// match a path of the gateway with one of the keys, or without a key.
func reachesRoute(pattern string, has *httpapi.SiteRoutes, keys []string) bool {
	pattern = strings.ToLower(pattern)
	prefix, literal := strings.TrimSuffix(pattern, "/"), true
	if i := strings.IndexAny(pattern, `*?[\{%`); i >= 0 {
		prefix, literal = pattern[:i], false
	}
	for _, spec := range httpapi.RouteSpecs() {
		if spec.On != nil && !spec.On(has) {
			continue
		}
		names := keys
		if !strings.Contains(spec.Pattern, "{KEY}") {
			names = []string{""}
		}
		for _, name := range names {
			path := strings.Replace(spec.Pattern, "{KEY}", strings.ToLower(name), 1)
			fixed, _, open := strings.Cut(strings.ToLower(path), "{")
			switch {
			case open && strings.HasPrefix(prefix, fixed), !literal && strings.HasPrefix(fixed+"/", prefix), literal && fixed == prefix:
				return true
			}
		}
	}
	return false
}
