package inbox_test

import (
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestMain sets a zone of the server that is not UTC.
func TestMain(m *testing.M) {
	time.Local = time.FixedZone("", 2*60*60)
	gatewaytest.Main(m)
}
