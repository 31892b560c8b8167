package console

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/appicon"
)

// appFiles writes the files of the app for devices.
type appFiles struct{ *shared }

// appFile is a file that browsers fetch for the page of a device. Every client gets the same one.
type appFile struct {
	mediaType string
	content   func() []byte
}

// AppFiles has the files by their routes.
var AppFiles = sync.OnceValue(func() map[string]appFile {
	picture := func(draw func(size int) []byte, size int) appFile {
		return appFile{"image/png", sync.OnceValue(func() []byte { return draw(size) })}
	}
	return map[string]appFile{
		httpapi.RouteWorker:    {"text/javascript; charset=utf-8", view.Worker},
		httpapi.RouteIcon:      {"image/svg+xml", func() []byte { return []byte(appicon.SVG) }},
		httpapi.RouteIconSmall: picture(appicon.PNG, 192),
		httpapi.RouteIconLarge: picture(appicon.PNG, 512),
		httpapi.RouteBadge:     picture(appicon.Badge, 96),
	}
})

// serveAppFile writes a file of the app.
func (h *appFiles) serveAppFile(w http.ResponseWriter, r *http.Request, at *httpapi.Route) *api.Response {
	f := AppFiles()[at.Pattern]
	return h.writeAppFile(w, r, at, f.mediaType, f.content())
}

// serveManifest writes the manifest of the app that shows the messages of a key. The app opens the
// page that linked to the manifest, because an app on the home screen of an iPhone has no other
// data of the browser that installed it.
func (h *appFiles) serveManifest(w http.ResponseWriter, r *http.Request, at *httpapi.Route) *api.Response {
	query := r.URL.Query()
	key := query.Get("key")
	if site.CheckKeyName(key) != nil {
		return api.Errorf(http.StatusNotFound, "the query must have the name of a key; the page of a device links to it").Response()
	}
	text, err := view.NewManifest(key, httpapi.StrippedPrefix(r)+site.PathOf(site.RouteNotifyKey, key), key+"?"+deviceQueryOf(query))
	if err != nil {
		return h.ErrorResponse(r, err)
	}
	return h.writeAppFile(w, r, at, "application/manifest+json", text)
}

// deviceQueryOf returns the query for the page of a device, with its invitation if it has one.
func deviceQueryOf(query url.Values) string {
	if invite := query.Get(httpapi.InviteQuery); invite != "" {
		return url.Values{httpapi.InviteQuery: {invite}}.Encode()
	}
	return httpapi.DeviceQuery
}

func (h *appFiles) writeAppFile(w http.ResponseWriter, r *http.Request, at *httpapi.Route, mediaType string, content []byte) *api.Response {
	header := w.Header()
	if !slices.Contains(at.Methods, r.Method) {
		header.Set("Allow", strings.Join(at.Methods, ", "))
		return api.Errorf(http.StatusMethodNotAllowed, "the method %s is not allowed here; use GET", r.Method).Response()
	}
	if strings.HasSuffix(r.URL.Path, "/") {
		return api.Errorf(http.StatusNotFound, "the address of %s has no slash at the end; remove it", path.Base(at.Pattern)).Response()
	}
	httpapi.WriteFile(w, r, mediaType, content)
	return nil
}
