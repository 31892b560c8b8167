package caddyhttp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// The queue is bounded, and all messages that it takes are sent.
func TestBackground(t *testing.T) {
	var b background
	if left := b.wait(0); left != 0 {
		t.Errorf("%d messages left in an empty queue", left)
	}
	release, done := make(chan struct{}), make(chan struct{}, maxBackground+maxQueued)
	for i := range maxBackground + maxQueued {
		if !b.add(func() { <-release; done <- struct{}{} }) {
			t.Fatalf("the queue is full with %d messages", i)
		}
	}
	if b.add(func() { t.Error("a message that was rejected was sent") }) {
		t.Error("the queue is not bounded")
	}
	if left := b.wait(time.Millisecond); left != maxBackground+maxQueued {
		t.Errorf("%d messages left", left)
	}
	close(release)
	if left := b.wait(time.Minute); left != 0 || len(done) != cap(done) {
		t.Errorf("%d left, %d done", left, len(done))
	}
	if !b.add(func() {}) || b.wait(time.Minute) != 0 {
		t.Error("the queue takes no messages after it was full")
	}
}

// The emitter of an event does not wait for the destination and gets no error.
func TestEventsNeverBlock(t *testing.T) {
	release := make(chan struct{})
	got := make(chan struct{}, maxBackground+maxQueued+1)
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-release
		got <- struct{}{}
	}))
	defer slow.Close()
	notify, emit := startApps(t, `
	notify {
		key slow {
			url json://`+strings.TrimPrefix(slow.URL, "http://")+`
		}
		timeout 1m
	}
	events {
		on x notify slow
	}`)
	dropped := &notify.shared.background.dropped
	dropped.mu.Lock()
	before, reported := dropped.count, dropped.timer != nil
	dropped.mu.Unlock()
	const excess = 5
	for range maxBackground + maxQueued + excess {
		if e := emit("x", nil); e.Aborted != nil {
			t.Fatal(e.Aborted)
		}
	}
	close(release)
	waitSent(t, notify)
	if len(got) != maxBackground+maxQueued {
		t.Errorf("%d messages were sent, want %d, the size of the queue", len(got), maxBackground+maxQueued)
	}
	dropped.mu.Lock()
	defer dropped.mu.Unlock()
	want := before + excess
	if !reported {
		want-- // the first was reported at once
	}
	if dropped.count != want {
		t.Errorf("%d dropped messages are not reported yet, want %d", dropped.count, want)
	}
}
