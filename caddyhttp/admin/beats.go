package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
)

// serveBeats lists the beats that keys expect, with the last call of the watchdog.
func serveBeats(w http.ResponseWriter, r *http.Request) error {
	app, err := runningGateway()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	var beats []heartbeat.BeatStatus
	if app.Rooms != nil {
		if beats, err = app.Rooms.Beats.AllBeats(ctx); err != nil {
			return apiError(http.StatusServiceUnavailable, err)
		}
	}
	out, now := heartbeat.AdminBeats{Beats: make([]heartbeat.AdminBeat, 0, len(beats))}, time.Now()
	if app.Rooms != nil {
		now = app.Rooms.Outbox.Queue.Now()
		if out.Watchdog, err = app.Rooms.Beats.Watchdog(ctx); err != nil {
			return apiError(http.StatusServiceUnavailable, err)
		}
	}
	for _, b := range beats {
		out.Beats = append(out.Beats, b.Admin(now))
	}
	return writeJSON(w, out)
}
