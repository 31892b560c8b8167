package dispatch

import (
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Limits of an event's data.
const (
	maxEventItems = 20
	MaxEventError = 500 // bytes
)

// Emit emits the event for a message that was sent. A message about such an event emits none, to
// prevent a loop.
func (s *Dispatcher) Emit(d Delivery, outcome string, results []notifier.Result) {
	if d.Source == site.SourceOwnEvent {
		return
	}
	if outcome == site.OutcomeQueued && !slices.ContainsFunc(results, hasArrived) {
		return // the event follows when the queue has delivered it
	}
	if outcome == site.OutcomeDelivered && !slices.ContainsFunc(results, hasArrived) && slices.ContainsFunc(results, isReplaced) {
		return // the event is for the newer message
	}
	ok := outcome != site.OutcomeFailed
	name := event.Failed
	if ok {
		name = event.Delivered
	}
	if !s.Subscribed(name) {
		return
	}
	origin, incident := d.Origin, d.Message.Incident.Name // all of d would move to the heap
	s.EmitEvent(name, func() map[string]any { return OwnEventData(origin, incident, ok, results) })
}

func isReplaced(r notifier.Result) bool { return r.Rule != "" }

func hasArrived(r notifier.Result) bool { return r.Status == notifier.Delivered }

// OwnEventData returns the data of the event for a message that was sent. incident is the name of
// its incident; "" for none. If ok, the event is a success and lists the successful deliveries;
// otherwise it lists the failed ones.
func OwnEventData(o Origin, incident string, ok bool, results []notifier.Result) map[string]any {
	var services, destinations, errs []string
	delivered, failed := 0, 0
	for _, r := range results {
		listed := false
		switch {
		case r.Status == notifier.Delivered:
			delivered++
			listed = ok
		case r.Err != nil && r.Status != message.StatusQueued:
			failed++
			listed = !ok
		}
		if !listed || len(services) == maxEventItems {
			continue
		}
		services, destinations = append(services, r.Service), append(destinations, r.Destination)
		if r.Err != nil {
			errs = append(errs, markup.TruncateBytes(r.Err.Error(), MaxEventError))
		}
	}
	data := map[string]any{
		"key": o.Key, "source": o.Source, "incident": incident, "services": services, "destinations": destinations,
		"delivered": delivered, "failed": failed,
	}
	if !ok {
		data["errors"], data["error"] = errs, strings.Join(errs, "; ")
	}
	return data
}
