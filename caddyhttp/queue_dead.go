package caddyhttp

import (
	"fmt"
	"maps"
	"slices"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// checkFallbacks returns an error if a fallback does not exist or is part of a
// circle. durable reports whether the app has a queue. at has the positions of
// the settings.
func checkFallbacks(keys map[string]*site.Key, durable bool, at *block.Info) error {
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		if err := outbox.CheckFallback(keys, keys[name], durable); err != nil {
			return at.Locate(outbox.FallbackName(name), fmt.Errorf("key %s: fallback: %w", name, err))
		}
	}
	return nil
}
