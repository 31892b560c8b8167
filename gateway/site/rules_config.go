package site

import (
	"slices"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// Numbered reports whether one of the tags of a URL has a number.
func Numbered(tags []string) bool {
	return slices.ContainsFunc(tags, func(tag string) bool {
		n, _ := notifier.SplitTag(tag)
		return n != 0
	})
}

// HasRules reports whether a key of the app or of a site has rules.
func (a *Directory) HasRules() bool {
	return slices.ContainsFunc(append(slices.Clip(a.Sites), a.Resolved), func(r *Site) bool {
		if !r.Saved.Rules.Empty() {
			return true
		}
		for _, k := range r.Keys {
			if k.Rules != nil {
				return true
			}
		}
		return false
	})
}
