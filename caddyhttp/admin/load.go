package admin

import (
	"net/http"
	"os"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/process"
)

// loadPath is the path of the admin API at which `caddy reload` loads a configuration.
const loadPath = "/load"

// loadRoutes returns a route for POST /load that does what Caddy's does, and in addition looks at
// the files that the running configuration names. Caddy does nothing if the JSON is the same as
// that of the running configuration; it does not know that a secret's file or an imported file has
// changed. Here the running program compares what they have in them, so that the JSON says nothing
// about it, and `caddy reload` needs no access to them.
//
// It returns none if Caddy's route is not the one that this package knows. Then only
// `caddy reload --force` reads such files again.
func loadRoutes() []caddy.AdminRoute {
	info, err := caddy.GetModule("admin.api.load")
	if err != nil {
		return nil
	}
	router, ok := info.New().(caddy.AdminRouter)
	if !ok {
		return nil
	}
	for _, route := range router.Routes() {
		if route.Pattern == loadPath {
			return []caddy.AdminRoute{{Pattern: http.MethodPost + " " + loadPath, Handler: reloader{route.Handler}}}
		}
	}
	return nil
}

// reloader is Caddy's handler for POST /load.
type reloader struct{ caddy.AdminHandler }

// ServeHTTP implements caddy.AdminHandler.
func (h reloader) ServeHTTP(w http.ResponseWriter, r *http.Request) error {
	if process.FilesChanged() {
		r.Header.Set("Cache-Control", "must-revalidate") // as with --force
	}
	rememberLines(r.Header)
	return h.AdminHandler.ServeHTTP(w, r)
}

// rememberLines adapts the Caddyfile whose JSON `caddy reload` has sent, so that errors of the load
// name its lines: the JSON has none, and only the process that adapts a Caddyfile knows them. What does
// not become the same JSON here, because an environment variable differs, has no lines. A relative
// path is not read, as this process may have another working directory.
func rememberLines(h http.Header) {
	const caddyfile = "caddyfile"
	name, adapter := h.Get("Caddy-Config-Source-File"), caddyconfig.GetAdapter(caddyfile)
	if !filepath.IsAbs(name) || h.Get("Caddy-Config-Source-Adapter") != caddyfile || adapter == nil {
		return
	}
	// A client of the admin API can load any configuration, and so read any file.
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() { //nolint:gosec // see above
		return
	}
	if text, err := os.ReadFile(name); err == nil { //nolint:gosec // see above
		_, _, _ = adapter.Adapt(text, map[string]any{"filename": name})
	}
}
