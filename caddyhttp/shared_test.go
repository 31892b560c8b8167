package caddyhttp

import (
	"testing"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/process"
)

// TestSharedIsReleased checks that the shared value is released as often as it
// was loaded, also after errors.
func TestSharedIsReleased(t *testing.T) {
	held := func() int { n, _ := process.Pool.References(process.Name); return n }
	before := held()
	a, b := newGateway(t, "", ""), newGateway(t, "", "")
	if a.shared.Sender != b.shared.Sender {
		t.Error("two sites have two shared values")
	}
	_ = a.Cleanup()
	_ = b.Cleanup()
	if _, err := provision(t, "key k {\nurl {env.NOTIFY_TEST_UNSET}\n}", ""); err == nil {
		t.Fatal("no error")
	}
	// The apps of the contexts above are still provisioned.
	if n := held(); n != before+3 {
		t.Errorf("%d uses, want %d for the apps", n, before+3)
	}
}
