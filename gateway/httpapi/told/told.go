// Package told finds out, from the messages in the queue, which destinations were told of an
// incident, and when.
package told

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// The bounds of a search for the messages of an incident.
const (
	maxScan   = 1000 // messages
	perRead   = 100
	maxEvents = 50
	together  = time.Minute // deliveries of a message within that time are one event
)

// Of returns which destinations were told of an incident of the key with a name, and the text of
// the last message with its state; keptText returns the text if an inbox has it. It leaves out
// messages that the queue has forgotten or cannot read.
func Of(
	ctx context.Context, q *gateway.Rooms, x *rules.Incident, key string, keptText func(*queue.Message) string,
) (events []view.IncidentEvent, text string) {
	ctx, cancel := context.WithTimeout(ctx, outbox.AdminTimeout)
	defer cancel()
	var before uuid.UUID
	for scanned := 0; scanned < maxScan && len(events) < maxEvents; scanned += perRead {
		entries, next, err := q.Outbox.Messages().Page(ctx, before, perRead)
		if err != nil {
			return events, text
		}
		for _, e := range entries {
			if e.Message.Created.Before(x.Opened.Add(-time.Second)) {
				return events, text
			}
			typ, ok := ofIncident(ctx, q, e, key, x)
			if !ok {
				continue
			}
			events = append(events, eventsOf(e, typ)...)
			if text == "" && typ != notifier.Info {
				text = keptText(e.Message)
			}
		}
		if before = next; next == (uuid.UUID{}) {
			return events, text
		}
	}
	return events, text
}

// ofIncident reports whether a message to a key belongs to an incident, and returns its type.
func ofIncident(ctx context.Context, q *gateway.Rooms, e *queue.Entry, key string, x *rules.Incident) (notifier.Type, bool) {
	var s queued.Summary
	if s.Decode(e.Message.Summary) != nil || s.Key != key || s.Known == "" {
		return "", false
	}
	of := q.Alerts.Incidents.OfMessage(ctx, e.Message)
	return s.Type, of != nil && of.ID == x.ID
}

// words are the words for a message of a type about an incident.
var words = map[notifier.Type]string{
	notifier.Failure: "the failure", notifier.Warning: "the warning", notifier.Success: "that it is over", notifier.Info: "what was added",
}

// eventsOf returns who was told by a message, and when.
func eventsOf(e *queue.Entry, typ notifier.Type) (out []view.IncidentEvent) {
	type delivery struct {
		at     time.Time
		name   string
		failed bool
	}
	var all []delivery
	for i := range e.Jobs {
		j := &e.Jobs[i]
		switch r := queued.JobResult(j); {
		case j.Status == queue.Delivered && r.Status == notifier.Delivered:
			all = append(all, delivery{j.Updated, r.Name, false})
		case j.Status == queue.Dead, j.Status == queue.Failed && j.By == queue.JobID{}:
			all = append(all, delivery{j.Updated, r.Name, true})
		}
	}
	slices.SortStableFunc(all, func(a, b delivery) int { return a.at.Compare(b.at) })
	var names []string
	for i, d := range all {
		names = append(names, d.name)
		if n := i + 1; n < len(all) && all[n].failed == d.failed && all[n].at.Sub(d.at) < together {
			continue
		}
		slices.Sort(names)
		text := strings.Join(slices.Compact(names), ", ") + " got " + words[typ] + "."
		if d.failed {
			text = strings.Join(slices.Compact(names), ", ") + " could not be told."
		}
		out = append(out, view.IncidentEvent{Time: d.at, Text: text, Worse: d.failed})
		names = nil
	}
	return out
}
