package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestQueuePostgresPause stops a gateway that waits for a Retry-After, for longer than the
// lease of the delivery. Another gateway makes it, and the first one, which goes on later,
// makes no other attempt. Once it did.
func TestQueuePostgresPause(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a lease of a minute")
	}
	t.Parallel()
	var attempts atomic.Int32
	destination := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if attempts.Add(1) == 1 {
			w.Header().Set("Retry-After", "20")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(destination.Close)
	p := newPostgres(t)
	key := fmt.Sprintf("timeout 5m\nkey k1 {\nurl json://%s\n}\n", strings.TrimPrefix(destination.URL, "http://"))
	g := newQueueGatewayWith(t, p, "", key)
	if status, _, text, err := g.post("1", true); err != nil || status != http.StatusAccepted && status != http.StatusOK {
		t.Fatalf("%d %s %v", status, text, err)
	}
	eventually(t, "an attempt is made", func() bool { return attempts.Load() == 1 })
	if err := syscall.Kill(-g.cmd.Process.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	newQueueGatewayWith(t, p, "", key)
	within(t, 2*time.Minute, "another gateway makes the delivery", func() bool { return attempts.Load() == 2 })
	if err := syscall.Kill(-g.cmd.Process.Pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first gateway finds that it has lost the delivery", func() bool {
		return strings.Contains(g.out.String(), "a delivery took longer than its claim")
	})
	if n := attempts.Load(); n != 2 {
		t.Errorf("%d attempts were made, want 2", n)
	}
}
