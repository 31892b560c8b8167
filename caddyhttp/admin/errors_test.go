package admin

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestErrorsForOperators checks that an operator is told what to do, also where a client is
// not, and when to try again.
func TestErrorsForOperators(t *testing.T) {
	w := httptest.NewRecorder()
	if err := answerError(w, device.ErrDamaged); !strings.Contains(err.Error(), "revoke <key> --all") {
		t.Errorf("about damaged devices: %v", err)
	}
	if err := answerError(w, &queue.UnavailableError{Err: queue.ErrDiskFull}); w.Header().Get("Retry-After") == "" ||
		!strings.Contains(err.Error(), "disk is full") {
		t.Errorf("about a full disk: %v, %v", err, w.Header())
	}
}
