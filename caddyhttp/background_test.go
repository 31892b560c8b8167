package caddyhttp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
)

// TestBackgroundLimits checks that the background queue is bounded, and that wait
// waits until everything is sent.
func TestBackgroundLimits(t *testing.T) {
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
	lost.Mu.Lock()
	before, told := lost.Count, lost.Timer != nil
	lost.Mu.Unlock()
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
	lost.Mu.Lock()
	defer lost.Mu.Unlock()
	want := before + more
	if !told {
		want-- // the first was reported at once
	}
	if lost.Count != want {
		t.Errorf("%d dropped messages are not reported yet, want %d", lost.Count, want)
	}
}
