package httpapi

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// RelativeAddress returns the address of the request relative to itself. It works below any path
// prefix removed by Caddy or by a proxy before it. It has no query string, because that can change
// a message.
func RelativeAddress(r *http.Request) string {
	path := environment.URL(r).Path
	return "./" + url.PathEscape(path[strings.LastIndexByte(path, '/')+1:])
}

// tokenQuery is the query parameter with a secret of a key.
const tokenQuery = "token"

// FormAddress is RelativeAddress with the token of the query string, if there is one,
// so that the form can be used like its page.
func FormAddress(r *http.Request) string {
	address := RelativeAddress(r)
	if r.URL.RawQuery == "" {
		return address
	}
	if token := r.URL.Query().Get(tokenQuery); token != "" {
		address += "?" + tokenQuery + "=" + url.QueryEscape(token)
	}
	return address
}

// RelativeMessages returns the address of the messages in the queue, relative to the address of the
// key with the name or, for "", to /notify.
func RelativeMessages(r *http.Request, name string) string {
	slash := strings.HasSuffix(r.URL.Path, "/")
	switch {
	case name != "" && slash:
		return "../messages/"
	case name == "" && !slash:
		return RelativeAddress(r) + "/messages/"
	}
	return "./messages/"
}

// StrippedPrefix returns the prefix that Caddy removed from the path of r, such
// as /alerts for handle_path /alerts/*.
func StrippedPrefix(r *http.Request) string {
	prefix, ok := strings.CutSuffix(environment.URL(r).Path, r.URL.Path)
	if !ok {
		return "" // the path was rewritten
	}
	return prefix
}

// AddressOf returns the address of a route without names in it, relative to a request.
func AddressOf(r *http.Request, path string) string { return api.RootOf(r.URL.Path) + path[1:] }

// ConsoleKey returns the address of the page of a key, relative to a request.
func ConsoleKey(r *http.Request, key string) string {
	return api.RootOf(r.URL.Path) + site.PathOf(RouteConsoleKey, url.PathEscape(key))[1:]
}

// plainHost matches hosts that need no quotes in a shell and in YAML.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9.:\[\]_-]+$`)

// SiteAddress returns the scheme and host at which the client of r reaches the site.
func SiteAddress(r *http.Request) (scheme, host string) {
	scheme, host = "http", r.Host
	if r.TLS != nil {
		scheme = "https"
	}
	// A trusted proxy says which address the client has used.
	if environment.IsTrusted(r) {
		if proto := r.Header.Get("X-Forwarded-Proto"); proto == "https" || proto == "http" {
			scheme = proto
		}
	}
	if !plainHost.MatchString(host) {
		host = "HOST"
	}
	return scheme, host
}
