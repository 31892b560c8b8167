package caddyhttp

import (
	"context"
	"net/http"
	"net/url"
)

// environment is what the server knows of a request beside what stands in it. A function
// may be nil if the server cannot know.
type environment struct {
	user     func(*http.Request) string   // whom an authentication handler has found; "" for nobody
	clientIP func(*http.Request) string   // "" if it is unknown
	original func(*http.Request) *url.URL // before a prefix of the path was removed
	trusted  func(*http.Request) bool     // the request comes from a proxy whose headers are true
	server   func(*http.Request) string   // the name of the server; "" if it is unknown
	hide     func(*http.Request)          // keeps the request out of the access log
}

type environmentKey struct{}

// withEnvironment returns r with the environment that it came from.
func withEnvironment(r *http.Request, e *environment) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), environmentKey{}, e))
}

// known returns what the environment of r knows of it, or the zero value.
func known[T any](r *http.Request, f func(*environment) func(*http.Request) T) (value T) {
	if e, ok := r.Context().Value(environmentKey{}).(*environment); ok && f(e) != nil {
		value = f(e)(r)
	}
	return value
}

// requestUser returns the user that the server's authentication found, or "".
func requestUser(r *http.Request) string {
	return known(r, func(e *environment) func(*http.Request) string { return e.user })
}

// clientIP returns the address of the client of r as text, or "".
func clientIP(r *http.Request) string {
	return known(r, func(e *environment) func(*http.Request) string { return e.clientIP })
}

// serverName returns the name of the server that r came to, or "".
func serverName(r *http.Request) string {
	return known(r, func(e *environment) func(*http.Request) string { return e.server })
}

// hideRequest keeps r out of the server's access log.
func hideRequest(r *http.Request) {
	if e, ok := r.Context().Value(environmentKey{}).(*environment); ok && e.hide != nil {
		e.hide(r)
	}
}

// isFromTrustedProxy reports whether r came through a proxy whose headers are true.
func isFromTrustedProxy(r *http.Request) bool {
	return known(r, func(e *environment) func(*http.Request) bool { return e.trusted })
}

// clientURL returns the URL of r before a prefix was removed from its path.
func clientURL(r *http.Request) *url.URL {
	if u := known(r, func(e *environment) func(*http.Request) *url.URL { return e.original }); u != nil {
		return u
	}
	return r.URL
}
