package site

import (
	"maps"
	"slices"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

var SourceName = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)

// SourceDirect in accept stands for POST /notify/{KEY}.
const SourceDirect = "direct"

// Source returns the source with the name, or nil if there is none.
func (r *Site) Source(name string) (*source.Source, error) {
	if s := r.Sources[name]; s != nil {
		return s, nil
	}
	return source.Builtin(name)
}

// SourceNames returns the names of all sources, in alphabetical order.
func (r *Site) SourceNames() []string {
	names := map[string]bool{}
	for _, f := range source.Formats() {
		names[f.Name] = true
	}
	for name := range r.Sources {
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}
