package caddyhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/notifier"
)

func init() {
	caddy.RegisterModule(new(LogWriter))
}

// LogWriter turns log entries into messages. The first entry becomes a message
// after a second, together with what else that second brought. What comes then
// is gathered, and becomes one message when the interval is over, which says
// how many entries there were and shows each kind of them once: a storm of
// errors is one message a minute. Entries are of one kind when logger and
// message are the same.
//
// The log should have a `level`, and the encoder `json` (the default) or
// `console`, whose entries are taken apart; of others the text is shown as it
// is.
//
// The gateway's own entries, such as those about deliveries that fail, make no
// messages. They are counted on standard error, as are entries whose message
// could not be sent; messages about log entries leave no entries themselves.
// Errors from a time at which there is nobody to send them, as when Caddy cannot
// start, are written to standard error.
type LogWriter struct {
	Recipient

	// The title of the messages. Global placeholders such as `{system.hostname}`
	// are replaced when the configuration loads. Default: level and text of the
	// entry, or how many entries there are.
	Title string `json:"title,omitempty"`

	// The type of the messages: `info`, `success`, `warning` or `failure`.
	// Default: what fits the highest level: `failure` from ERROR on, `warning` for
	// WARN, else `info`.
	Type string `json:"type,omitempty"`

	// The least time between two messages, one second or more. Default: 1m.
	Interval caddy.Duration `json:"interval,omitempty"`

	// How many kinds of entries one message shows, 1 to 100; the others are
	// counted. Default: 10.
	Max int `json:"max,omitempty"`

	shared sharedRef
}

const (
	defaultLogInterval = time.Minute
	defaultLogMax      = 10
	mostLogMax         = 100

	// logCollectTime is how long the first entry waits for others.
	logCollectTime = time.Second
)

var (
	errLogInterval = errors.New("a duration of one second or more is expected, such as 1m")
	errLogMax      = fmt.Errorf("a number from 1 to %d is expected", mostLogMax)
)

// errNoApp is that nobody would ever get a message about log entries.
var errNoApp = errors.New("there is no global option notify, whose keys events and logs use; write one with the key: notify { key … }")

// CaddyModule returns the Caddy module information.
func (*LogWriter) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "caddy.logging.writers.notify",
		New: func() caddy.Module { return new(LogWriter) },
	}
}

// Provision implements caddy.Provisioner. Logs are provisioned before apps, so
// it is the notify app that checks the key.
func (w *LogWriter) Provision(ctx caddy.Context) error {
	if err := w.Recipient.check(); err != nil {
		return err
	}
	if w.Type != "" {
		kind, err := notifier.ParseType(w.Type)
		if err != nil {
			return err
		}
		w.Type = string(kind)
	}
	switch {
	case w.Interval == 0:
		w.Interval = caddy.Duration(defaultLogInterval)
	case w.Interval < caddy.Duration(time.Second):
		return fmt.Errorf("interval: %w", errLogInterval)
	}
	switch {
	case w.Max == 0:
		w.Max = defaultLogMax
	case w.Max < 0 || w.Max > mostLogMax:
		return fmt.Errorf("max: %w", errLogMax)
	}
	if err := checkWhole(w.Title, logPlaceholders); err != nil {
		return fmt.Errorf("title: %w", err)
	}
	w.Title = joinTitle(caddy.NewReplacer().ReplaceKnown(w.Title, ""))
	if !configured(ctx, "notify") {
		return errNoApp
	}
	if err := w.shared.load(); err != nil {
		return fmt.Errorf("starting the sender: %w", err)
	}
	w.shared.logs.expect(ctx, w.Recipient)
	return nil
}

// configured says whether a configuration has an app. Caddy itself tells that
// only by loading the app, and while logs are provisioned it is too early for
// that. Where Caddy's context has come to look different, the answer is yes: a
// key that does not exist then shows with the first entry.
func configured(ctx caddy.Context, app string) bool {
	config := reflect.ValueOf(ctx).FieldByName("cfg")
	if config.Kind() != reflect.Pointer || config.IsNil() {
		return true
	}
	apps := config.Elem().FieldByName("AppsRaw")
	return apps.Kind() != reflect.Map || apps.MapIndex(reflect.ValueOf(app)).IsValid()
}

