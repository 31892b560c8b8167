package caddyhttp

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// The times of the states of destinations on the storage.
const (
	stateSweepAfter = time.Minute         // after the start
	stateSweepEvery = 24 * time.Hour      // from then on
	stateMarkEvery  = 12 * time.Hour      // the minimum age of a mark that is renewed
	stateKeep       = 30 * 24 * time.Hour // how long states are kept after their URL has left the configuration
)

// stateMark is the name of an object in the folder of a destination's states. Its
// age is the time since a gateway had the URL in its configuration.
const stateMark = "used"

// stateSweeper removes states from a storage that are no longer needed.
type stateSweeper struct {
	storage certmagic.Storage
	log     *zap.Logger

	// each calls f with each destination whose states are needed.
	each func(ctx context.Context, f func(*notifier.Destination)) error
}

// start sweeps once a day until stop is called.
func (s *stateSweeper) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		timer := time.NewTimer(stateSweepAfter)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			if err := s.sweep(ctx, time.Now()); err != nil && ctx.Err() == nil {
				s.log.Warn("states of services that are not needed any more could not be removed; another try is made in a day", zap.Error(err))
			}
			timer.Reset(stateSweepEvery)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// sweep marks the states of URLs in the configuration and in saved keys as
// used, and removes those that no gateway with this storage has marked for 30
// days. So a URL that is removed for a while keeps its states, and gateways with
// different configurations can share a storage.
func (s *stateSweeper) sweep(ctx context.Context, now time.Time) error {
	storage := s.storage
	folders, err := storage.List(ctx, path.Clean(stateFolder), false)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(folders) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	used := make(map[string]bool, len(folders))
	for _, f := range folders {
		used[path.Base(f)] = false
	}
	err = s.each(ctx, func(d *notifier.Destination) {
		folder := notifier.StateFolder(d)
		if _, ok := used[folder]; ok {
			used[folder] = true
		}
	})
	if err != nil {
		return err
	}
	removed := 0
	for folder, is := range used {
		if is {
			err = errors.Join(err, markStates(ctx, storage, stateFolder+folder, now))
			continue
		}
		was, failure := removeStates(ctx, storage, stateFolder+folder, now)
		err = errors.Join(err, failure)
		if was {
			removed++
		}
	}
	if removed > 0 {
		s.log.Info("states of services were removed whose URLs left the configuration 30 days ago or earlier", zap.Int("urls", removed))
	}
	return err
}

// eachDestination calls f with each destination of the configuration, and of the
// saved keys that the operator is trusted for. It stops when one of them cannot
// be read.
func (a *App) eachDestination(ctx context.Context, f func(*notifier.Destination)) error {
	seen := map[*saved.Space]bool{}
	for _, settings := range append([]*site.Site{a.gateway.Conf.Global}, a.gateway.Conf.Sites...) {
		for _, t := range settings.DefaultTargets {
			f(t.Destination)
		}
		for _, k := range settings.Keys {
			for _, t := range k.Targets {
				f(t.Destination)
			}
		}
	}
	all := []*saved.Keys{a.saved}
	for _, h := range a.handlers {
		all = append(all, h.api.Saved)
	}
	for _, saved := range all {
		if saved != nil && saved.Trusted && !seen[saved.Shared] {
			seen[saved.Shared] = true
			if err := saved.EachDestination(ctx, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// markStates renews the mark of states in a folder.
func markStates(ctx context.Context, storage certmagic.Storage, folder string, now time.Time) error {
	mark := path.Join(folder, stateMark)
	info, err := storage.Stat(ctx, mark)
	if err == nil && now.Sub(info.Modified) < stateMarkEvery {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return storage.Store(ctx, mark, []byte("This is not empty for storages that store nothing empty.\n"))
}

// removeStates removes a folder of states if nothing in it has changed for
// stateKeep, and reports whether it has.
func removeStates(ctx context.Context, storage certmagic.Storage, folder string, now time.Time) (removed bool, err error) {
	names, err := storage.List(ctx, folder, true)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	for _, name := range names {
		info, err := storage.Stat(ctx, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return false, err
		case info.Modified.IsZero() || now.Sub(info.Modified) < stateKeep:
			return false, nil
		}
	}
	for _, name := range append(names, folder) { // the folder is an object of some storages
		if err := storage.Delete(ctx, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return true, nil
}

// stateStore keeps the states of destinations on Caddy's storage: in files, or
// in the storage that a cluster shares.
type stateStore struct{ storage certmagic.Storage }

var _ notifier.StateStore = stateStore{}

// stateFolder is the place of the states on the storage.
const stateFolder = "notify/state/"

// Load implements notifier.StateStore.
func (s stateStore) Load(ctx context.Context, name string) ([]byte, error) {
	data, err := s.storage.Load(ctx, stateFolder+name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Store implements notifier.StateStore.
func (s stateStore) Store(ctx context.Context, name string, data []byte) error {
	return s.storage.Store(ctx, stateFolder+name, data)
}

// Delete implements notifier.StateStore.
func (s stateStore) Delete(ctx context.Context, name string) error {
	err := s.storage.Delete(ctx, stateFolder+name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
