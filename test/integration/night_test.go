package integration

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// newNight serves the console of the worst night, which all happens now, and returns its address.
func newNight(t *testing.T) (address string) {
	t.Helper()
	n := gatewaytest.NewNight(t)
	n.Begin(t, t.TempDir(), func(time.Duration) {})
	s := httptest.NewServer(n)
	t.Cleanup(s.Close)
	return s.URL
}

// TestNight checks that a browser sees the worst night.
func TestNight(t *testing.T) {
	address := newNight(t)
	ctx, complaints := newBrowser(t)
	run(t, ctx, open(address+"/notify/console"))
	shows(t, ctx, "h1", "204 incidents open, 2 destinations down, 1 destination failing")
	noErrors(t, complaints())
}