// Cleanup implements caddy.CleanerUpper.
func (w *LogWriter) Cleanup() error { return w.shared.release() }

// String implements caddy.WriterOpener.
func (w *LogWriter) String() string { return "notify " + w.Key }

// WriterKey implements caddy.WriterOpener. Log writers live on over a reload
// unless something in them changes.
func (w *LogWriter) WriterKey() string {
	settings, _ := json.Marshal(w) // texts and numbers alone
	return "notify:" + string(settings)
}

// OpenWriter implements caddy.WriterOpener.
func (w *LogWriter) OpenWriter() (io.WriteCloser, error) {
	return newLogSink(LogWriter{Recipient: w.Recipient, Title: w.Title, Type: w.Type, Interval: w.Interval, Max: w.Max})
}

// UnmarshalCaddyfile sets up the log writer from Caddyfile tokens. Syntax:
//
//	notify <key> [{
//		tag <expression>
//		title <text>
//		type info|success|warning|failure
//		interval <duration>
//		max <n>
//	}]
func (w *LogWriter) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	if err := w.unmarshal(d); err != nil {
		return err
	}
	return readBlock(d, "notify", options{
		"tag":   w.tagOption(),
		"title": textOption("title", &w.Title, logPlaceholders),
		"type":  typeOption(&w.Type),
		"interval": {usage: "interval <duration>", min: 1, max: 1, line: func(args []string) error {
			t, err := caddy.ParseDuration(args[0])
			if err != nil || t < time.Second {
				return errLogInterval
			}
			w.Interval = caddy.Duration(t)
			return nil
		}},
		"max": {usage: "max <n>", min: 1, max: 1, line: func(args []string) error {
			n, err := strconv.Atoi(args[0])
			if err != nil || n < 1 || n > mostLogMax {
				return errLogMax
			}
			w.Max = n
			return nil
		}},
	})
}

// logSink is an open log writer. Caddy keeps it when the configuration is
// reloaded, so it knows no app but asks for the one that runs.
type logSink struct {
	settings LogWriter
	stderr   io.Writer
	shared   sharedRef
	batch    logBatch
	own      logLimiter // entries of the gateway's own
	unsent   logLimiter // entries that no destination got, or not all
}

func newLogSink(w LogWriter) (*logSink, error) {
	s := &logSink{settings: w, stderr: os.Stderr}
	if err := s.shared.load(); err != nil {
		return nil, fmt.Errorf("starting the sender: %w", err)
	}
	s.batch = logBatch{shown: w.Max, interval: time.Duration(w.Interval), ready: s.ready, send: s.send}
	s.shared.logs.add(s)
	return s, nil
}

// Write takes an encoded entry. It does not wait for anything to be sent.
//
// While there is no app to send with, errors are also written to standard
// error: Caddy may be about to give up, and this is the only one to say why.
func (s *logSink) Write(line []byte) (int, error) {
	e := readEntry(line, time.Now())
	if e.level >= zapcore.ErrorLevel && s.shared.apps.newest() == nil {
		_, _ = s.stderr.Write(line)
	}
	if e.isOwn(line) {
		s.own.add(1, func(n int) {
			s.complain("%s of the gateway's own made no message", entries(n))
		})
		return len(line), nil
	}
	s.batch.add(e)
	return len(line), nil
}

// Close implements io.Closer.
func (s *logSink) Close() error {
	s.batch.flush()
	s.abandon()
	s.shared.logs.remove(s)
	return s.shared.release()
}

// abandon writes to standard error what has been gathered and nobody will send.
func (s *logSink) abandon() {
	if d := s.batch.drop(); d != nil {
		s.complain("no message could be made of %s:\n%s", entries(d.count), d.body())
	}
}

// complain writes to standard error, since an entry of the log would come
// back here.
func (s *logSink) complain(format string, args ...any) {
	fmt.Fprintf(s.stderr, "[WARNING] log output notify %s: %s\n", s.settings.Key, fmt.Sprintf(format, args...))
}

// ready says whether there is an app to send with. Until Caddy has started
// there is none; if it has none at all, somebody should know.
func (s *logSink) ready(waits int) bool {
	if s.shared.apps.newest() != nil {
		return true
	}
	if waits > 1 {
		s.unsent.add(1, func(int) {
			s.complain("entries make no messages, since there is no global option notify with this key")
		})
	}
	return false
}

