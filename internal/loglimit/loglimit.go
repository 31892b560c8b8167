// Package loglimit limits how often the log reports what happens again and again.
package loglimit

import (
	"sync"
	"time"
)

// Limiter reports the first occurrence at once, and then at most one count a
// minute. The zero value is ready for use.
type Limiter struct {
	Mu    sync.Mutex
	Count int         // not reported yet
	Timer *time.Timer // runs until the next report is due; nil if it is due
}

const interval = time.Minute

// Add counts n occurrences and calls report with the number of those that have
// not been reported: now or when the interval is over.
func (l *Limiter) Add(n int, report func(n int)) {
	l.Mu.Lock()
	l.Count += n
	if l.Timer != nil {
		l.Mu.Unlock()
		return
	}
	n = l.startInterval(report)
	l.Mu.Unlock()
	report(n)
}

// startInterval starts an interval and returns the count of the last one. The
// caller holds the lock.
func (l *Limiter) startInterval(report func(n int)) (n int) {
	n, l.Count = l.Count, 0
	l.Timer = time.AfterFunc(interval, func() {
		l.Mu.Lock()
		l.Timer = nil
		n := l.Count
		if n > 0 {
			n = l.startInterval(report)
		}
		l.Mu.Unlock()
		if n > 0 {
			report(n)
		}
	})
	return n
}
