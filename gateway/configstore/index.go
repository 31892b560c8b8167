package configstore

import (
	"sync"
	"sync/atomic"
	"time"
)

// Index caches the list of the keys of a space and holds its locks. The Stores of a space share it.
// The zero value is ready for use.
type Index struct {
	writing sync.Mutex // held while a configuration is saved or deleted
	idMu    sync.Mutex // held while the key for IDs is read
	changes atomic.Int64

	mu      sync.Mutex
	keys    map[string]bool // nil until they are listed
	marked  map[string]bool // names with the mark of a token; the key need not exist
	moved   map[string]bool // the names from which keys were moved
	ids     map[string]knownID
	listed  time.Time
	listing bool
}

// Changes returns how many changes this process has made.
func (x *Index) Changes() int64 { return x.changes.Load() }

// countAge is how old a list of the keys may be when it is used to count them, as long as the count
// is far below the limit. Other processes can add keys meanwhile.
const countAge = time.Minute

// hasRoom reports whether a recent list has less than nine tenths of maxKeys keys.
func (x *Index) hasRoom(maxKeys int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.keys != nil && time.Since(x.listed) < countAge && len(x.keys) < maxKeys-maxKeys/10-1
}

// hasTokens reports whether a key has a token. It returns true if the keys have not
// been listed.
func (x *Index) hasTokens() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key := range x.marked {
		if x.keys[key] {
			return true
		}
	}
	return x.keys == nil
}

// set records a change that this process has made. hasToken means that the key has a
// token.
func (x *Index) set(key string, exists, hasToken bool) {
	x.mu.Lock()
	delete(x.ids, key)
	if x.keys != nil {
		if hasToken {
			x.marked[key] = true
		} else {
			delete(x.marked, key)
		}
		if exists {
			x.keys[key] = true
		} else {
			delete(x.keys, key)
		}
	}
	x.changes.Add(1)
	x.mu.Unlock()
}

// mayList reports whether the caller should list the keys and call endList.
// Meanwhile, other requests use the last list.
func (x *Index) mayList(refresh time.Duration) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.listing || !x.listed.IsZero() && time.Since(x.listed) < refresh {
		return false
	}
	x.listing = true
	return true
}

// endList stores a list unless this process has made a change since the number of changes was
// before.
func (x *Index) endList(names *names, err error, before int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.listing = false
	if x.Changes() != before {
		return
	}
	x.listed = time.Now()
	if err != nil {
		return
	}
	x.keys, x.marked, x.moved = setOf(names.keys), setOf(names.marked), setOf(names.moved)
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// mayBeMoved reports whether a key may have been moved from a name.
func (x *Index) mayBeMoved(name string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.keys == nil || x.moved[name]
}

// setMoved records whether keys that were moved from a name are left.
func (x *Index) setMoved(name string, moved bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.keys == nil:
	case moved:
		x.moved[name] = true
	default:
		delete(x.moved, name)
	}
	x.changes.Add(1)
}

// found records that a key of another process, which saved or moved it, exists.
func (x *Index) found(key string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.keys != nil {
		x.keys[key] = true
	}
}
