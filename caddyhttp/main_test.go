package caddyhttp

import (
	"flag"
	"os"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/hometest"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

func TestMain(m *testing.M) {
	if racetest.Enabled {
		// The safety tests run at the same time, and those about load need a processor. They
		// failed when these tests, which compute for long with the race detector, took both.
		_ = flag.Set("test.parallel", "1")
	}
	os.Exit(hometest.Main(m))
}
