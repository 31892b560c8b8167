package caddyhttp

import (
	"sync"
	"time"
)

// logCollectTime is how long the first entry waits for others.
const logCollectTime = time.Second

// logBatch collects entries and sends them together.
type logBatch struct {
	kinds    int // how many kinds of entries a message shows
	interval time.Duration

	// ready reports whether a message can be sent. attempts is how often it has
	// returned false for this one.
	ready func(attempts int) bool
	send  func(*logDigest)

	mu       sync.Mutex
	digest   *logDigest // nil if it is empty
	timer    *time.Timer
	sent     time.Time // of the last message
	attempts int
}

func (b *logBatch) add(e logEntry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.digest == nil {
		b.digest = newLogDigest(b.kinds)
	}
	b.digest.add(e)
	if b.timer == nil {
		b.timer = time.AfterFunc(max(logCollectTime, time.Until(b.sent.Add(b.interval))), b.flush)
	}
}

// flush sends what is collected, or tries again later if that is not possible.
func (b *logBatch) flush() {
	if d := b.takeReady(); d != nil {
		b.send(d)
	}
}

// takeReady is take if the batch is ready. Otherwise it returns nil and sets
// the timer.
func (b *logBatch) takeReady() *logDigest {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.digest == nil {
		return nil
	}
	b.stopTimer()
	if !b.ready(b.attempts) {
		b.attempts++
		b.timer = time.AfterFunc(min(b.interval, time.Duration(b.attempts)*logCollectTime), b.flush)
		return nil
	}
	d := b.digest
	b.digest, b.sent, b.attempts = nil, time.Now(), 0
	return d
}

// take removes and returns what is collected, or nil if there is nothing.
func (b *logBatch) take() *logDigest {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopTimer()
	d := b.digest
	b.digest = nil
	return d
}

func (b *logBatch) stopTimer() {
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
}
