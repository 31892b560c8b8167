package site

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/message"
)

// TestInFlightShares checks that messages with URLs have a share of the limit,
// and each client has a share of that. Finished messages do not count.
func TestInFlightShares(t *testing.T) {
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	limits := newInFlightLimits(32, 0, 0)
	var f InFlight
	enter := func(from netip.Addr, want string) Admission {
		t.Helper()
		e, err := f.EnterClient(limits, from)
		if got := fmt.Sprint(err); !strings.Contains(got, want) {
			t.Fatalf("%s, want %s", got, want)
		}
		return e
	}
	var entries []Admission
	for range 2 {
		entries = append(entries, enter(a, "nil"))
	}
	enter(a, "from your address are under way, at most 2")
	for i := range 14 {
		entries = append(entries, enter(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), "nil"))
	}
	enter(b, "URLs of clients under way, at most 16")
	if _, err := f.EnterFetch(limits, b); err == nil {
		t.Error("a message for a key fetches files beside the limit")
	}
	for range 16 {
		e, err := f.Enter(limits)
		if err != nil {
			t.Fatalf("a message for a key: %v", err)
		}
		entries = append(entries, e)
	}
	if _, err := f.Enter(limits); err == nil || !strings.Contains(err.Error(), "at most 32 (max_in_flight)") {
		t.Errorf("a message too many: %v", err)
	}
	for _, e := range entries {
		e.Leave()
	}
	if f.total != 0 || f.clients != 0 || len(f.byAddress) != 0 {
		t.Errorf("%d, %d, %v are left", f.total, f.clients, f.byAddress)
	}
	if l := newInFlightLimits(1, 0, 0); l != (InFlightLimits{Total: 1, Clients: 1, PerAddress: 1}) {
		t.Errorf("of one: %v", l)
	}
	if l := newInFlightLimits(100, 90, 7); l != (InFlightLimits{Total: 100, Clients: 90, PerAddress: 7}) {
		t.Errorf("as set: %v", l)
	}
}

// TestUnverifiedInFlight checks that a message counts as a client's until its token or signature is
// verified.
func TestUnverifiedInFlight(t *testing.T) {
	from := netip.MustParseAddr("192.0.2.1")
	limits := newInFlightLimits(16, 0, 0)
	var f InFlight
	e, err := f.EnterUnverified(limits, from)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.EnterUnverified(limits, from); err == nil ||
		!strings.Contains(err.Error(), "from your address whose token or signature has not been verified are under way, at most 1") {
		t.Errorf("a second one of its address: %v", err)
	}
	if _, err := f.EnterClient(limits, from); err == nil {
		t.Error("a message with URLs of its address has room")
	}
	e.Verified()
	if f.total != 1 || f.clients != 0 || len(f.byAddress) != 0 {
		t.Errorf("verified: %d, %d, %v", f.total, f.clients, f.byAddress)
	}
	e.Verified()
	if other, err := f.EnterUnverified(limits, from); err != nil {
		t.Errorf("after the first is verified: %v", err)
	} else {
		other.Leave()
	}
	e.Leave()
	if f.total != 0 || f.clients != 0 || len(f.byAddress) != 0 {
		t.Errorf("%d, %d, %v are left", f.total, f.clients, f.byAddress)
	}
}

// TestWaiting checks that clients, keys and all together have a share, that a client without room
// learns when to try again, and that a client that has left does not count.
func TestWaiting(t *testing.T) {
	client := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}) }
	key := func(i int) string { return string(rune('a' + i)) }
	for name, tt := range map[string]struct {
		place func(i int) string
		from  func(i int) netip.Addr
		room  int
		kind  message.Kind
	}{
		"one client": {key, func(int) netip.Addr { return client(1) }, MaxWaitingPerClient, message.Full},
		"one key":    {func(int) string { return "k" }, func(i int) netip.Addr { return client(i / 100) }, MaxWaitingPerKey, message.Full},
		"all": {
			func(i int) string { return key(i / 100) }, func(i int) netip.Addr { return client(i / 100) }, MaxWaiting,
			message.Unavailable,
		},
	} {
		var w Waiting
		var leave []func()
		for i := range tt.room {
			l, err := w.Enter(tt.place(i), tt.from(i))
			if err != nil {
				t.Fatalf("%s: %d: %v", name, i, err)
			}
			leave = append(leave, l)
		}
		_, err := w.Enter(tt.place(tt.room), tt.from(tt.room))
		if e, ok := errors.AsType[*message.Error](err); !ok || e.Kind != tt.kind || e.RetryAfter == 0 {
			t.Errorf("%s: %v", name, err)
		}
		for _, l := range leave {
			l()
		}
		if w.total != 0 || len(w.byKey) != 0 || len(w.byClient) != 0 {
			t.Errorf("%s: those who have left count: %+v", name, &w)
		}
	}
}
