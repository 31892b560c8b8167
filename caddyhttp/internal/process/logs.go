package process

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/files"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/recipient"
)

// Logs are the open log writers of the process, and the recipients of log writers in configurations
// that are loading. Caddy keeps a writer over a reload.
type Logs struct {
	mu       sync.Mutex
	open     map[*LogWriter]struct{}
	expected map[<-chan struct{}][]Expected // by the Done channel of the configuration
}

// LogWriter is an open log writer, with functions that a stopping gateway calls.
type LogWriter struct {
	Flush   func() // sends what it has collected
	Discard func() // writes what it has collected to standard error
}

// Add adds a writer that was opened.
func (l *Logs) Add(w *LogWriter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[*LogWriter]struct{}{}
	}
	l.open[w] = struct{}{}
}

// Remove removes a writer that is closed.
func (l *Logs) Remove(w *LogWriter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, w)
}

// all returns the open writers.
func (l *Logs) all() []*LogWriter {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.open))
}

// Flush sends what all writers have collected.
func (l *Logs) Flush() {
	for _, w := range l.all() {
		w.Flush()
	}
}

// Discard writes what all writers have collected to standard error, after the
// last gateway has stopped.
func (l *Logs) Discard() {
	for _, w := range l.all() {
		w.Discard()
	}
}

// Expected is the recipient of a log writer, with the files that the writer names.
type Expected struct {
	recipient.Recipient
	Files files.Set
}

// Expect records the recipient of a log writer for the notify app of the same
// configuration to check. A configuration has many contexts, because Caddy's
// http app adds values to them, but one Done channel.
func (l *Logs) Expect(ctx caddy.Context, r Expected) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.expected == nil {
		l.expected = map[<-chan struct{}][]Expected{}
	}
	config := ctx.Done()
	if l.expected[config] == nil {
		context.AfterFunc(ctx.Context, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.expected, config)
		})
	}
	l.expected[config] = append(l.expected[config], r)
}

// ExpectedBy returns the recipients of the log writers of a configuration.
func (l *Logs) ExpectedBy(ctx caddy.Context) []Expected {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.expected[ctx.Done()]
}
