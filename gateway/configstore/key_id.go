package configstore

import (
	"context"
	"crypto/rand"
	"errors"
	"time"
)

// newID returns the ID of a new key.
func newID() string { return rand.Text() }

// ID returns the ID and the first name of a key (see [Config]) as they were at most refresh
// ago.
func (s *Store) ID(ctx context.Context, key string, refresh time.Duration) (id, first string, err error) {
	before := s.index.Changes()
	if known, ok := s.index.id(key, refresh); ok {
		return known.id, known.first, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	o, _, err := s.read(ctx, key)
	if err == nil || errors.Is(err, ErrNotFound) {
		s.index.setID(key, knownID{o.ID, o.first(), time.Now()}, err == nil, before)
	}
	return o.ID, o.first(), err
}

// knownID is the ID of a key and its first name, with the time of reading.
type knownID struct {
	id, first string
	read      time.Time
}

// id returns the ID of a key, and reports whether it was read at most refresh ago.
func (x *Index) id(key string, refresh time.Duration) (knownID, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	known, ok := x.ids[key]
	return known, ok && time.Since(known.read) < refresh
}

// setID stores the ID of a key, or that the key does not exist, unless this process has made a
// change since the number of changes was before.
func (x *Index) setID(key string, known knownID, exists bool, before int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.Changes() != before:
	case !exists:
		delete(x.ids, key)
	default:
		if x.ids == nil {
			x.ids = map[string]knownID{}
		}
		x.ids[key] = known
	}
}
