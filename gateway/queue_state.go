package gateway

import (
	"context"

	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// State returns what metrics tell of the queue.
func (q *Rooms) State(ctx context.Context) *metrics.QueueState {
	out := &metrics.QueueState{MaxSize: q.App.Load().QueueSettings.MaxSize, Destinations: q.Count(), Incidents: q.CountIncidents(ctx), Now: q.Now()}
	s, err := q.Stats(ctx)
	if err != nil {
		return out
	}
	out.Stats = &s
	if !q.App.Load().ExpectsBeats() {
		return out
	}
	beats, err := q.AllBeats(ctx)
	if err != nil {
		return out
	}
	out.Beats = map[string]int{heartbeat.StateOnTime: 0, heartbeat.StateInGrace: 0, string(rules.BeatLate): 0, string(rules.BeatFailed): 0}
	for _, b := range beats {
		out.Beats[b.State(out.Now)]++
	}
	return out
}
