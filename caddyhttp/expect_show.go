package caddyhttp

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// setBeats sets the beats that a key expects. If the queue cannot be read, there are
// none, and the part about the queue says so.
func (h *pages) setBeats(r *http.Request, p *view.KeyPage, k *site.Key) {
	if len(k.Expects) == 0 {
		return
	}
	q, err := h.app.open(k)
	if err != nil || q == nil {
		return
	}
	var expected []expectedBeat
	for i := range k.Expects {
		expected = append(expected, *h.expectedBeat(k, &k.Expects[i]))
	}
	beats, err := q.beats(r.Context(), expected)
	if err != nil {
		return
	}
	for _, b := range beats {
		e := b.expected.ExpectedBeat
		x := view.Beat{
			Name: e.Name, Every: rules.FormatTime(e.Every), Grace: rules.FormatTime(e.Grace), Outcome: view.Delivered,
			Last: b.beat.Last, Due: b.due, Late: b.late, Overdue: b.state(q.Now()) == stateInGrace, Failed: b.beat.State == rules.BeatFailed,
		}
		if b.beat.State != rules.BeatOK {
			x.Outcome, x.Since = view.Failed, b.beat.Since
		}
		p.Beats = append(p.Beats, x)
	}
}

// adminBeat is the JSON of a beat that a key expects.
type adminBeat struct {
	Key   string     `json:"key"`
	Scope string     `json:"scope"` // global or site
	Name  string     `json:"name"`
	Every string     `json:"every"`
	Grace string     `json:"grace"`
	State string     `json:"state"`           // on_time, in_grace, late or failed
	Since *time.Time `json:"since,omitempty"` // it is late or has failed
	Last  *time.Time `json:"last,omitempty"`  // when the last one came
	Due   *time.Time `json:"due,omitempty"`   // when the next one is due
	Late  *time.Time `json:"late,omitempty"`  // when it is late
}

// The states of beats that have no problem, in the admin API and in metrics. The others
// are those of package rules.
const (
	stateOnTime  = "on_time"
	stateInGrace = "in_grace" // the next beat is due, and not late yet
)

// state returns the state of a beat for programs.
func (s *beatStatus) state(now time.Time) string {
	switch {
	case s.beat.State != rules.BeatOK:
		return string(s.beat.State)
	case !s.due.IsZero() && !s.due.After(now):
		return stateInGrace
	}
	return stateOnTime
}

// beatTroubles returns the beats of a key that are late or have failed, the first one first.
// They are nil if the queue cannot be read, which the pages say elsewhere.
func (h *pages) beatTroubles(ctx context.Context, q *openQueue, k *site.Key) (out []view.Trouble) {
	var expected []expectedBeat
	for i := range k.Expects {
		expected = append(expected, *h.expectedBeat(k, &k.Expects[i]))
	}
	if len(expected) == 0 {
		return nil
	}
	beats, err := q.beats(ctx, expected)
	if err != nil {
		return nil
	}
	for _, b := range beats {
		switch b.beat.State {
		case rules.BeatLate:
			out = append(out, view.Trouble{What: "The beat " + b.expected.ExpectedBeat.Name + " is late", Since: b.beat.Since})
		case rules.BeatFailed:
			out = append(out, view.Trouble{What: "The beat " + b.expected.ExpectedBeat.Name + " has failed", Since: b.beat.Since})
		case rules.BeatOK:
		}
	}
	slices.SortStableFunc(out, func(a, b view.Trouble) int { return a.Since.Compare(b.Since) })
	return out
}

// adminBeats is the JSON response about beats: those that keys expect, and the calls of
// the watchdog.
type adminBeats struct {
	Beats    []adminBeat   `json:"beats"`
	Watchdog *watchdogJSON `json:"watchdog,omitempty"`
}

// serveBeats lists the beats that keys expect, with the last call of the watchdog.
func (adminAPI) serveBeats(w http.ResponseWriter, r *http.Request) error {
	app, err := runningApp()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	var beats []beatStatus
	if app.queue != nil {
		if beats, err = app.queue.allBeats(ctx); err != nil {
			return adminError(http.StatusServiceUnavailable, err)
		}
	}
	out, now := adminBeats{Beats: make([]adminBeat, 0, len(beats))}, time.Now()
	if app.queue != nil {
		now = app.queue.Now()
		if out.Watchdog, err = app.queue.watchdog(ctx); err != nil {
			return adminError(http.StatusServiceUnavailable, err)
		}
	}
	for _, b := range beats {
		e := b.expected.ExpectedBeat
		x := adminBeat{
			Key: b.expected.key.Name, Scope: "global", Name: e.Name, Every: rules.FormatTime(e.Every), Grace: rules.FormatTime(e.Grace),
			State: b.state(now), Last: site.TimeOrNil(b.beat.Last), Due: site.TimeOrNil(b.due), Late: site.TimeOrNil(b.late),
		}
		if b.expected.key.OfSite {
			x.Scope = "site"
		}
		if b.beat.State != rules.BeatOK {
			x.Since = site.TimeOrNil(b.beat.Since)
		}
		out.Beats = append(out.Beats, x)
	}
	return writeAdminJSON(w, out)
}
