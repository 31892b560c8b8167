package httpapi

import (
	"net/http"
	"net/url"
	"strings"
)

// RootOf returns the address of the folder that has the routes, relative to a
// request for path.
func RootOf(path string) string {
	if depth := strings.Count(path, "/") - 1; depth > 0 {
		return strings.Repeat("../", depth)
	}
	return "./"
}

// ConfigPage returns the address of the page of a key, relative to a request.
func ConfigPage(r *http.Request, key string) string {
	return RootOf(r.URL.Path) + "cfg/" + url.PathEscape(key)
}
