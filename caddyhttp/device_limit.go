package caddyhttp

import (
	"maps"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// The bounds of how often one address can try to subscribe a device.
const (
	registrationsAtOnce = 10
	registrationEvery   = 6 * time.Second
	maxRegistrations    = 10_000 // addresses that are remembered
)

// registrationLimiter limits how often the clients at one address try to subscribe
// devices. The zero value is ready for use.
type registrationLimiter struct {
	mu sync.Mutex
	by map[netip.Addr]*rate.Limiter
}

// allow reports whether a client may try now.
func (l *registrationLimiter) allow(client netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = map[netip.Addr]*rate.Limiter{}
	}
	one := l.by[client]
	if one == nil {
		if len(l.by) >= maxRegistrations {
			maps.DeleteFunc(l.by, func(_ netip.Addr, x *rate.Limiter) bool { return x.Tokens() >= registrationsAtOnce })
		}
		if len(l.by) >= maxRegistrations {
			return false
		}
		one = rate.NewLimiter(rate.Every(registrationEvery), registrationsAtOnce)
		l.by[client] = one
	}
	return one.Allow()
}
