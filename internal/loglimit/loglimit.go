// Package loglimit limits how often the log reports what happens again and again.
package loglimit

import (
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Limiter reports the first occurrence at once, and then at most one count a
// minute. The zero value is ready for use.
type Limiter struct {
	mu    sync.Mutex
	count int         // not reported yet
	timer *time.Timer // runs until the next report is due; nil if it is due
}

const interval = time.Minute

// Add counts n occurrences and calls report with the number of occurrences
// that have not been reported: now or when the interval is over.
func (l *Limiter) Add(n int, report func(n int)) {
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

// Unreported returns the number of occurrences that have not been reported.
func (l *Limiter) Unreported() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// startInterval starts an interval and returns the count of the last one. The
// caller holds the lock.
func (l *Limiter) startInterval(report func(n int)) (n int) {
	n, l.count = l.count, 0
	l.timer = time.AfterFunc(interval, func() {
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

// Budget bounds the lines of one kind in the log that say different things, such as those
// about several destinations, to [MaxLines] a minute. The zero value is ready for use.
type Budget struct {
	mu    sync.Mutex
	begin time.Time
	lines int // since begin

	omitted Limiter
}

// MaxLines is the number of lines a minute that a [Budget] has.
const MaxLines = 30

// Allow counts a line and reports whether it may be written.
func (b *Budget) Allow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); now.Sub(b.begin) >= interval {
		b.begin, b.lines = now, 0
	}
	b.lines++
	return b.lines <= MaxLines
}

// Write writes a line, or counts it and writes the text more with the count, once
// a minute. A line that is counted is written at the level DEBUG.
func (b *Budget) Write(log *zap.Logger, level zapcore.Level, text, more string, fields ...zap.Field) {
	if b.Allow() {
		log.Log(level, text, fields...)
		return
	}
	log.Debug(text, fields...)
	b.omitted.Add(1, func(n int) { log.Log(level, more, zap.Int("lines", n)) })
}
