package heartbeat

import (
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// AdminBeat is the JSON of a beat that a key expects.
type AdminBeat struct {
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
	StateOnTime  = "on_time"
	StateInGrace = "in_grace" // the next beat is due, and not late yet
)

// State returns the state of a beat for programs.
func (s *BeatStatus) State(now time.Time) string {
	switch {
	case s.Beat.State != rules.BeatOK:
		return string(s.Beat.State)
	case !s.Due.IsZero() && !s.Due.After(now):
		return StateInGrace
	}
	return StateOnTime
}

// AdminBeats is the JSON response about beats: those that keys expect, and the calls of
// the watchdog.
type AdminBeats struct {
	Beats    []AdminBeat   `json:"beats"`
	Watchdog *WatchdogJSON `json:"watchdog,omitempty"`
}
