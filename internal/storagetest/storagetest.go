// Package storagetest has a storage of Caddy for tests.
package storagetest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/caddyserver/certmagic"
)

// ErrDown is the error of a [Storage] that is down.
var ErrDown = errors.New("the storage is down")

// Storage is a storage in a folder that counts accesses and can be down.
type Storage struct {
	certmagic.FileStorage
	Down         atomic.Bool // every access fails
	Loads, Lists atomic.Int32
}

// New returns a storage in the folder dir.
func New(dir string) *Storage {
	return &Storage{FileStorage: certmagic.FileStorage{Path: dir}}
}

func (s *Storage) err() error {
	if s.Down.Load() {
		return ErrDown
	}
	return nil
}

// Load implements [certmagic.Storage].
func (s *Storage) Load(ctx context.Context, key string) ([]byte, error) {
	s.Loads.Add(1)
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.FileStorage.Load(ctx, key)
}

// List implements [certmagic.Storage].
func (s *Storage) List(ctx context.Context, path string, recursive bool) ([]string, error) {
	s.Lists.Add(1)
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.FileStorage.List(ctx, path, recursive)
}

// Exists implements [certmagic.Storage]. It cannot return an error, and reports
// true while the storage is down.
func (s *Storage) Exists(ctx context.Context, key string) bool {
	return s.Down.Load() || s.FileStorage.Exists(ctx, key)
}

// Delete implements [certmagic.Storage].
func (s *Storage) Delete(ctx context.Context, key string) error {
	if err := s.err(); err != nil {
		return err
	}
	return s.FileStorage.Delete(ctx, key)
}

// Store implements [certmagic.Storage].
func (s *Storage) Store(ctx context.Context, key string, value []byte) error {
	if err := s.err(); err != nil {
		return err
	}
	return s.FileStorage.Store(ctx, key, value)
}
