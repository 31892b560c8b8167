package caddyhttp

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/recipient"
	"github.com/caddy-notify/caddy-notify/caddyhttp/logdigest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/loglimit"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// logSink is an open log writer. Caddy keeps it over a reload, so it sends with
// the app that runs at the time.
type logSink struct {
	settings LogWriter
	stderr   io.Writer
	shared   sharedRef
	batch    logdigest.Batch
	skipped  loglimit.Limiter // entries of the gateway
	failed   loglimit.Limiter // entries that not every destination has
}

func newLogSink(w LogWriter) (*logSink, error) {
	s := &logSink{settings: w, stderr: os.Stderr}
	if err := s.shared.load(); err != nil {
		return nil, fmt.Errorf("starting the sender: %w", err)
	}
	s.batch = logdigest.Batch{Kinds: w.Max, Interval: time.Duration(w.Interval), Ready: s.ready, Send: s.send}
	s.shared.process.logs.add(s)
	return s, nil
}

// Write implements io.Writer for one encoded entry. It does not wait for a
// delivery.
//
// Without a running app it also writes errors to standard error: Caddy may be
// about to exit, and nothing else would show the reason.
func (s *logSink) Write(line []byte) (int, error) {
	e := logdigest.ReadEntry(line, time.Now())
	toStderr := e.Level >= zapcore.ErrorLevel && s.shared.process.apps.newest() == nil
	if toStderr {
		_, _ = s.stderr.Write(line)
	}
	if isOwnEntry(&e, line) {
		if toStderr {
			return len(line), nil
		}
		s.skipped.Add(1, func(n int) {
			s.warn("%s of the gateway itself not sent", logdigest.CountEntries(n))
		})
		return len(line), nil
	}
	s.batch.Add(e)
	return len(line), nil
}

// Close implements io.Closer.
func (s *logSink) Close() error {
	s.batch.Flush()
	s.discard()
	s.shared.process.logs.remove(s)
	return s.shared.release()
}

// discard writes the collected entries to standard error instead of sending
// them.
func (s *logSink) discard() {
	if d := s.batch.Take(); d != nil {
		s.warn("%s not sent:\n%s", logdigest.CountEntries(d.Count()), d.Body())
	}
}

// warn writes to standard error. A log entry would come back to the sink.
func (s *logSink) warn(format string, args ...any) {
	fmt.Fprintf(s.stderr, "[WARNING] log output notify %s: %s\n", s.settings.Key, fmt.Sprintf(format, args...))
}

// ready reports whether an app runs that can send. Before Caddy has started,
// none does. It warns if that does not change.
func (s *logSink) ready(attempts int) bool {
	if s.shared.process.apps.newest() != nil {
		return true
	}
	if attempts > 1 {
		s.failed.Add(1, func(int) {
			s.warn("entries are not sent, because the configuration has no global option notify with this key")
		})
	}
	return false
}

// send sends the message about the entries in d.
func (s *logSink) send(d *logdigest.Digest) {
	app := s.shared.process.apps.newest()
	if app == nil {
		return // it has just stopped, because Caddy stops
	}
	m := &notifier.Message{Title: d.Title(), Body: d.Body(), Type: d.Type(), Foreign: true, Time: time.Now()}
	if s.settings.Title != "" {
		m.Title = s.settings.Title
	}
	if s.settings.Type != "" {
		m.Type = notifier.Type(s.settings.Type)
	}
	err := s.settings.Recipient.Post(&app.gateway.Engine, m, site.SourceLog, false, func(r *notifier.Report) {
		if !r.OK() {
			s.warnFailed(d.Count(), firstError(r))
		}
	})
	if err != nil {
		s.warnFailed(d.Count(), err)
	}
}

func firstError(r *notifier.Report) error {
	for _, x := range r.Results {
		if !x.OK() {
			return fmt.Errorf("%s: %w", x.Service, x.Err)
		}
	}
	return nil
}

func (s *logSink) warnFailed(n int, err error) {
	s.failed.Add(n, func(n int) {
		s.warn("a message about %s was not delivered to every destination: %v", logdigest.CountEntries(n), err)
	})
}

// logSinks are the open log writers of the process, and the recipients of those
// in configurations that are loading.
type logSinks struct {
	mu       sync.Mutex
	open     map[*logSink]struct{}
	expected map[<-chan struct{}][]recipient.Recipient // by the Done channel of the configuration
}

func (l *logSinks) add(s *logSink) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[*logSink]struct{}{}
	}
	l.open[s] = struct{}{}
}

func (l *logSinks) remove(s *logSink) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, s)
}

// all returns the open writers.
func (l *logSinks) all() []*logSink {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.open))
}

// flush sends what all writers have collected.
func (l *logSinks) flush() {
	for _, s := range l.all() {
		s.batch.Flush()
	}
}

// discard writes what all writers have collected to standard error, after the
// last app has stopped.
func (l *logSinks) discard() {
	for _, s := range l.all() {
		s.discard()
	}
}

// expect records the recipient of a log writer for the notify app of the same
// configuration to check. A configuration has many contexts, because Caddy's
// http app adds values to them, but one Done channel.
func (l *logSinks) expect(ctx caddy.Context, r recipient.Recipient) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.expected == nil {
		l.expected = map[<-chan struct{}][]recipient.Recipient{}
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

func (l *logSinks) expectedBy(ctx caddy.Context) []recipient.Recipient {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.expected[ctx.Done()]
}
