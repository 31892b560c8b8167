package device

import (
	"net/netip"
	"testing"
)

// TestLimiter checks that each address has attempts of its own, that they come back, and
// that a flood of addresses is bounded.
func TestLimiter(t *testing.T) {
	var l Limiter
	now := second(0)
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for i := range attemptsAtOnce {
		if !l.Allow(a, now) {
			t.Fatalf("attempt %d is refused", i+1)
		}
	}
	if l.Allow(a, now) || !l.Allow(b, now) {
		t.Error("one more is allowed, or another address is refused")
	}
	if now = now.Add(AttemptEvery); !l.Allow(a, now) || l.Allow(a, now) {
		t.Error("not one attempt comes back in the time for one")
	}

	l = Limiter{}
	next := netip.MustParseAddr("2001:db8::")
	for range maxAddresses {
		next = next.Next()
		if !l.Allow(next, now) {
			t.Fatal("an address is refused too early")
		}
	}
	if l.Allow(a, now) || len(l.by) != maxAddresses {
		t.Errorf("%d addresses are remembered", len(l.by))
	}
	if now = now.Add(AttemptEvery); !l.Allow(a, now) || len(l.by) != 1 {
		t.Errorf("%d addresses are remembered that need not be", len(l.by)-1)
	}
}
