package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/silence"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// silencesOf returns the definitions of the key in the path of r, and the silences.
func silencesOf(w http.ResponseWriter, r *http.Request) (*gateway.Gateway, []site.Definition, *alerting.Silences, error) {
	app, definitions, err := findSilenced(w, r)
	if err != nil {
		return nil, nil, nil, err
	}
	var all *alerting.Silences
	for _, d := range definitions {
		if all, err = app.Silences(d.Key); err != nil {
			return nil, nil, nil, answerError(w, err)
		}
	}
	return app, definitions, all, nil
}

// serveSilences lists the silences of a key.
func serveSilences(w http.ResponseWriter, r *http.Request) error {
	app, definitions, silences, err := silencesOf(w, r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	var all rules.Silences
	for _, d := range definitions {
		some, err := silences.List(ctx, d.Key.Place(app.Conf.SiteID(d.Site)).String(), d.Key.SilenceWindows())
		if err != nil {
			return answerError(w, err)
		}
		all = append(all, some...)
	}
	return writeJSON(w, silence.List(r.PathValue("key"), all, silences.Now()))
}

// serveMakeSilence makes a silence of a key. A key of the configuration that several
// sites define differently gets one at each.
func serveMakeSilence(w http.ResponseWriter, r *http.Request) error {
	app, definitions, silences, err := silencesOf(w, r)
	if err != nil {
		return err
	}
	s, err := silence.Read(w, r)
	if err != nil {
		return answerError(w, err)
	}
	var made rules.Silences
	for _, d := range definitions {
		x, err := s.Silence("", silences.Now(), caddy.ParseDuration)
		if err != nil {
			return answerError(w, err)
		}
		if err := silences.Make(r.Context(), d.Key, app.Conf.SiteID(d.Site), x); err != nil {
			return answerError(w, err)
		}
		made = append(made, x)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	return writeJSON(w, silence.List(r.PathValue("key"), made, silences.Now()))
}

// serveExtendSilence lets a silence of a key last longer.
func serveExtendSilence(w http.ResponseWriter, r *http.Request) error {
	app, definitions, silences, err := silencesOf(w, r)
	if err != nil {
		return err
	}
	s, err := silence.Read(w, r)
	if err != nil {
		return answerError(w, err)
	}
	until, err := s.Longer(caddy.ParseDuration)
	if err != nil {
		return answerError(w, err)
	}
	return forOne(w, r, definitions, silences, func(d site.Definition, id uuid.UUID) (rules.Silence, error) {
		return silences.Extend(r.Context(), d.Key, app.Conf.SiteID(d.Site), id, "", until)
	})
}

// serveEndSilence ends a silence of a key.
func serveEndSilence(w http.ResponseWriter, r *http.Request) error {
	app, definitions, silences, err := silencesOf(w, r)
	if err != nil {
		return err
	}
	return forOne(w, r, definitions, silences, func(d site.Definition, id uuid.UUID) (rules.Silence, error) {
		return silences.End(r.Context(), d.Key, app.Conf.SiteID(d.Site), id, "")
	})
}

// forOne changes the silence in the path of r, which belongs to one of the definitions, and writes it.
func forOne(w http.ResponseWriter, r *http.Request, definitions []site.Definition, silences *alerting.Silences,
	change func(site.Definition, uuid.UUID) (rules.Silence, error),
) (err error) {
	var changed rules.Silence
	for _, d := range definitions {
		changed, err = change(d, silence.ParseID(r.PathValue("id")))
		if !errors.Is(err, alerting.ErrNoSilence) {
			break
		}
	}
	if err != nil {
		return answerError(w, err)
	}
	return writeJSON(w, silence.New(r.PathValue("key"), &changed, silences.Now()))
}

// answerError answers an operator after an error of a use case. The status is as for a client; the
// text includes the fault of the gateway, which clients do not see.
func answerError(w http.ResponseWriter, err error) error {
	e, _ := api.ErrorOf(httpapi.Answer(err))
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds())))
	}
	return apiError(e.Status, cmp.Or(e.Fault, error(e)))
}

// findSilenced returns the definitions of the key in the path of r from the configuration. It
// returns the saved key if the configuration has none, or if the parameter space names a space.
func findSilenced(w http.ResponseWriter, r *http.Request) (*gateway.Gateway, []site.Definition, error) {
	space, name := r.URL.Query().Get("space"), r.PathValue("key")
	app, definitions, err := findDefinitions(r)
	if app == nil || err == nil && space == "" {
		return app, definitions, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	saved, err := app.Conf.SavedDefinitions(ctx, name)
	if err != nil {
		return nil, nil, answerError(w, err)
	}
	var spaces []string
	for _, d := range saved {
		spaces = append(spaces, spaceOf(d.Key))
	}
	if space != "" {
		saved = slices.DeleteFunc(saved, func(d site.Definition) bool { return spaceOf(d.Key) != space })
	}
	switch {
	case len(saved) == 1:
		return app, saved, nil
	case len(saved) > 1:
		slices.Sort(spaces)
		return nil, nil, apiError(http.StatusConflict,
			fmt.Errorf("the spaces %s have a saved key of this name; name one with space", strings.Join(spaces, " and ")))
	case len(spaces) > 0:
		return nil, nil, apiError(http.StatusNotFound,
			fmt.Errorf("the space has no saved key of this name; it is in %s", strings.Join(spaces, " and ")))
	case space != "":
		return nil, nil, apiError(http.StatusNotFound,
			errors.New("no space has a saved key of this name; leave space out for a key of the configuration"))
	}
	return nil, nil, apiError(http.StatusNotFound, noKey(app, name, ", neither in the configuration nor saved"))
}

// spaceOf returns the name of the space that a saved key is in.
func spaceOf(k *site.Key) string { return cmp.Or(k.Space, configstore.DefaultSpace) }
