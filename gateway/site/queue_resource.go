package site

import (
	"slices"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// HasDevice reports whether a device has subscribed to the key.
func (k *Key) HasDevice() bool {
	return slices.ContainsFunc(k.Targets, func(t notifier.Target) bool { return IsDevice(t.String()) })
}
