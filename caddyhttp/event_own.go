package caddyhttp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

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
	if d.source == site.SourceOwnEvent {
		return
	}
	if outcome == site.OutcomeQueued && !slices.ContainsFunc(results, hasArrived) {
		return // there is an event when the queue has delivered it
	}
	if outcome == site.OutcomeDelivered && !slices.ContainsFunc(results, hasArrived) && slices.ContainsFunc(results, isReplaced) {
		return // there is an event for the newer message
	}
	ok := outcome != site.OutcomeFailed
	name := event.Failed
	if ok {
		name = event.Delivered
	}
	s.emitEvent(name, func() map[string]any { return ownEventData(d, ok, results) })
}

// emit emits an event if somebody has subscribed to it.
func (e emitter) emit(name string, data func() map[string]any) {
	if e.ctx.Err() == nil && e.events.ShouldEmit(name) {
		e.events.Emit(e.ctx, name, data())
	}
}

func isReplaced(r notifier.Result) bool { return r.Rule != "" }

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
		"key": d.key, "source": d.source, "incident": d.message.Incident.Name, "services": services, "destinations": destinations,
		"delivered": delivered, "failed": failed,
	}
	if !ok {
		data["errors"], data["error"] = errs, strings.Join(errs, "; ")
	}
	return data
}
