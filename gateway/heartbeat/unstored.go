package heartbeat

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// failUnstored sends the message about a failed beat that the queue cannot store because of err. If
// the queue is full, it stores the change of the beat alone. The beat is refused, so that its job
// sends it again, unless the change is stored and the message was delivered.
func (m *Monitor) failUnstored(ctx context.Context, x *ExpectedBeat, d dispatch.Delivery, c *BeatChange, err error) (*Taken, error) {
	full := errors.Is(err, queue.ErrFull)
	if full && d.Rules.IsStep() { // Submit would have told it if somebody had to be told now
		return nil, outbox.QueueError(err)
	}
	stored := full && c.Apply(ctx) == nil
	refusal := outbox.ErrQueueUnavailable(err)
	sent, told := &notifier.Report{}, true
	if m.unstored.begin(c.name, d.Message, c.Beat.Exit, m.outbox.Queue.Now()) {
		m.outbox.Log.Error("a beat that has failed cannot be stored; the message about it is sent once", zap.String("key", d.Key),
			zap.String("beat", x.Name), zap.Error(err))
		sent = m.outbox.Dispatcher.Send(ctx, d)
		if told = !slices.ContainsFunc(sent.Results, message.Failed); !told {
			m.unstored.forget(c.name)
		}
	}
	if stored && told {
		m.emit(event.BeatLate, x, &c.Beat)
		return taken(x, cameText(x, c), sent, ""), nil
	}
	return &Taken{Beat: x.Name, Report: *sent, Refused: refusal}, nil
}

// storeFailure stores a failure of a beat that was only sent, unless a later beat is known. Then
// the beat that comes now tells that it is back.
func (m *Monitor) storeFailure(ctx context.Context, x *ExpectedBeat) error {
	name := m.beatName(x)
	failure, ok := m.unstored.last(name)
	if !ok {
		return nil
	}
	c := &BeatChange{monitor: m, name: name, change: func(_ time.Time, b *rules.Beat, u *rules.Uptime) (remove, ok bool) {
		if !b.Last.Before(failure.at) {
			return false, false
		}
		b.Site, b.Key, b.Name = x.Site, x.Key.Name, x.Name
		return false, b.Came(failure.at, u, &x.Expect, true, failure.exit)
	}}
	if err := c.Apply(ctx); err != nil && !errors.Is(err, ErrBeatUnchanged) {
		return err
	}
	m.unstored.forget(name)
	return nil
}

// unstoredFailures remembers the failures of beats that were sent without being stored. So a job
// that repeats its beat after an error does not send the same message each time, and the next beat
// that can be stored tells that it is back. The zero value is ready for use.
type unstoredFailures struct {
	mu   sync.Mutex
	sent map[queue.Hash]unstoredFailure
}

type unstoredFailure struct {
	at   time.Time
	text [sha256.Size]byte // the hash of the message
	exit string
}

// unstoredFor is how long the same failure is not sent again. Programs that try again do so
// within minutes.
const unstoredFor = 10 * time.Minute

// begin reports whether the message about the beat with a name has to be sent, and remembers it.
func (u *unstoredFailures) begin(name queue.Hash, m *notifier.Message, exit string, now time.Time) bool {
	text := sha256.Sum256([]byte(m.Title + "\x00" + m.Body))
	u.mu.Lock()
	defer u.mu.Unlock()
	if last, ok := u.sent[name]; ok && last.text == text && now.Sub(last.at) < unstoredFor {
		return false
	}
	if u.sent == nil {
		u.sent = map[queue.Hash]unstoredFailure{}
	}
	u.sent[name] = unstoredFailure{now, text, exit}
	return true
}

// last returns the last failure of the beat with a name.
func (u *unstoredFailures) last(name queue.Hash) (f unstoredFailure, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f, ok = u.sent[name]
	return f, ok
}

// forget forgets the last failure of a beat, so that the next one is sent.
func (u *unstoredFailures) forget(name queue.Hash) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.sent, name)
}
