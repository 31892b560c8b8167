package caddyhttp

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// settled reports a job that the queue has given up: in the log, metrics,
// history and events. The log also has a line about one that was not sent.
func (q *outbox) settled(j *queue.Job) {
	if j.Status == queue.Superseded {
		q.logSuperseded(j)
	}
	if j.Status != queue.Dead {
		return
	}
	app := q.app.Load()
	d := newDeadDelivery(j)
	level := zapcore.ErrorLevel
	if d.result.Optional {
		level = zapcore.WarnLevel
	}
	q.dead.write(q.log, level, "delivery given up; it can be tried again", "more deliveries given up; caddy notify queue list --dead shows them", zap.String("id", j.Message.String()), zap.String("key", d.state.Key),
		zap.String("service", d.result.Service), zap.String("destination", d.result.Destination), zap.Int("attempts", j.Attempts), zap.String("reason", d.reason))
	app.shared.Metrics.Dead(d.result.Service)
	if d.result.Optional {
		return
	}
	about := &notifier.Message{Time: time.Now(), Incident: notifier.Incident{Name: d.state.Incident}}
	message := dispatch.Delivery{Message: about, Source: d.state.Source, Key: d.state.Key, Site: d.state.Site}
	if !d.state.Reported {
		results := queued.Results(&api.QueuedMessage{Results: []api.QueuedResult{d.result}})
		app.shared.History.Add(message.HistoryEntry(site.OutcomeFailed), results)
		app.shared.Emit(message, site.OutcomeFailed, results)
	}
	sharedEmitDead(app.shared, d)
}

// logSuperseded writes a line about a delivery that was not sent. One that was sent has a
// line of its attempt.
func (q *outbox) logSuperseded(j *queue.Job) {
	if c := q.log.Check(zapcore.DebugLevel, "delivery not sent, because of a newer message or a rule"); c != nil {
		r := queued.DecodeResult(j.Result)
		c.Write(zap.Stringer("id", j.Message), zap.String("service", r.Service), zap.String("destination", r.Destination))
	}
}

// deadDelivery is a delivery that the queue has given up.
type deadDelivery struct {
	id     string // of the message
	state  queued.State
	result api.QueuedResult
	reason string // without secrets
}

func newDeadDelivery(j *queue.Job) deadDelivery {
	d := deadDelivery{id: j.Message.String(), result: queued.JobResult(j)}
	_ = d.state.Decode(j.State) // if the state is damaged, the key is unknown
	last := ""
	if d.result.Error != nil {
		last = *d.result.Error
	}
	d.reason = cmp.Or(j.Reason, last)
	if last != "" && last != d.reason {
		d.reason += "; the last error was: " + last
	}
	d.result.Error = &d.reason
	return d
}

// key returns the key that the message came to.
func (d deadDelivery) key() site.KeyID { return site.KeyID{Site: d.state.Site, Key: d.state.Key} }

// sharedEmitDead emits the event for a delivery that was given up. It emits none for
// a message about an event of the gateway, because such events could cause each
// other without end.
func sharedEmitDead(s *dispatch.Dispatcher, d deadDelivery) {
	if d.state.Source == site.SourceOwnEvent {
		return
	}
	s.EmitEvent(event.Dead, func() map[string]any {
		return map[string]any{
			"id": d.id, "key": d.state.Key, "source": d.state.Source, "incident": d.state.Incident, "service": d.result.Service,
			"destination": d.result.Destination, "attempts": d.result.Attempts, "error": markup.TruncateBytes(d.reason, dispatch.MaxEventError),
		}
	})
}

// fallback returns the message to the fallback of a key about a delivery that
// was given up, or nil if the key has no fallback. It is not sent if there was one less
// than an hour ago (see gaveUp).
func (q *outbox) fallback(j *queue.Job) *queue.Entry {
	d := newDeadDelivery(j)
	if d.result.Optional || d.state.Key == "" {
		return nil
	}
	settings, name, _ := q.app.Load().fallbackOf(&d.state)
	if name == "" {
		return nil
	}
	text := []string{
		"A message for the key " + d.state.Key + " was not delivered to " + d.result.Service + ", and is not tried again.",
		"Reason: " + markup.TruncateBytes(d.reason, dispatch.MaxEventError),
		"ID: " + d.id,
	}
	// The reason may quote what a server has answered.
	m := &notifier.Message{Title: "Message for " + d.state.Key + " not delivered", Body: strings.Join(text, "\n"), Type: notifier.Failure, Foreign: true}
	return q.fallbackEntry(settings, name, d.state.Site, m)
}

// fallbackName returns the name of the fallback of a key for errors.
func fallbackName(key string) string { return "key " + key + ", fallback" }

// checkFallbacks returns an error if a fallback does not exist or is part of a
// circle. durable reports whether the app has a queue. at has the positions of
// the settings.
func checkFallbacks(keys map[string]*site.Key, durable bool, at *CaddyfileInfo) error {
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		if err := checkFallback(keys, keys[name], durable); err != nil {
			return at.locate(fallbackName(name), fmt.Errorf("key %s: fallback: %w", name, err))
		}
	}
	return nil
}

func checkFallback(keys map[string]*site.Key, k *site.Key, durable bool) error {
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
		seen[next] = true
	}
	return nil
}
