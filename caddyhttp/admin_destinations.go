package caddyhttp

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// destinationState is what the last attempts tell about a destination.
type destinationState string

// The states of destinations, the worst first.
const (
	stateDown    destinationState = "down"    // at least three attempts in a row have failed
	stateFailing destinationState = "failing" // the last attempt has failed
	stateUnknown destinationState = "unknown" // there was no attempt that tells
	stateKnown   destinationState = "known"   // the last attempt succeeded
)

// DestinationHealth is the state of one destination for people: in the admin API,
// the commands and the pages.
type DestinationHealth struct {
	ID           string           `json:"id,omitempty"` // for POST /notify/destinations/{id}/retry
	State        destinationState `json:"state"`
	LastSuccess  *time.Time       `json:"last_success,omitempty"`
	FailingSince *time.Time       `json:"failing_since,omitempty"`
	LastError    string           `json:"last_error,omitempty"`
	Waiting      int              `json:"waiting"` // deliveries
	WaitingSince *time.Time       `json:"waiting_since,omitempty"`
}

func newDestinationHealth(h *queue.Health) DestinationHealth {
	out := DestinationHealth{
		ID: base64.RawURLEncoding.EncodeToString(h.Destination[:]), State: stateUnknown,
		LastSuccess: timeOrNil(h.LastSuccess), FailingSince: timeOrNil(h.FailingSince), LastError: h.LastError,
		Waiting: h.Waiting, WaitingSince: timeOrNil(h.WaitingSince),
	}
	switch {
	case h.Down():
		out.State = stateDown
	case h.Failing():
		out.State = stateFailing
	case h.Known:
		out.State = stateKnown
	}
	return out
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// adminHealth is the JSON of a destination in the list of all.
type adminHealth struct {
	Keys        []string `json:"keys"` // sorted; none for URLs of clients and default_urls
	Service     string   `json:"service"`
	Destination string   `json:"destination"` // the URL with its secrets masked
	Client      bool     `json:"client"`      // a client decides the URL
	DestinationHealth
}

// destinationOf returns what the queue knows a target by, in messages with these
// limits. A destination that a client decides is another one than that of the
// operator with the same URL, so that what clients send to it delays nothing of the
// operator's.
func destinationOf(t notifier.Target, limits *notifier.Limits) string {
	if limits != nil {
		return ofClients + t.Hash()
	}
	return t.Hash()
}

// ofClients begins the name of a destination that has limits.
const ofClients = "client "

// hashOfDestination returns the hash of the destination with a name of destinationOf.
func hashOfDestination(name string) string { return strings.TrimPrefix(name, ofClients) }

// configured returns the destinations of the configuration by the hashes that the
// queue has for them, without their states. Saved keys are not among them.
func (a *directory) configured(q *outbox) map[queue.Hash]*adminHealth {
	out := map[queue.Hash]*adminHealth{}
	add := func(name string, limits *notifier.Limits, targets []notifier.Target) {
		for _, t := range targets {
			id := q.Hash(destinationOf(t, limits))
			d := out[id]
			if d == nil {
				d = &adminHealth{Keys: []string{}, Service: t.Service(), Destination: t.String(), DestinationHealth: newDestinationHealth(&queue.Health{Destination: id})}
				out[id] = d
			}
			if name != "" && !slices.Contains(d.Keys, name) {
				d.Keys = append(d.Keys, name)
			}
		}
	}
	for _, s := range append([]*resolved{a.resolved}, a.sites...) {
		for name, k := range s.keys {
			add(name, k.limits, s.devices.with(k).targets)
		}
		add("", nil, s.defaultTargets)
	}
	return out
}

// destinations returns the states of all destinations, the worst first.
func (a *directory) destinations(ctx context.Context, q *outbox) ([]adminHealth, error) {
	states, err := q.Destinations(ctx)
	if err != nil {
		return nil, err
	}
	configured := a.configured(q)
	out := make([]adminHealth, 0, max(len(states), len(configured)))
	for i := range states {
		s := &states[i]
		d := configured[s.Destination]
		if d == nil { // of a saved key, of a client, or removed from the configuration
			name := decodeName(s.About)
			d = &adminHealth{Keys: []string{}, Service: name.Service, Destination: cmp.Or(name.URL, s.Host)}
			if name.Key != "" {
				d.Keys = append(d.Keys, name.Key)
			}
		}
		delete(configured, s.Destination)
		d.Client, d.DestinationHealth = s.Client, newDestinationHealth(s)
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
func compareHealth(a, b adminHealth) int {
	order := []destinationState{stateDown, stateFailing, stateUnknown, stateKnown}
	return cmp.Or(
		cmp.Compare(slices.Index(order, a.State), slices.Index(order, b.State)),
		cmp.Compare(b.Waiting, a.Waiting),
		strings.Compare(strings.Join(a.Keys, " "), strings.Join(b.Keys, " ")),
		strings.Compare(a.Destination, b.Destination),
		strings.Compare(a.ID, b.ID),
	)
}

// healthOf returns the states of targets, in their order, or nil without a queue.
func (a *engine) healthOf(ctx context.Context, k *key, targets []notifier.Target) ([]DestinationHealth, error) {
	if a.outbox == nil || len(targets) == 0 {
		return nil, nil
	}
	ids, out := make([]queue.Hash, len(targets)), make([]DestinationHealth, len(targets))
	for i, t := range targets {
		ids[i] = a.outbox.Hash(destinationOf(t, k.limits))
		out[i] = newDestinationHealth(&queue.Health{Destination: ids[i]})
	}
	states, err := a.outbox.Health(ctx, ids...)
	if err != nil {
		return nil, err
	}
	for i := range states {
		for at, id := range ids {
			if id == states[i].Destination {
				out[at] = newDestinationHealth(&states[i])
			}
		}
	}
	return out, nil
}

// adminDestinations is the JSON response about the destinations.
type adminDestinations struct {
	Known        int           `json:"known"`
	Failing      int           `json:"failing"`
	Down         int           `json:"down"`
	Destinations []adminHealth `json:"destinations"`
	Omitted      int           `json:"omitted,omitempty"`
}

// serveDestinations lists the destinations, the worst first.
func (adminAPI) serveDestinations(w http.ResponseWriter, r *http.Request) error {
	q, err := runningQueue()
	if err != nil {
		return err
	}
	_, limit, err := parsePage(r.URL.Query())
	if err != nil {
		return adminError(http.StatusBadRequest, err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), adminTimeout)
	defer cancel()
	all, err := q.app.Load().destinations(ctx, q.outbox)
	if err != nil {
		return adminError(http.StatusServiceUnavailable, err)
	}
	n := q.Count()
	out := adminDestinations{Known: n.Known, Failing: n.Failing, Down: n.Down, Destinations: all[:min(limit, len(all))]}
	out.Omitted = len(all) - len(out.Destinations)
	return writeAdminJSON(w, out)
}

var errNoDestination = errors.New("there is no such destination; GET /notify/destinations lists all")

// serveRetryDestination makes what waits for one destination due now.
func (adminAPI) serveRetryDestination(w http.ResponseWriter, r *http.Request) error {
	q, err := runningQueue()
	if err != nil {
		return err
	}
	b, err := base64.RawURLEncoding.DecodeString(r.PathValue("id"))
	var id queue.Hash
	if err != nil || len(b) != len(id) {
		return adminError(http.StatusNotFound, errNoDestination)
	}
	copy(id[:], b)
	ctx, cancel := context.WithTimeout(r.Context(), adminTimeout)
	defer cancel()
	n, err := q.RetryDestination(ctx, id)
	if err != nil {
		return adminError(http.StatusServiceUnavailable, err)
	}
	if n == 0 { // nothing waits, or there is no such destination
		_, configured := q.app.Load().configured(q.outbox)[id]
		if states, err := q.Health(ctx, id); err != nil || len(states) == 0 && !configured {
			return adminError(http.StatusNotFound, errNoDestination)
		}
	}
	return writeAdminJSON(w, adminChange{Deliveries: n, Waiting: n})
}
