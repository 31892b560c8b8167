package seal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"time"
)

// keyID names a secret without revealing it.
type keyID [8]byte

// ErrSecret is returned by [Sealer.Join] if none of the secrets opens the ring.
var ErrSecret = errors.New("it was written with another secret: set that one, or write it after the new one")

// ErrOldSecret is returned by [Sealer.Join] if a secret is missing that records need.
var ErrOldSecret = errors.New("a part of it can be read only with an old secret that is not set any more: " +
	"write that one after the new one, as in \"secret <new> <old>\", until \"caddy notify queue list\" says that it is not needed")

// A store has a ring: one record that says under which secrets its records were sealed, and that
// has the key of [Sealer.Hash]. That key comes from the first secret of the store and does not
// change with the secret, because records are found by their hashes. Until the secret changes for
// the first time, the ring has no content.
type ring struct {
	lookup []byte
	uses   []use // one for each secret that records may need; the last is the one that was set last
}

// use says when a process has last said that it seals under a secret.
type use struct {
	id keyID
	at time.Time
}

// The times of a ring with several secrets. A process says that it seals under its secret each
// useEvery, if somebody calls Tend often enough. After useEnds, no process does.
const (
	useEvery = time.Minute
	useEnds  = 5 * time.Minute
)

const (
	ringFormat = 1
	lookupSize = 32
	useSize    = 8 + 8
)

func (r *ring) find(id keyID) *use {
	for i := range r.uses {
		if r.uses[i].id == id {
			return &r.uses[i]
		}
	}
	return nil
}

func (r *ring) newest() keyID { return r.uses[len(r.uses)-1].id }

func (s *Sealer) sealRing(r ring, table string, id []byte) []byte {
	b := append([]byte{ringFormat}, r.lookup...)
	for _, u := range r.uses {
		b = binary.BigEndian.AppendUint64(append(b, u.id[:]...), uint64(u.at.Unix())) //nolint:gosec // after 1970
	}
	return s.Seal(b, table, id)
}

// openRing returns the content of a ring.
func (s *Sealer) openRing(sealed []byte, table string, id []byte) (r ring, err error) {
	b, k, err := s.open(sealed, table, id)
	switch {
	case err != nil:
		return r, ErrSecret
	case len(b) == 0:
		return ring{k.lookup, []use{{id: k.id}}}, nil
	case b[0] != ringFormat || len(b) < 1+lookupSize+useSize || (len(b)-1-lookupSize)%useSize != 0:
		return r, ErrOpen
	}
	r.lookup = bytes.Clone(b[1 : 1+lookupSize])
	for u := range slices.Chunk(b[1+lookupSize:], useSize) {
		at := time.Unix(int64(binary.BigEndian.Uint64(u[8:])), 0) //nolint:gosec // as sealRing has written it
		r.uses = append(r.uses, use{keyID(u[:8]), at})
	}
	return r, nil
}

// opens reports whether s can open everything that the secrets of a ring have sealed.
func (s *Sealer) opens(r ring) bool {
	return !slices.ContainsFunc(r.uses, func(u use) bool {
		return !slices.ContainsFunc(*s.keys.Load(), func(k key) bool { return k.id == u.id })
	})
}

// Join makes s use the ring of a store, which is bound to a table and an ID in the table. If s seals
// under another secret than the process that has joined before, Join returns the ring to store before s
// seals anything; otherwise nil. The error is [ErrSecret], [ErrOldSecret] or [ErrOpen]. Join is called
// before s is used; to join the same store again changes nothing.
func (s *Sealer) Join(sealed []byte, table string, id []byte, now time.Time) (changed []byte, err error) {
	r, err := s.openRing(sealed, table, id)
	if err != nil {
		return nil, err
	}
	if !s.opens(r) {
		return nil, ErrOldSecret
	}
	if !bytes.Equal(s.lookup.Load().key, r.lookup) {
		s.lookup.Store(&lookup{key: r.lookup})
	}
	own := s.first().id
	if r.newest() == own {
		return nil, nil
	}
	for i := range r.uses {
		r.uses[i].at = now // until the processes that seal under it had time to say so
	}
	r.uses = slices.DeleteFunc(r.uses, func(u use) bool { return u.id == own })
	r.uses = append(r.uses, use{own, now})
	return s.sealRing(r, table, id), nil
}

// Ring returns the ring of a new store, or of one whose ring is lost.
func (s *Sealer) Ring(table string, id []byte, now time.Time) []byte {
	all := *s.keys.Load()
	key := s.lookup.Load().key
	if bytes.Equal(key, all[0].lookup) && len(all) == 1 {
		return s.Seal(nil, table, id)
	}
	r := ring{lookup: key}
	for i := range slices.Backward(all) {
		r.uses = append(r.uses, use{all[i].id, now})
	}
	return s.sealRing(r, table, id)
}

// Reads reports whether s can read every record of a store with a ring. It cannot if another
// process has begun to use a secret that s does not have.
func (s *Sealer) Reads(sealed []byte, table string, id []byte) bool {
	r, err := s.openRing(sealed, table, id)
	return err == nil && s.opens(r)
}

// Shares reports whether the ring of a store has several secrets, and whether s seals under the one that
// was set last: under that one, records are sealed again.
func (s *Sealer) Shares(sealed []byte, table string, id []byte) (shares, newest bool) {
	r, err := s.openRing(sealed, table, id)
	if err != nil {
		return false, false
	}
	newest = r.newest() == s.first().id
	return len(r.uses) > 1 || !newest, newest
}

// Tend says in a ring with several secrets that a process seals under the secret of s. If clean is
// set, no record needs any other: Tend then removes those that no process seals under. It returns
// the ring to store, or nil if it is unchanged, and reports whether other secrets are left.
func (s *Sealer) Tend(sealed []byte, table string, id []byte, now time.Time, clean bool) (changed []byte, left bool) {
	r, err := s.openRing(sealed, table, id)
	if err != nil {
		return nil, true
	}
	change := false
	switch own := r.find(s.first().id); {
	case own != nil && len(r.uses) == 1:
		return nil, false
	case own == nil:
		r.uses, change = append([]use{{s.first().id, now}}, r.uses...), true
	case now.Sub(own.at) >= useEvery:
		own.at, change = now, true
	}
	if clean {
		n := len(r.uses)
		r.uses = slices.DeleteFunc(r.uses, func(u use) bool { return u.id != s.first().id && now.Sub(u.at) > useEnds })
		change = change || len(r.uses) < n
	}
	if change {
		changed = s.sealRing(r, table, id)
	}
	return changed, len(r.uses) > 1
}

// HasOld reports whether s has older secrets.
func (s *Sealer) HasOld() bool { return len(*s.keys.Load()) > 1 }
