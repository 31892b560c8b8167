package admin

import (
	"context"
	"net/http"
	"runtime"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/internal/version"
)

// Doctor is the JSON response with what `caddy notify doctor` asks of a running server.
type Doctor struct {
	Version string    `json:"version"`
	Caddy   string    `json:"caddy"`
	Go      string    `json:"go"`
	Time    time.Time `json:"time"`

	// A gateway that gets Token in the header of a request answers with Answer in the same
	// header only if it is the one that runs here. They are "" if there are too many.
	Token  string `json:"token"`
	Answer string `json:"answer"`

	Queue *DoctorQueue `json:"queue"` // nil without a queue
}

// DoctorQueue is what Doctor says of the queue.
type DoctorQueue struct {
	Problem string `json:"problem,omitempty"` // why no message can be stored; "" if all is well
	Waiting int    `json:"waiting"`           // deliveries
	Dead    int    `json:"dead"`
	Bytes   int64  `json:"bytes"`
	Max     int64  `json:"max_bytes"`
	Failing int    `json:"failing"` // destinations
	Down    int    `json:"down"`

	// How far the clock of this machine is ahead of PostgreSQL's clock, in milliseconds; nil
	// if the queue is on this machine, or if it is not known.
	Ahead *int64 `json:"ahead_ms,omitempty"`
}

// serveDoctor returns what a running server knows of its own health.
func serveDoctor(w http.ResponseWriter, r *http.Request) error {
	app, err := runningGateway()
	if err != nil {
		return err
	}
	out := Doctor{Version: version.Current, Go: runtime.Version(), Time: time.Now()}
	out.Caddy, _ = caddy.Version()
	out.Token, out.Answer = app.Checks.New()
	if app.Rooms != nil {
		ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
		defer cancel()
		box := app.Rooms.Outbox
		n := box.Queue.Destinations.Count()
		out.Queue = &DoctorQueue{Problem: app.Unavailable(ctx), Max: app.Conf.QueueSettings.MaxSize, Failing: n.Failing, Down: n.Down}
		s, err := box.Queue.Stats(ctx)
		switch {
		case err == nil:
			out.Queue.Waiting, out.Queue.Dead, out.Queue.Bytes = s.Queued+s.Sending, s.Dead, s.Bytes
		case out.Queue.Problem == "":
			out.Queue.Problem = "the queue cannot be read; the log of the gateway has the reason"
		}
		if box.Shared && err == nil {
			ahead := time.Since(box.Queue.Now()).Milliseconds()
			out.Queue.Ahead = &ahead
		}
	}
	return writeJSON(w, out)
}
