package caddyhttp

import (
	"context"
	"errors"
	"io/fs"

	"github.com/caddyserver/certmagic"

	"github.com/caddy-notify/caddy-notify/notifier"
)

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
