package site

import (
	"slices"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// Definition is a key with the settings of the place that defines it.
type Definition struct {
	Key      *Key
	Settings *Site
	Scope    string // global or site
}

// Definitions returns the keys of the app and its sites, by name. A key that
// several sites define in the same way, for example by importing a snippet, is
// listed once.
func (a *Directory) Definitions() map[string][]Definition {
	out := map[string][]Definition{}
	add := func(r *Site, scope string) {
		for name, k := range r.Keys {
			if !slices.ContainsFunc(out[name], func(d Definition) bool { return d.Key.equal(k) }) {
				out[name] = append(out[name], Definition{k, r, scope})
			}
		}
	}
	add(a.Resolved, "global")
	for _, settings := range a.Sites {
		add(settings, "site")
	}
	for _, all := range out {
		for i, d := range all {
			all[i].Key = d.Settings.Devices.With(d.Key)
		}
	}
	return out
}

// Homes returns a key once for each place that defines it: the app, or a site.
func (a *Directory) Homes(name string) (out []Definition) {
	seen := map[string]bool{}
	for _, r := range append([]*Site{a.Resolved}, a.Sites...) {
		k := r.Keys[name]
		if k == nil || seen[k.Home(a.SiteOf(r))] {
			continue
		}
		seen[k.Home(a.SiteOf(r))] = true
		out = append(out, Definition{Key: k, Settings: r})
	}
	return out
}

// equal reports whether two keys have the same targets. Equal URLs share one
// destination.
func (k *Key) equal(o *Key) bool {
	return k == o || slices.EqualFunc(k.Targets, o.Targets, SameTarget) && slices.EqualFunc(k.DefaultTargets, o.DefaultTargets, SameTarget)
}

func SameTarget(a, b notifier.Target) bool {
	return a.Destination == b.Destination && slices.Equal(a.Tags, b.Tags)
}
