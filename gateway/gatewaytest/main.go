package gatewaytest

import (
	"flag"
	"os"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// Main runs the tests of a package whose tests start gateways. With the race detector they run one
// after the other, because the safety tests run at the same time and tests about load need a
// processor.
func Main(m *testing.M) {
	if racetest.Enabled {
		_ = flag.Set("test.parallel", "1")
	}
	os.Exit(m.Run())
}
