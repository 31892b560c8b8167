package saved

import (
	"context"
	"errors"
	"sync"

	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// idReads is how many IDs of saved keys are read from the storage at once.
const idReads = 16

// places returns the places of saved keys by name (see [delivery.Place]), at most Refresh old. Keys
// that do not exist or are damaged are left out. If the storage cannot be read, it returns an error
// and the places that it knows.
func (s *Keys) places(ctx context.Context, names []string) (map[string]string, error) {
	out := make(map[string]string, len(names))
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	slots := make(chan struct{}, idReads)
	for _, name := range names {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			id, first, err := s.Store.ID(ctx, name, s.Refresh)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				out[name] = (&site.Key{Name: name, Saved: true, Space: s.Shared.name, ID: id, First: first}).Place("").String()
			case !errors.Is(err, configstore.ErrNotFound) && !errors.Is(err, configstore.ErrDamaged):
				failed = ErrUnavailable(err)
			}
		})
	}
	wg.Wait()
	return out, failed
}
