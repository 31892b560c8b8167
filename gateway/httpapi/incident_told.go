package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// toldOf is what destinations were told of an incident.
type toldOf struct {
	events []view.IncidentEvent
	text   string // of the last message that tells its state, if an inbox keeps it
}

// The bounds of a search for the messages of an incident.
const (
	maxToldScan   = 1000 // messages
	toldPerRead   = 100
	maxToldEvents = 50
	toldTogether  = time.Minute // deliveries of a message within that time are one event
)

// told returns what destinations were told of an incident, for who may manage. It leaves out
// what the queue has forgotten, or cannot be read.
func (h *Incidents) told(r *http.Request, x *rules.Incident) (out toldOf) {
	q, err := h.App.Open(nil)
	if err != nil || q == nil {
		return out
	}
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	key := h.NameOfIncident(r)(x)
	var before uuid.UUID
	for scanned := 0; scanned < maxToldScan && len(out.events) < maxToldEvents; scanned += toldPerRead {
		entries, next, err := q.Outbox.Messages().Page(ctx, before, toldPerRead)
		if err != nil {
			return out
		}
		for _, e := range entries {
			if e.Message.Created.Before(x.Opened.Add(-time.Second)) {
				return out
			}
			typ, ok := ofIncident(ctx, q, e, key, x)
			if !ok {
				continue
			}
			out.events = append(out.events, eventsOf(e, typ)...)
			if out.text == "" && typ != notifier.Info {
				out.text = h.keptText(r, key, e.Message)
			}
		}
		if before = next; next == (uuid.UUID{}) {
			return out
		}
	}
	return out
}

// ofIncident reports whether a message to a key is one of an incident, and returns its type.
func ofIncident(ctx context.Context, q *gateway.Rooms, e *queue.Entry, key string, x *rules.Incident) (notifier.Type, bool) {
	var s queued.Summary
	if s.Decode(e.Message.Summary) != nil || s.Key != key || s.Known == "" {
		return "", false
	}
	of := q.Alerts.Incidents.OfMessage(ctx, e.Message)
	return s.Type, of != nil && of.ID == x.ID
}

// toldWords say what a message of a type tells of an incident.
var toldWords = map[notifier.Type]string{
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
		if n := i + 1; n < len(all) && all[n].failed == d.failed && all[n].at.Sub(d.at) < toldTogether {
			continue
		}
		slices.Sort(names)
		text := strings.Join(slices.Compact(names), ", ") + " got " + toldWords[typ] + "."
		if d.failed {
			text = strings.Join(slices.Compact(names), ", ") + " could not be told."
		}
		out = append(out, view.IncidentEvent{Time: d.at, Text: text, Worse: d.failed})
		names = nil
	}
	return out
}

// keptText returns the text of a message, if the inbox of its key keeps it and the client of r
// may read that.
func (h *Incidents) keptText(r *http.Request, key string, m *queue.Message) (text string) {
	x, err := h.inboxes.Reader(r, h.Lookup(key))
	if err != nil {
		return ""
	}
	_ = x.CameIn(r.Context(), m.Created, m.Created, func(kept *inbox.Message) bool { // without it, the page has no text
		if kept.ID == m.ID.String() {
			text = kept.Text()
		}
		return text == ""
	})
	return text
}
