package notifier

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// TestMayRetry checks that a permanent error of one target does not end the
// attempts for the others.
func TestMayRetry(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{&egress.BlockedError{}, false},
		{&PanicError{}, false},
		{errLongAnswer, false},
		{io.EOF, true},
		{fmt.Errorf("x: %w", &egress.BlockedError{}), false},
		{join([]error{&egress.BlockedError{}, &PanicError{}}), false},
		{join([]error{fmt.Errorf("target 1: %w", &egress.BlockedError{}), io.EOF}), true},
	} {
		if got := mayRetry(tt.err); got != tt.want {
			t.Errorf("%v: %t", tt.err, got)
		}
	}
}

// TestManyErrors checks that the text of many errors is short: a client decides
// how many there are.
func TestManyErrors(t *testing.T) {
	base := target(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, strings.Repeat("no ", 90))
	})
	var targets []string
	for i := range 300 {
		targets = append(targets, fmt.Sprint("t", i))
	}
	report := send(t, newTestSender(t), hello, Options{}, base+"/tok?mode=each&to="+strings.Join(targets, ","))
	text := report.Results[0].Err.Error()
	if len(text) > maxErrorText+len("…") || !strings.Contains(text, "target 10 of 300") || !strings.Contains(text, "and 290 more") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}
