package httpapi

import (
	"net/http"
	"net/url"

	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// ConsoleKey returns the address of the page of a key, relative to a request.
func ConsoleKey(r *http.Request, key string) string {
	return RootOf(r.URL.Path) + site.PathOf(RouteConsoleKey, url.PathEscape(key))[1:]
}
