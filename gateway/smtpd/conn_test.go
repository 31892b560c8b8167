package smtpd

import (
	"fmt"
	"net/netip"
	"testing"
)

// TestConnections checks that clients that need an account leave connections for
// trusted clients.
func TestConnections(t *testing.T) {
	all, local := &conns{max: 16, open: map[*conn]bool{}, byAddress: map[netip.Addr]int{}}, 0
	var open []*conn
	for i := range 40 {
		c := &conn{client: netip.MustParseAddr(fmt.Sprintf("203.0.113.%d", i/4))}
		if all.add(c) {
			open = append(open, c)
		}
	}
	if len(open) != 8 {
		t.Errorf("clients that need an account have %d of 16 connections, want 8, 2 of an address", len(open))
	}
	for range 20 {
		if all.add(&conn{client: netip.MustParseAddr("127.0.0.1"), trusted: true}) {
			local++
		}
	}
	if local != 8 {
		t.Errorf("trusted clients have %d connections, want 8", local)
	}
	for _, c := range open {
		c.leave()
	}
	if !all.add(&conn{client: netip.MustParseAddr("203.0.113.1")}) {
		t.Error("closed connections still count")
	}
}
