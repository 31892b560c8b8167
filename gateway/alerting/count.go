package alerting

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// groupSizes remembers the sizes of the groups of records for a while, because each
// scrape of the metrics and each page of the console asks for them.
type groupSizes struct {
	mu    sync.Mutex
	sizes map[queue.Hash]int
	read  time.Time
}

// How long the sizes of groups are remembered, and how long reading them may take.
const (
	sizesFor     = 5 * time.Second
	sizesTimeout = 2 * time.Second
)

// Get returns the sizes. If they cannot be read, it returns those of before.
func (g *groupSizes) Get(ctx context.Context, q *queue.Queue) map[queue.Hash]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now(); g.read.IsZero() || now.Sub(g.read) >= sizesFor || now.Before(g.read) {
		ctx, cancel := context.WithTimeout(ctx, sizesTimeout)
		defer cancel()
		if sizes, err := q.CallersGroupSizes(ctx); err == nil {
			g.sizes = sizes
		}
		g.read = now
	}
	return g.sizes
}

// incidentCounts are how many incidents are in each stage.
type incidentCounts struct {
	mu      sync.Mutex
	counts  map[notifier.IncidentState]int
	counted time.Time
}

// CountIncidents returns how many incidents are in each stage: those of the keys of the
// configuration, and of saved keys with rules. It counts at most every few seconds, and
// reads no record.
func (q *Engine) CountIncidents(ctx context.Context) map[notifier.IncidentState]int {
	c := &q.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); !c.counted.IsZero() && now.Sub(c.counted) < sizesFor && !now.Before(c.counted) {
		return c.counts
	}
	c.counts, c.counted = map[notifier.IncidentState]int{}, time.Now()
	sizes := q.Groups.Get(ctx, q.Queue)
	if len(sizes) == 0 {
		return c.counts
	}
	places, _ := Places(ctx, &q.App.Load().Directory, "") // without saved keys if they cannot be listed now
	slices.Sort(places)
	for _, place := range slices.Compact(places) {
		for _, stage := range rules.Stages {
			c.counts[stage] += sizes[q.IncidentGroup(place, stage)]
		}
	}
	return c.counts
}
