package caddyhttp

import (
	"sync"
	"time"
)

// logLimiter reports the first occurrence at once, and then at most one count a
// minute. The zero value is ready for use.
type logLimiter struct {
	mu    sync.Mutex
	count int         // not reported yet
	timer *time.Timer // runs until the next report is due; nil if it is due
}

const logLimiterInterval = time.Minute

// add counts n occurrences and calls report with the number of those that have
// not been reported: now or when the interval is over.
func (l *logLimiter) add(n int, report func(n int)) {
	l.mu.Lock()
	l.count += n
	if l.timer != nil {
		l.mu.Unlock()
		return
	}
	n = l.startInterval(report)
	l.mu.Unlock()
	report(n)
}

// startInterval starts an interval and returns the count of the last one. The
// caller holds the lock.
func (l *logLimiter) startInterval(report func(n int)) (n int) {
	n, l.count = l.count, 0
	l.timer = time.AfterFunc(logLimiterInterval, func() {
		l.mu.Lock()
		l.timer = nil
		n := l.count
		if n > 0 {
			n = l.startInterval(report)
		}
		l.mu.Unlock()
		if n > 0 {
			report(n)
		}
	})
	return n
}
