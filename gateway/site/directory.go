package site

import (
	"context"
	"errors"
	"slices"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Directory has the sites of a configuration. One of them is global: all other sites inherit its
// keys and settings, and mails, events and logs arrive there.
type Directory struct {
	Global *Site
	Sites  []*Site // all others, in the order of the configuration

	// SiteIndex returns the IDs of the sites. It can be called once the directory has all of them.
	SiteIndex func() *Index
}

// Index has the IDs of sites. The ID of a site follows from its name or, without one, from its
// addresses: hosts, ports and the prefix of the path, but not the addresses that its servers listen
// on. So it stays the same after a reload or a restart, and in each gateway with the same
// configuration. Sites with a common address share an ID. The ID of the global site is "".
type Index struct {
	IDs  map[*Site]string
	ByID map[string][]*Site
}

// All returns the global site and then the others.
func (d *Directory) All() []*Site { return append([]*Site{d.Global}, d.Sites...) }

// SiteID returns the ID of a site.
func (d *Directory) SiteID(s *Site) string { return d.SiteIndex().IDs[s] }

// SitesWithID returns the sites with an ID, or nil if there are none.
func (d *Directory) SitesWithID(id string) []*Site {
	if id == "" {
		return []*Site{d.Global}
	}
	return d.SiteIndex().ByID[id]
}

// Definition is a key with the site that defines it.
type Definition struct {
	Key   *Key
	Site  *Site
	Scope string // "global", "site" or "saved"; "" from [Directory.Homes]
}

// Definitions returns the keys of all sites, by name. A key that several sites define in the
// same way, for example by importing a snippet, is listed once.
func (dir *Directory) Definitions() map[string][]Definition {
	out := map[string][]Definition{}
	add := func(s *Site, scope string) {
		for name, k := range s.Keys {
			if !slices.ContainsFunc(out[name], func(d Definition) bool { return d.Key.equal(k) }) {
				out[name] = append(out[name], Definition{k, s, scope})
			}
		}
	}
	add(dir.Global, "global")
	for _, s := range dir.Sites {
		add(s, "site")
	}
	for _, all := range out {
		for i, d := range all {
			all[i].Key = d.Site.Devices.With(d.Key)
		}
	}
	return out
}

// Homes returns the keys with a name, one for each [Key.Home].
func (d *Directory) Homes(name string) (out []Definition) {
	seen := map[string]bool{}
	for _, s := range d.All() {
		k := s.Keys[name]
		if k == nil || seen[k.Home(d.SiteID(s))] {
			continue
		}
		seen[k.Home(d.SiteID(s))] = true
		out = append(out, Definition{Key: k, Site: s})
	}
	return out
}

// equal reports whether two keys have the same targets. Equal URLs share one destination.
func (k *Key) equal(o *Key) bool {
	return k == o || slices.EqualFunc(k.Targets, o.Targets, sameTarget) && slices.EqualFunc(k.DefaultTargets, o.DefaultTargets, sameTarget)
}

func sameTarget(a, b notifier.Target) bool {
	return a.Destination == b.Destination && slices.Equal(a.Tags, b.Tags)
}

// FindPlace returns the key at a place, a site that has it, and the ID of the site, or nil if the
// key is gone.
func (d *Directory) FindPlace(ctx context.Context, of Place) (*Key, *Site, string) {
	for _, s := range d.All() {
		siteID := d.SiteID(s)
		if k, err := s.KeyAt(ctx, of, siteID); err == nil && k != nil {
			return k, s, siteID
		}
	}
	return nil, nil, ""
}

// KeyAt returns the key at a place, or nil if the site with siteID does not have it.
func (s *Site) KeyAt(ctx context.Context, of Place, siteID string) (*Key, error) {
	k, err := s.Key(ctx, of.Key)
	if err == nil && k.Place(siteID) == of {
		return k, nil
	}
	if err != nil && !errors.Is(err, ErrNoKey) {
		return nil, err
	}
	moved, err := s.Moved(ctx, of.Key)
	if i := slices.IndexFunc(moved, func(k *Key) bool { return k.Place(siteID) == of }); i >= 0 {
		return moved[i], nil
	}
	return nil, err
}

// NameOf returns the present name of the key at a place, or the name in the place if the key is
// gone.
func (d *Directory) NameOf(ctx context.Context, of Place) string {
	if !slices.ContainsFunc(d.All(), func(s *Site) bool { return s.Saved.On() && s.Saved.MayHaveMoved(of.Key) }) {
		return of.Key
	}
	if k, _, _ := d.FindPlace(ctx, of); k != nil {
		return k.Name
	}
	return of.Key
}

// Candidates returns the sites in which the destination of a stored message may be found: the sites
// with siteID, and the global one. If there are none with siteID any more, for example because the
// address of the site has changed, it returns all.
func (d *Directory) Candidates(siteID string) []*Site {
	sites := d.SitesWithID(siteID)
	if sites == nil {
		sites = d.Sites
	}
	if siteID == "" {
		return sites
	}
	return append(slices.Clip(sites), d.Global)
}

// SavedDefinitions returns the saved keys with a name, one of each space.
func (d *Directory) SavedDefinitions(ctx context.Context, name string) (out []Definition, err error) {
	seen := map[string]bool{}
	for _, s := range d.All() {
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

// NameOfIncident returns the present name of the incident's key.
func (d *Directory) NameOfIncident(ctx context.Context, x *rules.Incident) string {
	return d.NameOf(ctx, Place{Home: x.Home, Key: x.Key})
}

// KeyOfIncident returns the key of an incident and a site that has it, or nil if the key is gone.
// It returns an error if saved keys cannot be read.
func (d *Directory) KeyOfIncident(ctx context.Context, x *rules.Incident) (*Key, *Site, error) {
	for _, s := range d.Candidates(x.Site) {
		k, err := s.KeyAt(ctx, Place{Home: x.Home, Key: x.Key}, x.Site)
		if k != nil {
			return k, s, nil
		}
		if message.IsUnavailable(err) {
			return nil, nil, err
		}
	}
	return nil, nil, nil
}

// ExpectedBeat is a beat that a key expects.
type ExpectedBeat struct {
	rules.Expect
	Tag notifier.TagExpr // selects the destinations that are notified
}

// Expect returns the beat with a name that the key expects, or nil.
func (k *Key) Expect(name string) *ExpectedBeat {
	for i := range k.Expects {
		if k.Expects[i].Name == name {
			return &k.Expects[i]
		}
	}
	return nil
}
