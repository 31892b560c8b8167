package logdigest

import (
	"sync"
	"time"
)

// collectTime is how long the first entry waits for others.
const collectTime = time.Second

// Batch collects entries and sends them together: the first ones after a second,
// later ones once per interval.
type Batch struct {
	Kinds    int           // how many kinds of entries a message shows
	Interval time.Duration // the shortest time between two messages

	// Ready reports whether a message can be sent. attempts is the number of
	// times it has returned false for this message.
	Ready func(attempts int) bool

	// Send sends the entries. The batch calls it in the goroutine of a timer, or in the goroutine
	// that calls Flush.
	Send func(*Digest)

	mu       sync.Mutex
	digest   *Digest // nil if it is empty
	timer    *time.Timer
	sent     time.Time // of the last message
	attempts int
}

// Add adds an entry. It does not wait for anything.
func (b *Batch) Add(e Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.digest == nil {
		b.digest = NewDigest(b.Kinds)
	}
	b.digest.Add(e)
	if b.timer == nil {
		b.timer = time.AfterFunc(max(collectTime, time.Until(b.sent.Add(b.Interval))), b.Flush)
	}
}

// Flush sends the collected entries now. If the batch is not ready, it tries again
// later.
func (b *Batch) Flush() {
	if d := b.takeReady(); d != nil {
		b.Send(d)
	}
}

// takeReady removes and returns the collected entries. If the batch is not ready,
// it returns nil and starts the timer.
func (b *Batch) takeReady() *Digest {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.digest == nil {
		return nil
	}
	b.stopTimer()
	if !b.Ready(b.attempts) {
		b.attempts++
		b.timer = time.AfterFunc(min(b.Interval, time.Duration(b.attempts)*collectTime), b.Flush)
		return nil
	}
	d := b.digest
	b.digest, b.sent, b.attempts = nil, time.Now(), 0
	return d
}

// Take removes and returns the collected entries, or nil if there are none.
func (b *Batch) Take() *Digest {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopTimer()
	d := b.digest
	b.digest = nil
	return d
}

func (b *Batch) stopTimer() {
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
}
