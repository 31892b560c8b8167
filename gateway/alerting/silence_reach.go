package alerting

import (
	"context"
	"slices"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Reached returns how many incidents of a key that are not resolved a silence would match now, for
// one of their destinations at least. It looks at no more than most incidents in each stage.
func (i *Incidents) Reached(ctx context.Context, k *site.Key, siteID string, s *rules.Silence, most int) (n int, err error) {
	for _, stage := range []notifier.IncidentState{notifier.Open, notifier.Acknowledged} {
		page, _, _, err := i.page(ctx, k.Place(siteID).String(), stage, queue.Hash{}, most)
		if err != nil {
			return 0, err
		}
		for _, x := range page {
			concerns := func(t notifier.Target) bool { return isToldOf(x.Incident, t) && s.Concerns(t.Tags) }
			if s.MatchesIncident(x.Incident) && (s.Tag == "" || slices.ContainsFunc(k.Targets, concerns)) {
				n++
			}
		}
	}
	return n, nil
}

// Keeping returns the key of an incident, nil if it is gone, and a function that returns the silence
// which keeps a step of the incident from all its destinations at a time, or nil. Of several, it is the
// one that ends first.
func (s *Silences) Keeping(ctx context.Context, x *rules.Incident) (*site.Key, func(step int, at time.Time) *rules.Silence, error) {
	k, _, err := s.outbox.Current().KeyOfIncident(ctx, x)
	var all rules.Silences
	if err == nil && k != nil {
		all, err = s.List(ctx, PlaceOfIncident(x), k.SilenceWindows())
	}
	return k, func(step int, at time.Time) (first *rules.Silence) {
		for i := 0; len(all) > 0 && i < len(k.Targets); i++ {
			t := k.Targets[i]
			if rules.StepOf(t.Tags) != step || !isToldOf(x, t) {
				continue
			}
			m := all.MatchIncident(at, x, t.Tags)
			if m == nil {
				return nil
			}
			if first == nil || m.Until.Before(first.Until) {
				first = m
			}
		}
		return first
	}, err
}
