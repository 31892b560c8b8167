package caddyhttp

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// silenceQueue returns the definitions of the key in the path of r, and the queue.
func silenceQueue(r *http.Request) (*App, []site.Definition, *gateway.Rooms, error) {
	app, definitions, err := findSilenced(r)
	if err != nil {
		return nil, nil, nil, err
	}
	q, err := runningQueue()
	if err != nil {
		return nil, nil, nil, err
	}
	for _, d := range definitions {
		if d.Key.Unqueued {
			return nil, nil, nil, adminError(http.StatusForbidden, httpapi.ErrSilencesUnqueued.Err)
		}
	}
	return app, definitions, q, nil
}

// serveSilences lists the silences of a key.
func (adminAPI) serveSilences(w http.ResponseWriter, r *http.Request) error {
	app, definitions, q, err := silenceQueue(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	var all rules.Silences
	for _, d := range definitions {
		some, err := q.Alerts.Silences.At(ctx, d.Key.Home(app.gateway.Engine.SiteID(d.Site))+"\x00"+d.Key.Name)
		if err != nil {
			return adminError(http.StatusServiceUnavailable, err)
		}
		all = append(all, some...)
	}
	return writeAdminJSON(w, httpapi.NewSilencesJSON(r.PathValue("key"), all))
}

// serveMakeSilence makes a silence of a key. A key of the configuration that several
// sites define differently gets one at each.
func (adminAPI) serveMakeSilence(w http.ResponseWriter, r *http.Request) error {
	app, definitions, q, err := silenceQueue(r)
	if err != nil {
		return err
	}
	s, err := httpapi.ReadSilenceRequest(w, r)
	if e, ok := errors.AsType[*api.Error](err); ok {
		return adminError(e.Status, e)
	}
	var made rules.Silences
	for _, d := range definitions {
		x, err := s.Silence("", q.Outbox.Queue.Now(), caddy.ParseDuration)
		if err != nil {
			return adminError(http.StatusBadRequest, err)
		}
		if err := q.Alerts.Silences.Make(context.WithoutCancel(r.Context()), d.Key, app.gateway.Engine.SiteID(d.Site), x); err != nil {
			return adminAnswer(w, err)
		}
		made = append(made, x)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	return writeAdminJSON(w, httpapi.NewSilencesJSON(r.PathValue("key"), made))
}

// serveEndSilence ends a silence of a key.
func (adminAPI) serveEndSilence(w http.ResponseWriter, r *http.Request) error {
	app, definitions, q, err := silenceQueue(r)
	if err != nil {
		return err
	}
	var ended rules.Silence
	for _, d := range definitions {
		ended, err = q.Alerts.Silences.End(context.WithoutCancel(r.Context()), d.Key.Home(app.gateway.Engine.SiteID(d.Site)), d.Key.Name, httpapi.ParseSilenceID(r.PathValue("id")), "")
		if !errors.Is(err, rules.ErrNoSilence) {
			break
		}
	}
	if err != nil {
		return adminAnswer(w, err)
	}
	return writeAdminJSON(w, httpapi.NewSilenceJSON(r.PathValue("key"), &ended))
}

// adminAnswer answers an operator after an error of a use case as a client would be, but
// says what clients must not know of the store of the queue.
func adminAnswer(w http.ResponseWriter, err error) error {
	if errors.Is(err, device.ErrDamaged) || errors.Is(err, device.ErrPushKeyLost) {
		return adminError(http.StatusServiceUnavailable, err)
	}
	e, _ := errors.AsType[*api.Error](httpapi.Answer(err))
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds())))
	}
	return adminError(e.Status, e)
}