// send makes a message of the entries.
func (s *logSink) send(d *logDigest) {
	app := s.shared.apps.newest()
	if app == nil {
		return // it has stopped this very moment, and Caddy with it
	}
	m := &notifier.Message{Title: d.title(), Body: d.body(), Type: d.kind(), Time: time.Now()}
	if s.settings.Title != "" {
		m.Title = s.settings.Title
	}
	if s.settings.Type != "" {
		m.Type = notifier.Type(s.settings.Type)
	}
	err := app.post(&s.settings.Recipient, m, sourceLog, false, func(r *notifier.Report) {
		if !r.OK() {
			s.notSent(d.count, firstFailure(r))
		}
	})
	if err != nil {
		s.notSent(d.count, err)
	}
}

func firstFailure(r *notifier.Report) error {
	for _, x := range r.Results {
		if !x.OK() {
			return fmt.Errorf("%s: %w", x.Service, x.Err)
		}
	}
	return nil
}

func (s *logSink) notSent(n int, err error) {
	s.unsent.add(n, func(n int) {
		s.complain("a message about %s was not delivered everywhere: %v", entries(n), err)
	})
}

// logBatch gathers entries and sends them together, from time to time.
type logBatch struct {
	shown    int
	interval time.Duration
	ready    func(waits int) bool // asked before a message is sent; waits is how often it has said no
	send     func(*logDigest)

	mu     sync.Mutex
	digest *logDigest // nil when it is empty
	timer  *time.Timer
	sent   time.Time // when the last message was
	waits  int
}

func (b *logBatch) add(e logEntry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.digest == nil {
		b.digest = newLogDigest(b.shown)
	}
	b.digest.add(e)
	if b.timer == nil {
		b.timer = time.AfterFunc(max(logCollectTime, time.Until(b.sent.Add(b.interval))), b.flush)
	}
}

// flush sends what has been gathered.
func (b *logBatch) flush() {
	if d := b.take(); d != nil {
		b.send(d)
	}
}

// take is nil when there is nothing to send, or when it is not possible yet.
func (b *logBatch) take() *logDigest {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.digest == nil {
		return nil
	}
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	if !b.ready(b.waits) {
		b.waits++
		b.timer = time.AfterFunc(min(b.interval, time.Duration(b.waits)*logCollectTime), b.flush)
		return nil
	}
	d := b.digest
	b.digest, b.sent, b.waits = nil, time.Now(), 0
	return d
}

// drop gives up what has been gathered; nil is nothing.
func (b *logBatch) drop() *logDigest {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	d := b.digest
	b.digest = nil
	return d
}

// logs are the log writers of the process.
type logSinks struct {
	mu       sync.Mutex
	open     map[*logSink]struct{}
	expected map[<-chan struct{}][]Recipient // by the end of their configuration
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

// all lists the open writers.
func (l *logSinks) all() []*logSink {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.open))
}

// flush sends what all writers have gathered.
func (l *logSinks) flush() {
	for _, s := range l.all() {
		s.batch.flush()
	}
}

// abandon is for when the last app has stopped: what has come in meanwhile
// would be lost.
func (l *logSinks) abandon() {
	for _, s := range l.all() {
		s.abandon()
	}
}

// expect notes whom the log writers of a configuration send to, for the notify
// app of the same configuration to check. The configuration is known by the
// channel that is closed with it, and forgotten then. Its contexts are many,
// since Caddy's http app adds values to them, but the channel is one.
func (l *logSinks) expect(ctx caddy.Context, r Recipient) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.expected == nil {
		l.expected = map[<-chan struct{}][]Recipient{}
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

func (l *logSinks) expectedBy(ctx caddy.Context) []Recipient {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.expected[ctx.Done()]
}

// Interface guards
var (
	_ caddy.Provisioner     = (*LogWriter)(nil)
	_ caddy.CleanerUpper    = (*LogWriter)(nil)
	_ caddy.WriterOpener    = (*LogWriter)(nil)
	_ caddyfile.Unmarshaler = (*LogWriter)(nil)
)
