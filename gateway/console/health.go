package console

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/console/beats"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/history"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// silentAfter is the time without a success after which a destination is shown as silent.
const silentAfter = 7 * 24 * time.Hour

// healthView has the states of destinations for one page.
type healthView struct {
	q      *gateway.Rooms // nil without a queue, or if it cannot be read
	byID   map[queue.Hash]*queue.Health
	states []queue.Health
	last   lastResults
	lastOf func(site.KeyID) history.LastOutcome

	troubles map[*site.Key][]view.Trouble // for keys that expect beats
}

// lastResult is the last known result of a destination.
type lastResult struct {
	cause     string    // "" for a success
	since     time.Time // the first of the failures in a row
	delivered time.Time
}

// remembered returns the states of keys and destinations according to the history.
func (h *shared) remembered() *healthView {
	return &healthView{lastOf: h.Shared.History.LastOf, last: lastResultsOf(&h.Shared.History)}
}

// health returns the states of all destinations. The error is from the queue; the view can be used
// nevertheless.
func (h *shared) health(ctx context.Context) (*healthView, error) {
	v := h.remembered()
	q, err := h.App.Open(nil)
	if err == nil && q != nil {
		ctx, cancel := context.WithTimeout(ctx, outbox.AdminTimeout)
		defer cancel()
		if v.states, err = q.Outbox.Queue.Destinations.All(ctx); err == nil {
			v.q, v.byID = q, make(map[queue.Hash]*queue.Health, len(v.states))
			for i := range v.states {
				v.byID[v.states[i].Destination] = &v.states[i]
			}
			v.addRecords(ctx)
			v.troubles = map[*site.Key][]view.Trouble{}
			for _, k := range h.Resolved.Keys {
				if len(k.Expects) > 0 {
					v.troubles[k] = (beats.Pages{API: h.api}).Troubles(ctx, q, k)
				}
			}
			return v, nil
		}
	}
	return v, err
}

// maxHealthScan is how many of the last messages are searched for destinations whose state the
// queue does not keep: destinations of clients that do not fail, and destinations that refuse
// permanently.
const maxHealthScan = 200

// addRecords adds the results of the last messages in the queue. Unlike the history, they survive a
// restart.
func (v *healthView) addRecords(ctx context.Context) {
	entries, _, err := v.q.Outbox.Queue.Messages(ctx, uuid.UUID{}, maxHealthScan)
	if err != nil {
		return // the history must do
	}
	records := lastResults{}
	for _, e := range slices.Backward(entries) {
		var s queued.Summary
		if s.Decode(e.Message.Summary) != nil || s.Key == "" {
			continue
		}
		for _, r := range queued.Message(e).Results {
			records.add(site.KeyID{Site: s.Site, Key: s.Key}, e.Message.Created, &r.Result)
		}
	}
	for id, byURL := range records {
		if v.last[id] == nil {
			v.last[id] = byURL
			continue
		}
		maps.Copy(v.last[id], byURL)
	}
}

// lastResultsOf returns the last results of destinations in the history.
func lastResultsOf(h *history.History) lastResults {
	out := lastResults{}
	for _, e := range slices.Backward(h.List()) { // the oldest first
		if e.Key == "" || e.Outcome == site.OutcomeRefused {
			continue
		}
		for i := range e.Results {
			out.add(site.KeyID{Site: e.Site, Key: string(e.Key)}, e.Time, &e.Results[i])
		}
	}
	return out
}

// lastResults are the last results of the destinations of keys, by their URLs as shown.
type lastResults map[site.KeyID]map[string]lastResult

// add adds the result of a message that is later than those added before.
func (l lastResults) add(id site.KeyID, at time.Time, r *message.Result) {
	last := l[id][r.Destination]
	switch {
	case r.Status == message.StatusCancelled:
		return
	case r.Error != nil:
		if last.cause == "" {
			last.since = at
		}
		last.cause = *r.Error
	case r.Status == notifier.Delivered:
		last.cause, last.delivered = "", at
	default:
		return
	}
	if l[id] == nil {
		l[id] = map[string]lastResult{}
	}
	l[id][r.Destination] = last
}

// of returns the state of a destination of a key.
func (v *healthView) of(id site.KeyID, t notifier.Target, limits *notifier.Limits) view.Health {
	out := view.Health{State: view.Silent}
	if v.q != nil {
		out = consoleHealth(v.byID[v.q.Outbox.DestinationID(t, limits)])
	}
	if out.State != view.Silent {
		return out
	}
	last := v.last[id][t.String()]
	out.Delivered = later(out.Delivered, last.delivered)
	switch {
	case last.cause != "":
		out.State, out.Since, out.Cause = view.Failing, last.since, last.cause
	case !last.delivered.IsZero():
		out.State = view.Fine
	}
	return out
}

// consoleHealth returns a health of the queue as the pages show it. s may be nil.
func consoleHealth(s *queue.Health) view.Health {
	if s == nil {
		return view.Health{State: view.Silent}
	}
	out := view.Health{State: view.Fine, Waiting: s.Waiting, WaitingSince: s.WaitingSince, Delivered: s.LastSuccess, Cause: s.LastError}
	switch {
	case s.Down():
		out.State, out.Since = view.Down, s.DownSince
	case s.Failing():
		out.State, out.Since = view.Failing, s.FailingSince
	case s.Waiting > 0:
		out.State = view.Waiting
	case s.LastSuccess.IsZero() || time.Since(s.LastSuccess) > silentAfter:
		out.State = view.Silent
	}
	return out
}

// remember sets the state of a key if nothing is known about its destinations. The history keeps
// more about keys than about destinations.
func (v *healthView) remember(id site.KeyID, sum *view.Health) {
	last := v.lastOf(id)
	switch {
	case last.Failed.After(last.Delivered):
		sum.State, sum.Since = view.Failing, last.Failed
	case !last.Delivered.IsZero():
		sum.State = view.Fine
	}
	sum.Delivered = later(sum.Delivered, last.Delivered)
}

// addHealth adds the state of a destination to the state of its key.
func addHealth(sum *view.Health, d view.Health, name string) {
	if d.State.Worse(sum.State) {
		sum.State, sum.Since, sum.Cause = d.State, d.Since, ""
		if d.Cause != "" {
			sum.Cause = name + ": " + d.Cause
		}
	}
	sum.Waiting += d.Waiting
	if !d.WaitingSince.IsZero() && (sum.WaitingSince.IsZero() || d.WaitingSince.Before(sum.WaitingSince)) {
		sum.WaitingSince = d.WaitingSince
	}
	sum.Delivered = later(sum.Delivered, d.Delivered)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// ofKey returns the state of a key, which is the state of its worst destination. A destination that
// got nothing yet does not make the key silent. A beat that is late or has failed makes the key
// fail.
func (v *healthView) ofKey(id site.KeyID, k *site.Key) view.Health {
	sum := view.Health{}
	for _, t := range k.Targets {
		d := v.of(id, t, k.Limits)
		if d.State == view.Silent {
			sum.Delivered = later(sum.Delivered, d.Delivered)
			continue
		}
		addHealth(&sum, d, t.Name())
	}
	if sum.State == "" {
		sum.State = view.Silent
		v.remember(id, &sum)
	}
	sum.Troubles = v.troubles[k]
	if len(sum.Troubles) > 0 && view.Failing.Worse(sum.State) {
		sum.State, sum.Since, sum.Cause = view.Failing, sum.Troubles[0].Since, ""
	}
	return sum
}
