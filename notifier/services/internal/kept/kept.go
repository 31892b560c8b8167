// Package kept stores a value for each incident.
package kept

import (
	"context"
	"slices"
	"sync"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// Values has a value for each key. They outlive the process: see
// [notifier.Client.SaveState]. A key begins with the ID of an incident. The zero
// value is empty.
//
// The values are in small groups, so that gateways that share a storage and tell
// different incidents at the same time seldom change the same group. Of one incident,
// a destination has one message at a time.
type Values[T any] struct {
	mu     sync.Mutex
	groups map[string][]entry[T]
}

// entry is a value in a group. The one that was set last is at the end.
type entry[T any] struct {
	Key   string
	Value T
}

const (
	// There are 1024 groups, by the first two letters of the key, of at most
	// maxGroup values.
	groupLetters = 2
	maxGroup     = 8

	// stateName is the beginning of the names of the groups.
	stateName = "incidents "
)

// Get returns the value for a key, and whether there is one.
func (v *Values[T]) Get(ctx context.Context, c *notifier.Client, key string) (value T, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range v.load(ctx, c, key[:groupLetters]) {
		if e.Key == key {
			return e.Value, true
		}
	}
	return value, false
}

// Set sets the value for a key.
func (v *Values[T]) Set(ctx context.Context, c *notifier.Client, key string, value T) {
	v.change(ctx, c, key, entry[T]{key, value})
}

// Delete removes the value for a key.
func (v *Values[T]) Delete(ctx context.Context, c *notifier.Client, key string) {
	v.change(ctx, c, key)
}

// change replaces the value for a key, and removes the oldest of too many.
func (v *Values[T]) change(ctx context.Context, c *notifier.Client, key string, by ...entry[T]) {
	v.mu.Lock()
	defer v.mu.Unlock()
	name := key[:groupLetters]
	g := slices.DeleteFunc(v.load(ctx, c, name), func(e entry[T]) bool { return e.Key == key })
	g = append(g, by...)
	g = g[max(len(g)-maxGroup, 0):]
	v.groups[name] = g
	if len(g) == 0 {
		c.DropState(ctx, stateName+name)
		return
	}
	c.SaveState(ctx, stateName+name, g)
}

// load reads a group, which another gateway may have changed. The caller holds the
// lock.
func (v *Values[T]) load(ctx context.Context, c *notifier.Client, name string) []entry[T] {
	if v.groups == nil {
		v.groups = map[string][]entry[T]{}
	}
	var saved []entry[T]
	if c.LoadState(ctx, stateName+name, &saved) {
		v.groups[name] = saved
	}
	return v.groups[name]
}
