package caddyhttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// findSilenced returns the definitions of the key in the path of r: those of the
// configuration or, if it has none or the parameter space names one, the saved key.
func findSilenced(r *http.Request) (*App, []site.Definition, error) {
	space, name := r.URL.Query().Get("space"), r.PathValue("key")
	app, definitions, err := findDefinitions(r)
	if app == nil || err == nil && space == "" {
		return app, definitions, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	saved, err := app.SavedDefinitions(ctx, name)
	if err != nil {
		return nil, nil, adminFault(err)
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
		return nil, nil, adminError(http.StatusConflict, fmt.Errorf("the spaces %s have a saved key of this name; name one with space", strings.Join(spaces, " and ")))
	case len(spaces) > 0:
		return nil, nil, adminError(http.StatusNotFound, fmt.Errorf("the space has no saved key of this name; it is in %s", strings.Join(spaces, " and ")))
	case space != "":
		return nil, nil, adminError(http.StatusNotFound, errors.New("no space has a saved key of this name; leave space out for a key of the configuration"))
	}
	return nil, nil, adminError(http.StatusNotFound, errors.New("there is no such key, neither in the configuration nor saved; GET /notify/keys lists those of the configuration"))
}

// spaceOf returns the name of the space that a saved key is in.
func spaceOf(k *site.Key) string { return cmp.Or(k.Space, configstore.DefaultSpace) }
