package saved

import (
	"context"
	"errors"
	"fmt"

	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// EachDestination calls f with each destination of the saved keys. One that
// cannot be used is left out.
func (s *Keys) EachDestination(ctx context.Context, f func(*notifier.Destination)) error {
	names, err := s.Store.Keys(ctx)
	if err != nil {
		return fmt.Errorf("listing the saved keys: %w", err)
	}
	for _, name := range names {
		c, err := s.Store.Load(ctx, name)
		if errors.Is(err, configstore.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the saved key %s: %w", name, err)
		}
		k, _, err := s.Parse(ctx, name, c.Format, c.Text)
		if err != nil {
			continue
		}
		for _, t := range k.Targets {
			f(t.Destination)
		}
		s.ReleaseTargets(k)
	}
	return nil
}
