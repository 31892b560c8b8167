package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
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
		if beats, err = app.Rooms.AllBeats(ctx); err != nil {
			return apiError(http.StatusServiceUnavailable, err)
		}
	}
	out, now := heartbeat.AdminBeats{Beats: make([]heartbeat.AdminBeat, 0, len(beats))}, time.Now()
	if app.Rooms != nil {
		now = app.Rooms.Now()
		if out.Watchdog, err = app.Rooms.Watchdog(ctx); err != nil {
			return apiError(http.StatusServiceUnavailable, err)
		}
	}
	for _, b := range beats {
		e := b.Expected.ExpectedBeat
		x := heartbeat.AdminBeat{
			Key: b.Expected.Key.Name, Scope: "global", Name: e.Name, Every: rules.FormatTime(e.Every), Grace: rules.FormatTime(e.Grace),
			State: b.State(now), Last: site.TimeOrNil(b.Beat.Last), Due: site.TimeOrNil(b.Due), Late: site.TimeOrNil(b.Late),
		}
		if b.Expected.Key.OfSite {
			x.Scope = "site"
		}
		if b.Beat.State != rules.BeatOK {
			x.Since = site.TimeOrNil(b.Beat.Since)
		}
		out.Beats = append(out.Beats, x)
	}
	return writeJSON(w, out)
}
