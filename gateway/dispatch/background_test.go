package dispatch_test

import (
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
)

// TestBackgroundLimits checks that the background queue is bounded, and that wait
// waits until everything is sent.
func TestBackgroundLimits(t *testing.T) {
	t.Parallel()
	var o dispatch.Background
	if left := o.Wait(0); left != 0 {
		t.Errorf("an empty queue: %d left", left)
	}
	release, done := make(chan struct{}), make(chan struct{}, dispatch.MaxBackground+dispatch.MaxQueued)
	for i := range dispatch.MaxBackground + dispatch.MaxQueued {
		if !o.Add(func() { <-release; done <- struct{}{} }) {
			t.Fatalf("the queue is full with %d messages", i)
		}
	}
	if o.Add(func() { t.Error("a refused message was sent") }) {
		t.Error("there is no limit")
	}
	if left := o.Wait(time.Millisecond); left != dispatch.MaxBackground+dispatch.MaxQueued {
		t.Errorf("%d left", left)
	}
	close(release)
	if left := o.Wait(time.Minute); left != 0 || len(done) != cap(done) {
		t.Errorf("%d left, %d done", left, len(done))
	}
	if !o.Add(func() {}) || o.Wait(time.Minute) != 0 {
		t.Error("the empty queue takes no message")
	}
}
