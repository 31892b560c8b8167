package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
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
		e := b.Expected.ExpectedBeat
		x := heartbeat.AdminBeat{
			Key: b.Expected.Key.Name, Scope: "global", Name: e.Name, Every: rules.FormatTime(e.Every), Grace: rules.FormatTime(e.Grace),
			State: b.State(now), Last: b.Beat.Last.UTC(), Due: b.Due.UTC(), Late: b.Late.UTC(),
		}
		if b.Expected.Key.OfSite {
			x.Scope = "site"
		}
		if b.Beat.State != rules.BeatOK {
			x.Since = b.Beat.Since.UTC()
		}
		out.Beats = append(out.Beats, x)
	}
	return writeJSON(w, out)
}
