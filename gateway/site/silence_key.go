package site

import (
	"cmp"
	"context"
	"errors"

	"github.com/caddy-notify/caddy-notify/gateway/configstore"
)

// SpaceName returns the name of the space of a saved key.
func (d *Definition) SpaceName() string { return cmp.Or(d.Key.Space, configstore.DefaultSpace) }

// SavedDefinitions returns the saved keys with a name, one of each space.
func (a *Directory) SavedDefinitions(ctx context.Context, name string) (out []Definition, err error) {
	seen := map[string]bool{}
	for _, s := range append([]*Site{a.Resolved}, a.Sites...) {
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
