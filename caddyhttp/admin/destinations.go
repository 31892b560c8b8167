package admin

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Health is the state of one destination, for people.
type Health struct {
	ID           string                   `json:"id,omitempty"` // for POST /notify/destinations/{id}/retry
	State        metrics.DestinationState `json:"state"`
	LastSuccess  time.Time                `json:"last_success,omitzero"`
	FailingSince time.Time                `json:"failing_since,omitzero"`
	LastError    string                   `json:"last_error,omitempty"`
	Waiting      int                      `json:"waiting"` // deliveries
	WaitingSince time.Time                `json:"waiting_since,omitzero"`
}

func newHealth(h *queue.Health) Health {
	out := Health{
		ID: base64.RawURLEncoding.EncodeToString(h.Destination[:]), State: metrics.StateUnknown,
		LastSuccess: h.LastSuccess.UTC(), FailingSince: h.FailingSince.UTC(), LastError: h.LastError,
		Waiting: h.Waiting, WaitingSince: h.WaitingSince.UTC(),
	}
	switch {
	case h.Down():
		out.State = metrics.StateDown
	case h.Failing():
		out.State = metrics.StateFailing
	case h.Known:
		out.State = metrics.StateKnown
	}
	return out
}

// Destination is the JSON of a destination in the list of all.
type Destination struct {
	Keys        []string `json:"keys"` // sorted; none for URLs of clients and default_urls
	Service     string   `json:"service"`
	Destination string   `json:"destination"` // the URL with its secrets masked
	Client      bool     `json:"client"`      // a client decides the URL
	Health
}

// configuredHealth returns the destinations of the configuration by their hashes in the queue,
// without their states. It leaves out saved keys.
func configuredHealth(a *site.Directory, q *outbox.Outbox) map[queue.Hash]*Destination {
	out := map[queue.Hash]*Destination{}
	add := func(name string, limits *notifier.Limits, targets []notifier.Target) {
		for _, t := range targets {
			id := q.DestinationID(t, limits)
			d := out[id]
			if d == nil {
				d = &Destination{Keys: []string{}, Service: t.Service(), Destination: t.String(), Health: newHealth(&queue.Health{Destination: id})}
				out[id] = d
			}
			if name != "" && !slices.Contains(d.Keys, name) {
				d.Keys = append(d.Keys, name)
			}
		}
	}
	for _, s := range append([]*site.Site{a.Global}, a.Sites...) {
		for name, k := range s.Keys {
			add(name, k.Limits, s.Devices.With(k).Targets)
		}
		add("", nil, s.DefaultTargets)
	}
	return out
}

// allHealth returns the states of all destinations, the worst first.
func allHealth(ctx context.Context, a *site.Directory, q *outbox.Outbox) ([]Destination, error) {
	states, err := q.Queue.Destinations.All(ctx)
	if err != nil {
		return nil, err
	}
	configured := configuredHealth(a, q)
	out := make([]Destination, 0, max(len(states), len(configured)))
	for i := range states {
		s := &states[i]
		d := configured[s.Destination]
		if d == nil { // of a saved key, of a client, or removed from the configuration
			name := outbox.DecodeName(s.About)
			d = &Destination{Keys: []string{}, Service: name.Service, Destination: cmp.Or(name.URL, s.Host)}
			if name.Key != "" {
				d.Keys = append(d.Keys, name.Key)
			}
		}
		delete(configured, s.Destination)
		d.Client, d.Health = s.Client, newHealth(s)
		out = append(out, *d)
	}
	for _, d := range configured {
		out = append(out, *d)
	}
	for i := range out {
		slices.Sort(out[i].Keys)
	}
	slices.SortFunc(out, compareHealth)
	return out, nil
}

// compareHealth sorts the worst first.
func compareHealth(a, b Destination) int {
	order := []metrics.DestinationState{metrics.StateDown, metrics.StateFailing, metrics.StateUnknown, metrics.StateKnown}
	return cmp.Or(
		cmp.Compare(slices.Index(order, a.State), slices.Index(order, b.State)),
		cmp.Compare(b.Waiting, a.Waiting),
		strings.Compare(strings.Join(a.Keys, " "), strings.Join(b.Keys, " ")),
		strings.Compare(a.Destination, b.Destination),
		strings.Compare(a.ID, b.ID),
	)
}

// healthOf returns the states of targets, in their order, or nil without a queue.
func healthOf(ctx context.Context, g *gateway.Gateway, k *site.Key, targets []notifier.Target) ([]Health, error) {
	if g.Rooms == nil || len(targets) == 0 {
		return nil, nil
	}
	ids, out := make([]queue.Hash, len(targets)), make([]Health, len(targets))
	for i, t := range targets {
		ids[i] = g.Rooms.Outbox.DestinationID(t, k.Limits)
		out[i] = newHealth(&queue.Health{Destination: ids[i]})
	}
	states, err := g.Rooms.Outbox.Queue.Destinations.Of(ctx, ids...)
	if err != nil {
		return nil, err
	}
	for i := range states {
		for at, id := range ids {
			if id == states[i].Destination {
				out[at] = newHealth(&states[i])
			}
		}
	}
	return out, nil
}

// Destinations is the JSON response about the destinations.
type Destinations struct {
	Known        int           `json:"known"`
	Failing      int           `json:"failing"`
	Down         int           `json:"down"`
	Destinations []Destination `json:"destinations"`
	Omitted      int           `json:"omitted,omitempty"`
}

// serveDestinations lists the destinations, the worst first.
func serveDestinations(w http.ResponseWriter, r *http.Request) error {
	q, err := runningQueue()
	if err != nil {
		return err
	}
	_, limit, err := parsePage(r.URL.Query())
	if err != nil {
		return apiError(http.StatusBadRequest, err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	all, err := allHealth(ctx, &q.Outbox.Current().Directory, q.Outbox)
	if err != nil {
		return apiError(http.StatusServiceUnavailable, err)
	}
	n := q.Outbox.Queue.Destinations.Count()
	out := Destinations{Known: n.Known, Failing: n.Failing, Down: n.Down, Destinations: all[:min(limit, len(all))]}
	out.Omitted = len(all) - len(out.Destinations)
	return writeJSON(w, out)
}

var errNoDestination = errors.New("there is no such destination; caddy notify queue destinations and GET /notify/destinations list all")

// serveRetryDestination makes the deliveries to one destination due that wait or were given up.
func serveRetryDestination(w http.ResponseWriter, r *http.Request) error {
	q, err := runningQueue()
	if err != nil {
		return err
	}
	b, err := base64.RawURLEncoding.DecodeString(r.PathValue("id"))
	var id queue.Hash
	if err != nil || len(b) != len(id) {
		return apiError(http.StatusNotFound, errNoDestination)
	}
	copy(id[:], b)
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	n, err := q.Outbox.Messages().RetryDestinations(ctx, []queue.Hash{id}, func(_ context.Context, j *queue.Job) bool {
		return q.Outbox.Queue.Hash(j.Destination) == id
	})
	if err != nil {
		return answerError(w, err)
	}
	if n == (queue.Retried{}) { // nothing waits, or there is no such destination
		_, configured := configuredHealth(&q.Outbox.Current().Directory, q.Outbox)[id]
		if states, err := q.Outbox.Queue.Destinations.Of(ctx, id); err != nil || len(states) == 0 && !configured {
			return apiError(http.StatusNotFound, errNoDestination)
		}
	}
	return writeJSON(w, newChangeJSON(n))
}
