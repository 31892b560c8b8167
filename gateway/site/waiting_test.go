package site

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/message"
)

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
		"all":        {func(i int) string { return key(i / 100) }, func(i int) netip.Addr { return client(i / 100) }, MaxWaiting, message.Unavailable},
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
