package caddyhttp

import (
	"cmp"
	"encoding/json"
	"errors"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notify/caddy-notify/caddyhttp/routing"
)

// Some settings of the app have an effect only if a site has another one, such as the
// source that a key accepts. They are checked as soon as all sites are known, so that
// `caddy validate`, which starts nothing, refuses what `caddy run` would. But Caddy
// provisions apps in any order and tells none of them when the others are ready.

// checkSites returns an error if a setting of the app can have no effect with these
// sites. It returns nil without sites only if it does so with any.
func (a *App) checkSites() error {
	return cmp.Or(a.checkReaders(), a.checkInboxReaders(), a.checkSources(), a.checkFroms(), a.checkPush())
}

// awaitSites makes checkSites at the end of Provision if all sites are known then, or can
// be. If another app needs this one, such as the app of the sites, addSite makes it.
func (a *App) awaitSites(ctx caddy.Context) error {
	if a.checkSites() == nil || len(ctx.Modules()) > 1 {
		return nil
	}
	// This provisions the sites, if nothing has yet. This app is ready for them.
	if _, err := ctx.AppIfConfigured("http"); err != nil && !errors.Is(err, caddy.ErrNotConfigured) {
		return nil // Caddy reports it as an error of the http app
	}
	return a.checkSites()
}

// addSite adds a site. With the last one it makes checkSites.
func (a *App) addSite(ctx caddy.Context, h *Handler) error {
	if len(a.gateway.Conf.Sites) == 0 && a.checkSites() != nil {
		a.allSites = countSites(ctx)
	}
	a.gateway.Conf.Sites, a.handlers = append(a.gateway.Conf.Sites, h.api.Resolved), append(a.handlers, h)
	if len(a.gateway.Conf.Sites) != a.allSites {
		return nil
	}
	return a.checkSites()
}

// countSites returns the number of notify handlers. ctx is the context of the first one to be
// provisioned: then the http app still has the JSON of all of them. It returns 0 if they cannot
// be counted; Start makes the checks in any case.
func countSites(ctx caddy.Context) int {
	for _, m := range ctx.Modules() {
		app, ok := m.(*caddyhttp.App)
		if !ok {
			continue
		}
		text, err := json.Marshal(app)
		var tree any
		if err != nil || json.Unmarshal(text, &tree) != nil {
			return 0
		}
		sites, err := findHandlers(tree, nil)
		if err != nil {
			return 0
		}
		return len(sites)
	}
	return 0
}

// Routes returns the routes of the configuration, in which the sites are. All apps must be
// provisioned.
func (a *App) Routes() *routing.Routes {
	sites := map[*Handler]*routing.Site{}
	out := &routing.Routes{Of: func(handler caddyhttp.MiddlewareHandler) *routing.Site {
		h, _ := handler.(*Handler)
		return sites[h]
	}}
	if app, err := a.ctx.AppIfConfigured("http"); err == nil {
		out.HTTP = app.(*caddyhttp.App)
	}
	for _, h := range a.handlers {
		sites[h] = &routing.Site{
			Name: h.Site, API: h.api, Caddyfile: h.Caddyfile, Block: h.Block,
			Stateless: a.Stateless != nil || h.Stateless != nil, Settings: h.Settings,
		}
		out.Sites = append(out.Sites, sites[h])
	}
	return out
}
