package outbox

import (
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/loglimit"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// DestinationName is what people know a destination by.
type DestinationName struct {
	Key     string // of the last message; "" for one without a key
	Service string
	URL     string // with its secrets masked
}

func (n *DestinationName) fields(c *wire.Codec) {
	wire.Text(c, 1, &n.Key)
	wire.Text(c, 2, &n.Service)
	wire.Text(c, 3, &n.URL)
}

// Encode is the inverse of DecodeName.
func (n DestinationName) Encode() string {
	return string(wire.Append(make([]byte, 0, 8+len(n.Key)+len(n.Service)+len(n.URL)), &n, (*DestinationName).fields))
}

// DecodeName returns the name of a destination, without what is damaged.
func DecodeName(text string) (n DestinationName) {
	_ = wire.Decode([]byte(text), &n, (*DestinationName).fields)
	return n
}

// logFields returns the fields of log entries about the destination.
func (n DestinationName) logFields() []zap.Field {
	return []zap.Field{
		zap.String("key", n.Key), zap.String("service", n.Service), zap.String("destination", n.URL),
		zap.String("name", notifier.NameOf(n.Service, n.URL)),
	}
}

// Down reports a destination that has failed several times in a row.
func (q *Outbox) Down(h queue.Health) {
	name := DecodeName(h.About)
	fields := append(name.logFields(), zap.Time("since", h.DownSince), zap.String("error", h.LastError), zap.Int("waiting", h.Waiting))
	fields = append(fields, q.Failures.Down(h.Destination, name)...)
	q.Failures.write(zapcore.WarnLevel, "destination is down; it gets one attempt at a time until it is back", fields...)
	emitHealth(q.Dispatcher, event.Down, h, 0)
}

// Up reports a destination that is back.
func (q *Outbox) Up(h queue.Health) {
	down := q.Queue.Now().Sub(h.DownSince).Round(time.Second)
	fields := append(DecodeName(h.About).logFields(), zap.Duration("down", down), zap.Int("waiting", h.Waiting))
	fields = append(fields, q.Failures.Up(h.Destination)...)
	q.Failures.write(zapcore.InfoLevel, "destination is back", fields...)
	emitHealth(q.Dispatcher, event.Up, h, down)
}

// emitHealth emits the event that a destination is down or back. duration is how long a destination
// that is back was down.
func emitHealth(s *dispatch.Dispatcher, what string, h queue.Health, duration time.Duration) {
	s.EmitEvent(what, func() map[string]any {
		name := DecodeName(h.About)
		data := map[string]any{
			"key": name.Key, "service": name.Service, "destination": name.URL, "since": h.DownSince.UTC().Format(time.RFC3339),
			"error": markup.TruncateBytes(h.LastError, dispatch.MaxEventError), "waiting": h.Waiting,
		}
		if what == event.Up {
			data["duration"] = duration
		}
		return data
	})
}

// DestinationID returns the hash of t in the store, for messages with limits.
func (q *Outbox) DestinationID(t notifier.Target, limits *notifier.Limits) queue.Hash {
	return q.Queue.Hash(site.DestinationName(t, limits))
}

// FailureLog bounds what the log has about failures that the queue repeats: the
// first failure of a destination, a line when it is down, a line when it is back,
// and between them at most one a minute with the number of failures.
type FailureLog struct {
	log   *zap.Logger
	lines loglimit.Budget

	mu     sync.Mutex
	closed bool
	all    map[queue.Hash]*failing // all destinations of clients are one, with the zero Hash
}

// failing is a destination that fails.
type failing struct {
	name DestinationName
	down bool

	// What has not been reported.
	failures int
	messages []uuid.UUID // at most maxFailingIDs + 1
	err      error       // the last one

	timer *time.Timer // until the next report; nil if none is due
}

const (
	failuresEvery = time.Minute
	maxFailingIDs = 5 // that a line names
)

// NewFailureLog returns a FailureLog that writes to log. [FailureLog.Close] ends its timers.
func NewFailureLog(log *zap.Logger) *FailureLog {
	return &FailureLog{log: log, all: map[queue.Hash]*failing{}}
}

// Add counts a failure, and returns the level of its own log entry.
func (l *FailureLog) Add(id queue.Hash, name DestinationName, message uuid.UUID, err error) zapcore.Level {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.all[id] == nil
	d := l.entry(id, name)
	if d.timer == nil {
		l.start(id, d)
	}
	if first && l.lines.Allow() {
		return zapcore.WarnLevel
	}
	d.failures++
	d.err = err
	if len(d.messages) <= maxFailingIDs && !slices.Contains(d.messages, message) {
		d.messages = append(d.messages, message)
	}
	return zapcore.DebugLevel
}

// entry returns the state of a destination. The caller holds the lock.
func (l *FailureLog) entry(id queue.Hash, name DestinationName) *failing {
	d := l.all[id]
	if d == nil {
		d = &failing{name: name}
		l.all[id] = d
	}
	return d
}

// start starts the time until the next report. The caller holds the lock.
func (l *FailureLog) start(id queue.Hash, d *failing) {
	if !l.closed {
		d.timer = time.AfterFunc(failuresEvery, func() { l.report(id, d) })
	}
}

// report writes how often a destination has failed since the last line about it.
func (l *FailureLog) report(id queue.Hash, d *failing) {
	l.mu.Lock()
	if l.all[id] != d || l.closed {
		l.mu.Unlock()
		return
	}
	d.timer = nil
	if d.failures == 0 {
		if !d.down {
			delete(l.all, id)
		}
		l.mu.Unlock()
		return
	}
	text, fields := "deliveries fail and are tried again", d.name.logFields()
	switch {
	case id == queue.Hash{}:
		text, fields = "deliveries to URLs of clients fail and are tried again", nil
	case d.down:
		text = "destination is still down"
	}
	fields = append(append(fields, zap.String("error", d.err.Error())), d.take()...)
	l.start(id, d)
	l.mu.Unlock()
	l.write(zapcore.WarnLevel, text, fields...)
}

// take returns the fields about what has not been reported.
func (d *failing) take() []zap.Field {
	if d.failures == 0 {
		return nil
	}
	fields := []zap.Field{zap.Int("failures", d.failures)}
	if len(d.messages) <= maxFailingIDs {
		fields = append(fields, zap.Stringers("ids", d.messages))
	}
	d.failures, d.messages = 0, nil
	return fields
}

// Down notes that a destination is down. It returns the fields about what has not
// been reported.
func (l *FailureLog) Down(id queue.Hash, name DestinationName) []zap.Field {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.entry(id, name)
	d.down = true
	if d.timer != nil {
		d.timer.Stop()
	}
	l.start(id, d)
	return d.take()
}

// Up forgets a destination. It returns the fields about what has not been reported.
func (l *FailureLog) Up(id queue.Hash) []zap.Field {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.all[id]
	if d == nil {
		return nil
	}
	delete(l.all, id)
	if d.timer != nil {
		d.timer.Stop()
	}
	return d.take()
}

// write writes a line unless there are too many.
func (l *FailureLog) write(level zapcore.Level, text string, fields ...zap.Field) {
	l.lines.Write(l.log, level, text, "more destinations fail or are back; caddy notify queue destinations shows them", fields...)
}

// Close stops the timers.
func (l *FailureLog) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, d := range l.all {
		if d.timer != nil {
			d.timer.Stop()
		}
	}
}
