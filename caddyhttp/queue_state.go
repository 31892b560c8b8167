package caddyhttp

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// state returns what metrics tell of the queue.
func (q *openQueue) state(ctx context.Context) *queueState {
	out := &queueState{maxSize: q.app.Load().queueSettings.maxSize, destinations: q.Count(), incidents: q.countIncidents(ctx), now: q.Now()}
	s, err := q.Stats(ctx)
	if err != nil {
		return out
	}
	out.stats = &s
	if !q.app.Load().ExpectsBeats() {
		return out
	}
	beats, err := q.allBeats(ctx)
	if err != nil {
		return out
	}
	out.beats = map[string]int{stateOnTime: 0, stateInGrace: 0, string(rules.BeatLate): 0, string(rules.BeatFailed): 0}
	for _, b := range beats {
		out.beats[b.state(out.now)]++
	}
	return out
}
