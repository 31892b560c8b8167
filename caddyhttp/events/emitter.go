package events

import (
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
)

// Emitter emits events of the app whose context it has.
type Emitter struct {
	ctx caddy.Context
	app *caddyevents.App
}

// NewEmitter loads the events app, which provisions the handlers of events.
func NewEmitter(ctx caddy.Context) (*Emitter, error) {
	app, err := ctx.App("events")
	if err != nil {
		return nil, fmt.Errorf("loading the events app: %w", err)
	}
	return &Emitter{ctx, app.(*caddyevents.App)}, nil
}

// Emit emits an event if somebody may have subscribed to it. It calls data only then.
func (e *Emitter) Emit(name string, data func() map[string]any) {
	if e.Subscribed(name) {
		e.app.Emit(e.ctx, name, data())
	}
}

// Subscribed reports whether somebody may have subscribed to an event, until the configuration is
// replaced. Before v2.11.7, Caddy's events app does not tell.
func (e *Emitter) Subscribed(name string) bool {
	if e.ctx.Err() != nil {
		return false
	}
	app, tells := any(e.app).(interface{ ShouldEmit(name string) bool })
	return !tells || app.ShouldEmit(name)
}
