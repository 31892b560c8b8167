package outbox

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/tally"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Settled reports a job that the queue has given up: in the log, metrics,
// history and events. The log also has a line about one that was not sent.
func (q *Outbox) Settled(j *queue.Job) {
	if j.Status == queue.Superseded {
		q.logSuperseded(j)
	}
	if j.Status != queue.Dead {
		return
	}
	d := NewDeadDelivery(j)
	level := zapcore.ErrorLevel
	if d.Result.Optional {
		level = zapcore.WarnLevel
	}
	q.dead.Write(q.Log, level, "delivery given up; it can be tried again", "more deliveries given up; caddy notify queue list --dead shows them", zap.String("id", j.Message.String()), zap.String("key", d.State.Key),
		zap.String("service", d.Result.Service), zap.String("destination", d.Result.Destination), zap.String("name", d.Result.Name), zap.Int("attempts", j.Attempts), zap.String("reason", d.Reason))
	q.Dispatcher.Metrics.Dead(d.Result.Service)
	q.tallyDead(j, &d)
	if d.Result.Optional {
		return
	}
	about := &notifier.Message{Time: time.Now(), Incident: notifier.Incident{Name: d.State.Incident}}
	told := dispatch.Delivery{Message: about, Origin: dispatch.Origin{Source: d.State.Source, Key: d.State.Key, Site: d.State.Site}}
	if !d.State.Reported {
		results := queued.Results(&message.QueuedMessage{Results: []message.QueuedResult{d.Result}})
		q.Dispatcher.History.Add(told.HistoryEntry(site.OutcomeFailed), results)
		q.Dispatcher.Emit(told, site.OutcomeFailed, results)
	}
	emitDead(q.Dispatcher, d)
}

// tallyDead counts a delivery as failed that the queue has given up for another reason than the
// failure of its last attempt, which counts by itself: because it is too old.
func (q *Outbox) tallyDead(j *queue.Job, d *DeadDelivery) {
	r := queued.DecodeResult(j.Result)
	if j.Reason == "" || r.Error != nil && j.Reason == *r.Error || d.State.Key == "" || d.State.Hash == "" {
		return
	}
	q.Dispatcher.Tally.Add(time.Now(), d.Key(), d.State.Hash, tally.Counts{Failed: 1})
}

// logSuperseded writes a line about a delivery that was not sent. One that was sent has a
// line of its attempt.
func (q *Outbox) logSuperseded(j *queue.Job) {
	if c := q.Log.Check(zapcore.DebugLevel, "delivery not sent, because of a newer message or a rule"); c != nil {
		r := queued.JobResult(j)
		c.Write(zap.Stringer("id", j.Message), zap.String("service", r.Service), zap.String("destination", r.Destination), zap.String("name", r.Name))
	}
}

// DeadDelivery is a delivery that the queue has given up, as people read about it.
type DeadDelivery struct {
	ID     string // of the message
	State  queued.State
	Result message.QueuedResult
	Reason string // without secrets
}

// NewDeadDelivery returns what a job tells that the queue has given up.
func NewDeadDelivery(j *queue.Job) DeadDelivery {
	d := DeadDelivery{ID: j.Message.String(), Result: queued.JobResult(j)}
	_ = d.State.Decode(j.State) // if the state is damaged, the key is unknown
	last := ""
	if d.Result.Error != nil {
		last = *d.Result.Error
	}
	d.Reason = cmp.Or(j.Reason, last)
	if last != "" && last != d.Reason {
		d.Reason += "; the last error was: " + last
	}
	d.Result.Error = &d.Reason
	return d
}

// Key returns the key that the message came to.
func (d DeadDelivery) Key() site.KeyID { return site.KeyID{Site: d.State.Site, Key: d.State.Key} }

// emitDead emits the event for a delivery that was given up. It emits none for
// a message about an event of the gateway, because such events could cause each
// other without end.
func emitDead(s *dispatch.Dispatcher, d DeadDelivery) {
	if d.State.Source == site.SourceOwnEvent {
		return
	}
	s.EmitEvent(event.Dead, func() map[string]any {
		return map[string]any{
			"id": d.ID, "key": d.State.Key, "source": d.State.Source, "incident": d.State.Incident, "service": d.Result.Service,
			"destination": d.Result.Destination, "attempts": d.Result.Attempts, "error": markup.TruncateBytes(d.Reason, dispatch.MaxEventError),
		}
	})
}

// Fallback returns the message to the fallback of a key about a delivery that
// was given up, or nil if the key has no fallback. It is not sent if there was one less
// than an hour ago (see [Outbox.Ended]).
func (q *Outbox) Fallback(j *queue.Job) *queue.Entry {
	d := NewDeadDelivery(j)
	if d.Result.Optional || d.State.Key == "" {
		return nil
	}
	settings, name, _ := q.Current().fallbackOf(&d.State)
	if name == "" {
		return nil
	}
	what := "A message for the key " + d.State.Key + " was not delivered to " + d.Result.Name
	if d.State.Planned() {
		what = "A planned message for the key " + d.State.Key + " was not sent"
	}
	text := []string{
		what + ", and is not tried again.",
		"Reason: " + markup.TruncateBytes(d.Reason, dispatch.MaxEventError),
		"ID: " + d.ID,
	}
	// The reason may quote what a server has answered.
	m := &notifier.Message{Title: "Message for " + d.State.Key + " not delivered", Body: strings.Join(text, "\n"), Type: notifier.Failure, Foreign: true}
	return q.fallbackEntry(settings, name, d.State.Site, m)
}

// FallbackName names the option fallback of a key in errors.
func FallbackName(key string) string { return "key " + key + ", fallback" }

// CheckFallback checks the fallback of k, which is one of keys. durable reports whether there
// is a queue, without which nothing is given up. The error is one for the operator, about the
// option fallback.
func CheckFallback(keys map[string]*site.Key, k *site.Key, durable bool) error {
	if k.Fallback != "" && (!durable || k.Unqueued) {
		return errors.New("it has no effect without a queue, because it gets messages about what the queue gives up; add queue to the global option notify, or remove the fallback")
	}
	seen := map[string]bool{k.Name: true}
	for next := k.Fallback; next != ""; next = keys[next].Fallback {
		if keys[next] == nil {
			return fmt.Errorf("there is no key %s here; a fallback is a key of the same site or of the global option", next)
		}
		if seen[next] {
			return fmt.Errorf("it leads back to the key %s in a circle; remove one of the fallbacks", next)
		}
		if to := keys[next]; to.Defaults.Untagged && len(to.DefaultTargets) == 0 && len(to.Targets) > 0 {
			return fmt.Errorf("what the queue gives up would reach nobody, because all URLs of the key %s have tags and its default_tag is untagged; remove default_tag, or name a tag in it", next)
		}
		seen[next] = true
	}
	return nil
}
