package http1

import (
	"sync"
	"time"
)

// idleConns are the connections of a [Client] without a request.
type idleConns struct {
	mu             sync.Mutex
	byHost         map[string]*conn // the newest for each host; its field below leads to the others
	newest, oldest *conn
	count          int
	timer          *time.Timer // removes what is too old; runs while there are connections
	closing        bool        // closeAll was called after the last get
}

// get returns a connection to host that is ready for a request, or nil. It closes
// those that are not.
func (l *idleConns) get(host string) *conn {
	for {
		c := l.take(host)
		if c == nil {
			return nil
		}
		// Round removes the monotonic clock, which stops while a machine sleeps.
		if time.Since(c.since.Round(0)) < c.client.IdleTimeout && c.isQuiet() {
			return c
		}
		c.close()
	}
}

// take removes the newest connection to host and returns it, or nil.
func (l *idleConns) take(host string) *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closing = false
	c := l.byHost[host]
	if c != nil {
		l.remove(c)
	}
	return c
}

// put adds c. If there are too many connections, it closes the oldest one.
func (l *idleConns) put(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		c.close()
		return
	}
	c.since = time.Now()
	c.older, c.below = l.newest, l.byHost[c.host]
	if c.older != nil {
		c.older.newer = c
	} else {
		l.oldest = c
	}
	if c.below != nil {
		c.below.above = c
	}
	if l.byHost == nil {
		l.byHost = map[string]*conn{}
	}
	l.newest, l.byHost[c.host] = c, c
	l.count++
	if l.count > c.client.MaxIdle {
		l.closeOldest()
	}
	l.schedule(c.client.IdleTimeout)
}

// remove removes c from the lists. l.mu must be locked.
func (l *idleConns) remove(c *conn) {
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		l.newest = c.older
	}
	if c.older != nil {
		c.older.newer = c.newer
	} else {
		l.oldest = c.newer
	}
	switch {
	case c.above != nil:
		c.above.below = c.below
	case c.below != nil:
		l.byHost[c.host] = c.below
	default:
		delete(l.byHost, c.host)
	}
	if c.below != nil {
		c.below.above = c.above
	}
	c.newer, c.older, c.above, c.below = nil, nil, nil, nil
	l.count--
}

// closeOldest removes and closes the oldest connection. l.mu must be locked.
func (l *idleConns) closeOldest() {
	c := l.oldest
	l.remove(c)
	c.close()
}

// schedule starts the timer unless it runs. l.mu must be locked.
func (l *idleConns) schedule(d time.Duration) {
	if l.timer == nil && l.oldest != nil {
		l.timer = time.AfterFunc(d, l.expire)
	}
}

// expire closes the connections that are too old, and starts the timer for the
// next one.
func (l *idleConns) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = nil
	for l.oldest != nil {
		if left := l.oldest.client.IdleTimeout - time.Since(l.oldest.since); left > 0 {
			l.schedule(left)
			return
		}
		l.closeOldest()
	}
}

// closeAll closes the connections, and those that are put until the next get.
func (l *idleConns) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closing = true
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	for l.oldest != nil {
		l.closeOldest()
	}
}
