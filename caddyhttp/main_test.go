package caddyhttp

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/process"
	"github.com/caddy-notify/caddy-notify/internal/hometest"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

func TestMain(m *testing.M) {
	if racetest.Enabled {
		// The safety tests run at the same time, and those about load need a processor. They
		// failed when these tests, which compute for long with the race detector, took both.
		_ = flag.Set("test.parallel", "1")
	}
	code := hometest.Main(m)
	// What a test leaves, all later ones share with it.
	if n, ok := process.Pool.References(process.Name); ok && code == 0 {
		fmt.Fprintf(os.Stderr, "tests have left %d configurations that use the shared value; clean them up or use replaceShared\n", n)
		code = 1
	}
	os.Exit(code)
}
