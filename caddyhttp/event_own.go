package caddyhttp

import (
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
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

// emit emits an event if somebody has subscribed to it.
func (e emitter) emit(name string, data func() map[string]any) {
	if e.ctx.Err() == nil && e.events.ShouldEmit(name) {
		e.events.Emit(e.ctx, name, data())
	}
}
