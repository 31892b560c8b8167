package caddyhttp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// The gateway emits one event for each message that was sent, from any source,
// and one for each delivery that the queue has made or given up later.
// The origin of the event is the app notify. Its data are
//
//	key           the name of the key; "" for a message without one
//	source        the source of the message: http, smtp, test, event, log or fallback
//	services      the services that have the message (notify_delivered) or do not (notify_failed)
//	destinations  their URLs with the secrets masked, in the same order
//	errors        the errors, in the same order (notify_failed)
//	error         the errors as one text (notify_failed)
//	delivered     how many destinations have the message
//	failed        how many do not
//
// Lists have at most 20 items. The data contain no secret, and no text of the
// message unless the error of a destination repeats it.
const (
	eventDelivered = "notify_delivered"
	eventFailed    = "notify_failed"

	// eventDead is emitted when the queue gives up a delivery. Its data are the id
	// of the message, its key and source, the service, the destination, how many
	// attempts there were, and the error.
	eventDead = "notify_dead"
)

// eventConfigChanged is the event for each change of a saved configuration. Its
// data are
//
//	key           the name of the key
//	change        saved or deleted
//	destinations  how many it has now
//	user          who made the change; "" if Caddy's authentication has found nobody
const eventConfigChanged = "notify_config_changed"

// Limits of an event's data.
const (
	maxEventItems = 20
	maxEventError = 500 // bytes
)

// emitter emits events of an app.
type emitter struct {
	ctx    caddy.Context
	events *caddyevents.App
}

func newEmitter(ctx caddy.Context) (emitter, error) {
	app, err := ctx.App("events")
	if err != nil {
		return emitter{}, fmt.Errorf("loading the events app: %w", err)
	}
	return emitter{ctx, app.(*caddyevents.App)}, nil
}

// emit emits the event for a message that was sent. A message about such an
// event emits none, because that would never end.
func (s *shared) emit(d delivery, outcome string, results []notifier.Result) {
	app := s.apps.newest()
	if app == nil || d.source == sourceOwnEvent {
		return
	}
	if outcome == outcomeQueued && !slices.ContainsFunc(results, hasArrived) {
		return // there is an event when the queue has delivered it
	}
	ok := outcome != outcomeFailed
	name := eventFailed
	if ok {
		name = eventDelivered
	}
	app.emitter.emit(name, func() map[string]any { return ownEventData(d, ok, results) })
}

// emit emits an event if somebody has subscribed to it.
func (e emitter) emit(name string, data func() map[string]any) {
	if e.ctx.Err() == nil && e.events.ShouldEmit(name) {
		e.events.Emit(e.ctx, name, data())
	}
}

func hasArrived(r notifier.Result) bool { return r.Status == notifier.Delivered }

func ownEventData(d delivery, ok bool, results []notifier.Result) map[string]any {
	var services, destinations, errs []string
	delivered, failed := 0, 0
	for _, r := range results {
		listed := false
		switch {
		case r.Status == notifier.Delivered:
			delivered++
			listed = ok
		case r.Err != nil && r.Status != api.StatusQueued:
			failed++
			listed = !ok
		}
		if !listed || len(services) == maxEventItems {
			continue
		}
		services, destinations = append(services, r.Service), append(destinations, r.Destination)
		if r.Err != nil {
			errs = append(errs, markup.TruncateBytes(r.Err.Error(), maxEventError))
		}
	}
	data := map[string]any{
		"key": d.key, "source": d.source, "services": services, "destinations": destinations,
		"delivered": delivered, "failed": failed,
	}
	if !ok {
		data["errors"], data["error"] = errs, strings.Join(errs, "; ")
	}
	return data
}
