package configstore

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
)

// The key for IDs of URLs.
const (
	idKeyName = "ids.key"
	idKeySize = sha256.Size
)

// IDKey returns the key for the IDs of URLs. It does not change, and is the same for all processes
// that use the storage. It is derived from the secret or, without one, random and stored at its
// first use.
func (s *Store) IDKey(ctx context.Context) ([]byte, error) {
	s.index.idMu.Lock()
	defer s.index.idMu.Unlock()
	if s.idKey != nil {
		return s.idKey, nil
	}
	key, err := s.loadIDKey(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		err = s.write(ctx, storageTimeout, func(ctx context.Context) error {
			// Another process may have stored it in the meantime.
			if key, err = s.loadIDKey(ctx); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			key = make([]byte, idKeySize)
			_, _ = rand.Read(key) // it never fails
			return s.storage.Store(ctx, s.folder.file(idKeyName), key)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("reading the key for the IDs of URLs: %w", err)
	}
	s.idKey = key
	return key, nil
}

func (s *Store) loadIDKey(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	key, err := s.storage.Load(ctx, s.folder.file(idKeyName))
	if err == nil && len(key) != idKeySize {
		return nil, errors.New("it is damaged; delete it")
	}
	return key, err
}
