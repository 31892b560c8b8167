package site

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Directory has the sites of a configuration. What comes in by mail, from events and from
// logs belongs to the site of the app: the settings that all sites share, with its keys.
type Directory struct {
	Global *Site   // of the app
	Sites  []*Site // of the handlers, which add theirs in Provision

	SiteIndex func() *Index // not called before all apps are provisioned
}

// Index has the sites of a configuration by their IDs. The ID of a site
// follows from its addresses: the addresses that its servers listen on, its
// hosts, and the prefix of the path. So it is the same after a reload and a
// restart, and in each gateway with the same configuration.
//
// Handlers with a common address are one site, and so are those of one notify
// block, which Caddy copies into several servers if the site has several
// addresses. What comes in by mail, from events and from logs belongs to the
// site of the app, whose ID is "".
type Index struct {
	IDs  map[*Site]string
	ByID map[string][]*Site
}

// All returns the site of the app and the others.
func (a *Directory) All() []*Site { return append([]*Site{a.Global}, a.Sites...) }

// SiteOf returns the ID of the site with these settings. It is called when all
// apps are provisioned, because the ID depends on the routes of all servers.
func (a *Directory) SiteID(settings *Site) string { return a.SiteIndex().IDs[settings] }

// SettingsOf returns the settings of the handlers of a site, or nil if the
// configuration does not have the site.
func (a *Directory) SitesWithID(siteID string) []*Site {
	if siteID == "" {
		return []*Site{a.Global}
	}
	return a.SiteIndex().ByID[siteID]
}

// Definition is a key with the settings of the place that defines it.
type Definition struct {
	Key   *Key
	Site  *Site
	Scope string // global or site
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
	add(a.Global, "global")
	for _, settings := range a.Sites {
		add(settings, "site")
	}
	for _, all := range out {
		for i, d := range all {
			all[i].Key = d.Site.Devices.With(d.Key)
		}
	}
	return out
}

// Homes returns a key once for each place that defines it: the app, or a site.
func (a *Directory) Homes(name string) (out []Definition) {
	seen := map[string]bool{}
	for _, r := range a.All() {
		k := r.Keys[name]
		if k == nil || seen[k.Home(a.SiteID(r))] {
			continue
		}
		seen[k.Home(a.SiteID(r))] = true
		out = append(out, Definition{Key: k, Site: r})
	}
	return out
}

// equal reports whether two keys have the same targets. Equal URLs share one
// destination.
func (k *Key) equal(o *Key) bool {
	return k == o || slices.EqualFunc(k.Targets, o.Targets, sameTarget) && slices.EqualFunc(k.DefaultTargets, o.DefaultTargets, sameTarget)
}

func sameTarget(a, b notifier.Target) bool {
	return a.Destination == b.Destination && slices.Equal(a.Tags, b.Tags)
}

// SettingsOfKey returns the settings that have the key of a place, and the ID of their site;
// nil if it is gone.
func (a *Directory) FindPlace(ctx context.Context, of Place) (*Site, string) {
	for _, s := range a.All() {
		siteID := a.SiteID(s)
		k, err := s.Key(ctx, of.Key)
		if err == nil && k.Place(siteID) == of {
			return s, siteID
		}
	}
	return nil, ""
}

// Candidates returns the settings in which the destination of a message may be
// found: those of the site that the message came to, and those of the app. If
// the configuration does not have the site any more, for example because its
// address has changed, they are those of all sites.
func (a *Directory) Candidates(siteID string) []*Site {
	settings := a.SitesWithID(siteID)
	if settings == nil {
		settings = a.Sites
	}
	if siteID == "" {
		return settings
	}
	return append(slices.Clip(settings), a.Global)
}

// SpaceName returns the name of the space of a saved key.
func (d *Definition) SpaceName() string { return cmp.Or(d.Key.Space, configstore.DefaultSpace) }

// SavedDefinitions returns the saved keys with a name, one of each space.
func (a *Directory) SavedDefinitions(ctx context.Context, name string) (out []Definition, err error) {
	seen := map[string]bool{}
	for _, s := range a.All() {
		if !s.Saved.On() || seen[s.Saved.Space] {
			continue
		}
		seen[s.Saved.Space] = true
		k, err := s.Saved.Find(ctx, name)
		if errors.Is(err, ErrNoKey) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, Definition{k, s, "saved"})
	}
	return out, nil
}

// KeyOf returns the key of an incident, and the settings that have it; nil if it is gone.
// The error is one of saved keys that cannot be read.
func (a *Directory) KeyOfIncident(ctx context.Context, x *rules.Incident) (*Key, *Site, error) {
	for _, s := range a.Candidates(x.Site) {
		k, err := s.Key(ctx, x.Key)
		if err == nil && k.Home(x.Site) == x.Home {
			return k, s, nil
		}
		if e, ok := errors.AsType[*api.Error](err); ok && e.Status == http.StatusServiceUnavailable {
			return nil, nil, err
		}
	}
	return nil, nil, nil
}

// ExpectedBeat is an [Expect] ready for use.
type ExpectedBeat struct {
	rules.Expect
	Tag notifier.TagExpr // of the destinations that are told
}

// Expect returns the expectation with a name, or nil.
func (k *Key) Expect(name string) *ExpectedBeat {
	for i := range k.Expects {
		if k.Expects[i].Name == name {
			return &k.Expects[i]
		}
	}
	return nil
}
