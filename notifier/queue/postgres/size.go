package postgres

import (
	"sync"
	"time"
)

// size is the size of the messages that wait and of the records: the last count, plus the
// changes of this handle.
type size struct {
	reading sync.Mutex // the counts are read once at a time

	mu      sync.Mutex
	bytes   int64
	counted time.Time
}

func (z *size) add(n int64) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.bytes += n
}

// set sets what was counted.
func (z *size) set(bytes int64) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.bytes, z.counted = bytes, time.Now()
}

// forget makes the next refresh wait for a count.
func (z *size) forget() {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.counted = time.Time{}
}

// fits reports whether n more bytes do not exceed a maximum, as far as this handle knows.
func (z *size) fits(n, maxSize int64) bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.bytes+n <= maxSize
}

func (z *size) age() (never, old bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.counted.IsZero(), time.Since(z.counted) > countEvery
}

// refresh reads the counts if they are old. One caller reads them; the others use the last
// ones, or wait if there are none.
func (z *size) refresh(read func() (int64, error)) error {
	never, old := z.age()
	switch {
	case never:
		z.reading.Lock()
	case !old || !z.reading.TryLock():
		return nil
	}
	defer z.reading.Unlock()
	if again, _ := z.age(); never && !again {
		return nil // another caller has read them
	}
	bytes, err := read()
	if err == nil {
		z.set(bytes)
	}
	return err
}
