package caddyhttp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
)

// TestEventsNeverBlock checks that emitting an event does not wait for the
// delivery and returns no error, even if the destination is slow or fails.
func TestEventsNeverBlock(t *testing.T) {
	release := make(chan struct{})
	got := make(chan struct{}, dispatch.MaxBackground+dispatch.MaxQueued+1)
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-release
		got <- struct{}{}
	}))
	defer slow.Close()
	notify, emit := startEventApps(t, `
	notify {
		key slow {
			url json://`+strings.TrimPrefix(slow.URL, "http://")+`
		}
		timeout 1m
	}
	events {
		on x notify slow
	}`)
	lost := &notify.shared.Background.Dropped
	before := lost.Unreported()
	const more = 5
	for range dispatch.MaxBackground + dispatch.MaxQueued + more {
		if e := emit("x", nil); e.Aborted != nil {
			t.Fatal(e.Aborted)
		}
	}
	close(release)
	sent(t, notify)
	if len(got) != dispatch.MaxBackground+dispatch.MaxQueued {
		t.Errorf("%d messages were sent, want as many as the queue takes: %d", len(got), dispatch.MaxBackground+dispatch.MaxQueued)
	}
	// The first one is reported at once, unless another was within a minute before.
	if n := lost.Unreported() - before; n != more && n != more-1 {
		t.Errorf("%d dropped messages are not reported yet, want %d or one less", n, more)
	}
}
