package caddyhttp

import (
	"slices"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// definition is a key with the settings of the place that defines it.
type definition struct {
	key      *key
	settings *resolved
	scope    string // global or site
}

// definitions returns the keys of the app and its sites, by name. A key that
// several sites define in the same way, for example by importing a snippet, is
// listed once.
func (a *directory) definitions() map[string][]definition {
	out := map[string][]definition{}
	add := func(r *resolved, scope string) {
		for name, k := range r.keys {
			if !slices.ContainsFunc(out[name], func(d definition) bool { return d.key.equal(k) }) {
				out[name] = append(out[name], definition{k, r, scope})
			}
		}
	}
	add(a.resolved, "global")
	for _, settings := range a.sites {
		add(settings, "site")
	}
	for _, all := range out {
		for i, d := range all {
			all[i].key = d.settings.devices.with(d.key)
		}
	}
	return out
}

// homes returns a key once for each place that defines it: the app, or a site.
func (a *directory) homes(name string) (out []definition) {
	seen := map[string]bool{}
	for _, r := range append([]*resolved{a.resolved}, a.sites...) {
		k := r.keys[name]
		if k == nil || seen[k.home(a.siteOf(r))] {
			continue
		}
		seen[k.home(a.siteOf(r))] = true
		out = append(out, definition{key: k, settings: r})
	}
	return out
}

// equal reports whether two keys have the same targets. Equal URLs share one
// destination.
func (k *key) equal(o *key) bool {
	return k == o || slices.EqualFunc(k.targets, o.targets, sameTarget) && slices.EqualFunc(k.defaultTargets, o.defaultTargets, sameTarget)
}

func sameTarget(a, b notifier.Target) bool {
	return a.Destination == b.Destination && slices.Equal(a.Tags, b.Tags)
}
