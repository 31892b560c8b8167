package site

import (
	"slices"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

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

// ExpectsBeats reports whether a key of the app or of a site expects beats.
func (a *Directory) ExpectsBeats() bool {
	return slices.ContainsFunc(append(slices.Clip(a.Sites), a.Resolved), func(r *Site) bool {
		for _, k := range r.Keys {
			if len(k.Expects) > 0 {
				return true
			}
		}
		return false
	})
}
