package configstore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// TokenHash is the SHA-256 hash of a token. Tokens are random, so the hash needs no
// salt and no work factor.
type TokenHash = [sha256.Size]byte

// MaxTokens is the maximum number of tokens of a key.
const MaxTokens = 10

var (
	// ErrTooManyTokens is returned for a token that would exceed MaxTokens.
	ErrTooManyTokens = errors.New("the key has as many tokens as are allowed")

	// ErrDamaged is returned for a configuration whose stored object cannot be understood.
	ErrDamaged = errors.New("reading the saved configuration: the stored object is damaged")
)

// AddToken adds a token to a key, and returns how many it then has.
func (s *Store) AddToken(ctx context.Context, key string, hash TokenHash) (count int, err error) {
	err = s.write(ctx, storageTimeout, func(ctx context.Context) error {
		o, _, err := s.read(ctx, key)
		if err != nil {
			return err
		}
		if len(o.Tokens) >= MaxTokens {
			return ErrTooManyTokens
		}
		// The mark comes first: without it, clients could find out which keys exist.
		if err := s.storage.Store(ctx, s.folder.markName(key), []byte("{}")); err != nil {
			return fmt.Errorf("saving the token: %w", err)
		}
		o.Tokens = append(o.Tokens, hash[:])
		count = len(o.Tokens)
		return s.storeObject(ctx, key, o)
	})
	return count, err
}

// RemoveOldTokens removes all tokens of a key but the newest, and returns how many.
func (s *Store) RemoveOldTokens(ctx context.Context, key string) (removed int, err error) {
	err = s.write(ctx, storageTimeout, func(ctx context.Context) error {
		o, _, err := s.read(ctx, key)
		if err != nil || len(o.Tokens) < 2 {
			return err
		}
		removed = len(o.Tokens) - 1
		o.Tokens = o.Tokens[removed:]
		return s.storeObject(ctx, key, o)
	})
	return removed, err
}

// kept returns an object with the parts that a key keeps when it is saved again: ID, time of
// creation, former names and tokens. A new key gets a new ID. A damaged object has no tokens,
// unless its mark says that it had some.
func (s *Store) kept(ctx context.Context, key string) (object, error) {
	fresh := object{Version: objectVersion, Key: key, ID: newID(), Created: time.Now().UTC()}
	if !s.storage.Exists(ctx, s.folder.objectName(key)) {
		return fresh, nil
	}
	o, _, err := s.read(ctx, key)
	switch {
	case err == nil:
		return object{Version: objectVersion, Key: key, ID: o.ID, Created: o.Created, Names: o.Names, Moves: o.Moves, Tokens: o.Tokens}, nil
	case errors.Is(err, ErrNotFound):
		return fresh, nil
	case errors.Is(err, ErrDamaged) && s.storage.Exists(ctx, s.folder.markName(key)):
		return object{}, fmt.Errorf("%w, and its tokens would be lost; delete the key first", err)
	case errors.Is(err, ErrDamaged):
		return fresh, nil
	}
	return object{}, err
}

// removeMark removes the mark of a key that no longer exists. If this fails, the mark has no effect
// until there is a key of this name.
func (s *Store) removeMark(ctx context.Context, key string) error {
	if !s.storage.Exists(ctx, s.folder.markName(key)) {
		return nil
	}
	if err := s.storage.Delete(ctx, s.folder.markName(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the tokens: %w", err)
	}
	return nil
}

// HasTokens reports whether a key of the space has a token, from a list that is at most refresh
// old. It returns true if there is no list.
func (s *Store) HasTokens(ctx context.Context, refresh time.Duration) bool {
	s.refreshList(ctx, refresh)
	return s.index.hasTokens()
}
