package logs

import (
	"fmt"
	"io"
	"os"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/process"
	"github.com/caddy-notify/caddy-notify/caddyhttp/logs/logdigest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/loglimit"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// sink is an open log writer. Caddy keeps it over a reload, so it sends with
// the app that runs at the time.
type sink struct {
	settings Writer
	stderr   io.Writer
	shared   process.Use
	batch    logdigest.Batch
	skipped  loglimit.Limiter // entries of the gateway
	failed   loglimit.Limiter // entries that not every destination has
	open     process.LogWriter
}

func newSink(w Writer) (*sink, error) {
	s := &sink{settings: w, stderr: os.Stderr}
	if err := s.shared.Load(); err != nil {
		return nil, fmt.Errorf("starting the sender: %w", err)
	}
	s.batch = logdigest.Batch{Kinds: w.Max, Interval: time.Duration(w.Interval), Ready: s.ready, Send: s.send}
	s.open = process.LogWriter{Flush: s.batch.Flush, Discard: s.discard}
	s.shared.Process.Logs.Add(&s.open)
	return s, nil
}

// Write implements io.Writer for one encoded entry. It does not wait for a
// delivery.
//
// Without a running app it also writes errors to standard error: Caddy may be
// about to exit, and nothing else would show the reason.
func (s *sink) Write(line []byte) (int, error) {
	e := logdigest.ReadEntry(line, time.Now())
	toStderr := e.Level >= zapcore.ErrorLevel && s.shared.Process.Gateways.Newest() == nil
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
func (s *sink) Close() error {
	s.batch.Flush()
	s.discard()
	s.shared.Process.Logs.Remove(&s.open)
	return s.shared.Release()
}

// discard writes the collected entries to standard error instead of sending
// them.
func (s *sink) discard() {
	if d := s.batch.Take(); d != nil {
		s.warn("%s not sent:\n%s", logdigest.CountEntries(d.Count()), d.Body())
	}
}

// warn writes to standard error. A log entry would come back to the sink.
func (s *sink) warn(format string, args ...any) {
	fmt.Fprintf(s.stderr, "[WARNING] log output notify %s: %s\n", s.settings.Key, fmt.Sprintf(format, args...))
}

// ready reports whether an app runs that can send. Before Caddy has started,
// none does. It warns if that does not change.
func (s *sink) ready(attempts int) bool {
	if s.shared.Process.Gateways.Newest() != nil {
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
func (s *sink) send(d *logdigest.Digest) {
	g := s.shared.Process.Gateways.Newest()
	if g == nil {
		return // it has just stopped, because Caddy stops
	}
	m := &notifier.Message{Title: d.Title(), Body: d.Body(), Type: d.Type(), Foreign: true, Time: time.Now()}
	if s.settings.Title != "" {
		m.Title = s.settings.Title
	}
	if s.settings.Type != "" {
		m.Type = notifier.Type(s.settings.Type)
	}
	err := s.settings.Recipient.Post(g, m, site.SourceLog, false, func(r *notifier.Report) {
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

func (s *sink) warnFailed(n int, err error) {
	s.failed.Add(n, func(n int) {
		s.warn("a message about %s was not delivered to every destination: %v", logdigest.CountEntries(n), err)
	})
}
