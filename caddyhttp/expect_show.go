package caddyhttp

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp/console"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// setBeats sets the beats that a key expects. If the queue cannot be read, there are
// none, and the part about the queue says so.
func (h *Handler) setBeats(r *http.Request, p *console.KeyPage, k *key) {
	if len(k.expects) == 0 {
		return
	}
	q, err := h.app.durable(k)
	if err != nil || q == nil {
		return
	}
	var expected []expectedBeat
	for i := range k.expects {
		expected = append(expected, *h.expectedBeat(k, &k.expects[i]))
	}
	beats, err := q.beats(r.Context(), expected)
	if err != nil {
		return
	}
	for _, b := range beats {
		e := b.expected.expect
		x := console.Beat{
			Name: e.Name, Every: rules.FormatTime(e.Every), Grace: rules.FormatTime(e.Grace), Outcome: console.Delivered,
			Last: b.beat.Last, Due: b.due, Failed: b.beat.State == rules.BeatFailed,
		}
		if b.beat.State != rules.BeatOK {
			x.Outcome, x.Since = console.Failed, b.beat.Since
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
	State string     `json:"state"`           // on_time, late or failed
	Since *time.Time `json:"since,omitempty"` // it is late or has failed
	Last  *time.Time `json:"last,omitempty"`  // when the last one came
	Due   *time.Time `json:"due,omitempty"`   // when the next one is due
	Late  *time.Time `json:"late,omitempty"`  // when it is late
}

// The states of beats that have no problem, in the admin API and in metrics. The others
// are those of package rules.
const stateOnTime = "on_time"

// beatState returns the state of a beat for programs.
func (s *beatStatus) state() string {
	if s.beat.State == rules.BeatOK {
		return stateOnTime
	}
	return string(s.beat.State)
}

// allBeats returns the beats of all keys, by key and name. There are none without a
// queue.
func (a *App) allBeats(ctx context.Context) ([]beatStatus, error) {
	if a.queue == nil {
		return nil, nil
	}
	beats, err := a.queue.beats(ctx, a.expectedBeats())
	slices.SortFunc(beats, func(x, y beatStatus) int {
		return strings.Compare(x.expected.key.name+" "+x.expected.expect.Name, y.expected.key.name+" "+y.expected.expect.Name)
	})
	return beats, err
}

// serveBeats lists the beats that keys expect.
func (adminAPI) serveBeats(w http.ResponseWriter, r *http.Request) error {
	app, err := runningApp()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), adminTimeout)
	defer cancel()
	beats, err := app.allBeats(ctx)
	if err != nil {
		return adminError(http.StatusServiceUnavailable, err)
	}
	out := make([]adminBeat, 0, len(beats))
	for _, b := range beats {
		e := b.expected.expect
		x := adminBeat{
			Key: b.expected.key.name, Scope: "global", Name: e.Name, Every: rules.FormatTime(e.Every), Grace: rules.FormatTime(e.Grace),
			State: b.state(), Last: timeOrNil(b.beat.Last), Due: timeOrNil(b.due), Late: timeOrNil(b.late),
		}
		if b.expected.key.ofSite {
			x.Scope = "site"
		}
		if b.beat.State != rules.BeatOK {
			x.Since = timeOrNil(b.beat.Since)
		}
		out = append(out, x)
	}
	return writeAdminJSON(w, out)
}
