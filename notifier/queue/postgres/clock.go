package postgres

import (
	"context"
	"sync"
	"time"
)

// serverTime is the clock of the server.
const serverTime = `(extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT`

// readTime reads the clock of the server. It is part of exchanges that are made anyway.
var readTime = call{sql: "SELECT " + serverTime}

// serverClock tells the time of the server without asking it. It adds the time that has passed
// since the clock was last read. A change of this machine's clock does not affect that.
type serverClock struct {
	mu    sync.Mutex
	known bool
	start time.Time // of this machine; durations are since then
	base  time.Time // of the server, at start
}

// elapsed returns the time since start.
func (c *serverClock) elapsed() time.Duration { return time.Since(c.start) }

// set notes that the clock of the server showed a time at some moment of an exchange. It corrects
// the known time no more than the exchange proves, so that a slow exchange does no harm.
func (c *serverClock) set(server time.Time, began, ended time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	earliest, latest := server.Add(-ended), server.Add(-began)
	switch {
	case !c.known:
		c.known, c.base = true, earliest.Add((ended-began)/2)
	case c.base.Before(earliest):
		c.base = earliest
	case c.base.After(latest):
		c.base = latest
	}
}

func (c *serverClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return time.Time{}
	}
	return c.base.Add(c.elapsed())
}

// startsAt returns the time of the server at the start of this handle. It changes when the
// clock of the server is set.
func (c *serverClock) startsAt() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.base
}

// readClock reads the clock of the server.
func (t *tables) readClock(ctx context.Context, c *conn) error {
	began := t.clock.elapsed()
	results, err := c.exec(ctx, readTime)
	if err == nil {
		t.clock.set(time.UnixMicro(number(results[0].Rows[0][0])), began, t.clock.elapsed())
	}
	return err
}

// Now implements [queue.Store].
func (t *tables) Now() time.Time { return t.clock.now() }
