package heartbeat

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// failUnstored sends the message about a beat that has failed, because err keeps the queue from
// storing it. Unless the change of the beat can be stored without the message, the answer is 503:
// the job sends the beat again, so that the gateway learns what it has told.
func (m *Monitor) failUnstored(ctx context.Context, x *ExpectedBeat, d dispatch.Delivery, c *BeatChange, err error) (*api.Response, error) {
	full := errors.Is(err, queue.ErrFull)
	if full && d.Rules.IsStep() { // Submit would have told it if somebody had to be told now
		return nil, outbox.QueueError(err)
	}
	stored := full && c.Apply(ctx) == nil
	refusal := outbox.ErrQueueUnavailable(err)
	resp := &api.Response{}
	if m.unstored.begin(c.name, d.Message, time.Now()) {
		m.outbox.Log.Error("a beat that has failed cannot be stored; the message about it is sent once", zap.String("key", d.Key), zap.String("beat", x.Name), zap.Error(err))
		resp = api.NewResponse(m.outbox.Engine.Load().Shared.Send(ctx, d))
		if resp.Error != "" {
			m.unstored.forget(c.name)
		}
	}
	if stored && resp.Error == "" {
		Emit(m.outbox.Engine.Load(), event.BeatLate, x, &c.Beat)
		return response(x, cameText(x, c), &notifier.Report{Results: resp.Results, Records: resp.Records}), nil
	}
	resp.Status, resp.Error, resp.RetryAfter = refusal.Status, refusal.Error(), refusal.RetryAfter
	return resp, nil
}

// unstoredFailures are the last failures of beats that were sent without being stored: a job
// that sends its beat again after 503 must not tell the same each time. The zero value is ready
// for use.
type unstoredFailures struct {
	mu   sync.Mutex
	sent map[queue.Hash]unstoredFailure
}

type unstoredFailure struct {
	at   time.Time
	text [sha256.Size]byte // the hash of the message
}

// unstoredFor is how long the same failure is not sent again. Programs that try again do so
// within minutes.
const unstoredFor = 10 * time.Minute

// begin reports whether the message about the beat with a name has to be sent, and remembers it.
func (u *unstoredFailures) begin(name queue.Hash, m *notifier.Message, now time.Time) bool {
	text := sha256.Sum256([]byte(m.Title + "\x00" + m.Body))
	u.mu.Lock()
	defer u.mu.Unlock()
	if last, ok := u.sent[name]; ok && last.text == text && now.Sub(last.at) < unstoredFor {
		return false
	}
	if u.sent == nil {
		u.sent = map[queue.Hash]unstoredFailure{}
	}
	u.sent[name] = unstoredFailure{now, text}
	return true
}

// forget makes the next failure of a beat be sent.
func (u *unstoredFailures) forget(name queue.Hash) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.sent, name)
}
