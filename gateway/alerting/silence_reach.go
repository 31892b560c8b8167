package alerting

import (
	"context"
	"slices"

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
