package device

import (
	"maps"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// AttemptEvery is the time after which an address that has used up its first attempts may try once
// more to subscribe a device.
const AttemptEvery = 6 * time.Second

const (
	attemptsAtOnce = 10
	maxAddresses   = 10_000 // that are remembered
)

// Limiter limits how often the clients at one address try to subscribe devices. The zero
// value is ready for use.
type Limiter struct {
	mu sync.Mutex
	by map[netip.Addr]*rate.Limiter
}

// Allow reports whether client may try now.
func (l *Limiter) Allow(client netip.Addr, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = map[netip.Addr]*rate.Limiter{}
	}
	one := l.by[client]
	if one == nil {
		if len(l.by) >= maxAddresses {
			maps.DeleteFunc(l.by, func(_ netip.Addr, x *rate.Limiter) bool { return x.TokensAt(now) >= attemptsAtOnce })
		}
		if len(l.by) >= maxAddresses {
			return false
		}
		one = rate.NewLimiter(rate.Every(AttemptEvery), attemptsAtOnce)
		l.by[client] = one
	}
	return one.AllowN(now, 1)
}
