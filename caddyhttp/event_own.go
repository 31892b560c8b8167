package caddyhttp

import (
	"fmt"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// The events that the gateway emits: one for each message that was sent,
// whoever sent it. Their origin is the module notify. Their data are
//
//	key           the name of the key; empty for a message without one
//	source        where the message came from: http, test, event or log
//	services      the services that have it (notify_delivered) or do not (notify_failed)
//	destinations  their URLs with the secrets masked, in the same order
//	errors        what went wrong, in the same order (notify_failed)
//	error         the same as one text (notify_failed)
//	delivered     how many destinations have the message
//	failed        how many do not
//
// Lists have 20 items at most. Nothing is of a message's text, unless a
// destination's refusal repeats that, and nothing is a secret.
const (
	eventDelivered = "notify_delivered"
	eventFailed    = "notify_failed"
)

// maxEventItems is how many items a list in an event's data has.
const maxEventItems = 20

// emitter emits events in the name of an app.
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

// tell emits an event for a message that was sent. A message that an event of
// the gateway's own has brought about causes none: that would go on forever.
func (s *shared) emit(d delivery, ok bool, results []notifier.Result) {
	app := s.apps.newest()
	if app == nil || d.source == sourceOwnEvent {
		return
	}
	name := eventFailed
	if ok {
		name = eventDelivered
	}
	if out := app.emitter; out.ctx.Err() == nil && out.events.ShouldEmit(name) {
		out.events.Emit(out.ctx, name, ownEventData(d, ok, results))
	}
}

func ownEventData(d delivery, ok bool, results []notifier.Result) map[string]any {
	var services, destinations, errs []string
	delivered, failed := 0, 0
	for _, r := range results {
		about := false // this one is what the event tells of
		switch {
		case r.Status == notifier.Delivered:
			delivered++
			about = ok
		case r.Err != nil:
			failed++
			about = !ok
		}
		if !about || len(services) == maxEventItems {
			continue
		}
		services, destinations = append(services, r.Service), append(destinations, r.Destination)
		if r.Err != nil {
			errs = append(errs, markup.TruncateBytes(r.Err.Error(), 500))
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

// connect is the part of provisioning that comes last: it needs the app's
// keys, and loads the events app, whose handlers may look for them.
func (a *App) connect(ctx caddy.Context) error {
	a.log = ctx.Logger()
	for _, r := range a.shared.logs.expectedBy(ctx) {
		if _, _, err := r.find(a.resolved); err != nil {
			return fmt.Errorf("log output notify: %w", err)
		}
	}
	var err error
	a.emitter, err = newEmitter(ctx)
	return err
}
