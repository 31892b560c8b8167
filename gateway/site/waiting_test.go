package site

import (
	"errors"
	"net/http"
	"net/netip"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/api"
)

// TestWaiting checks that clients, keys and all together have a share, that who finds no room
// learns when to try again, and that who has left does not count.
func TestWaiting(t *testing.T) {
	client := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}) }
	key := func(i int) string { return string(rune('a' + i)) }
	for name, tt := range map[string]struct {
		place  func(i int) string
		from   func(i int) netip.Addr
		room   int
		status int
	}{
		"one client": {key, func(int) netip.Addr { return client(1) }, MaxWaitingPerClient, http.StatusTooManyRequests},
		"one key":    {func(int) string { return "k" }, func(i int) netip.Addr { return client(i / 100) }, MaxWaitingPerKey, http.StatusTooManyRequests},
		"all":        {func(i int) string { return key(i / 100) }, func(i int) netip.Addr { return client(i / 100) }, MaxWaiting, http.StatusServiceUnavailable},
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
		if e, ok := errors.AsType[*api.Error](err); !ok || e.Status != tt.status || e.RetryAfter == 0 {
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
