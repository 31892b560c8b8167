package httpapi

import (
	"context"
	"net/http"
	"net/url"
)

// Environment is what the server knows of a request beside what stands in it. A function
// may be nil if the server cannot know.
type Environment struct {
	User     func(*http.Request) string   // whom an authentication handler has found; "" for nobody
	ClientIP func(*http.Request) string   // "" if it is unknown
	Original func(*http.Request) *url.URL // before a prefix of the path was removed
	Trusted  func(*http.Request) bool     // the request comes from a proxy whose headers are true
	Server   func(*http.Request) string   // the name of the server; "" if it is unknown
	Hide     func(*http.Request)          // keeps the request out of the access log
}

type environmentKey struct{}

// WithEnvironment returns r with the environment that it came from.
func WithEnvironment(r *http.Request, e *Environment) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), environmentKey{}, e))
}

// known returns what the environment of r knows of it, or the zero value.
func known[T any](r *http.Request, f func(*Environment) func(*http.Request) T) (value T) {
	if e, ok := r.Context().Value(environmentKey{}).(*Environment); ok && f(e) != nil {
		value = f(e)(r)
	}
	return value
}

// RequestUser returns the user that the server's authentication found, or "".
func RequestUser(r *http.Request) string {
	return known(r, func(e *Environment) func(*http.Request) string { return e.User })
}

// ClientIP returns the address of the client of r as text, or "".
func ClientIP(r *http.Request) string {
	return known(r, func(e *Environment) func(*http.Request) string { return e.ClientIP })
}

// serverName returns the name of the server that r came to, or "".
func serverName(r *http.Request) string {
	return known(r, func(e *Environment) func(*http.Request) string { return e.Server })
}

// hideRequest keeps r out of the server's access log.
func hideRequest(r *http.Request) {
	if e, ok := r.Context().Value(environmentKey{}).(*Environment); ok && e.Hide != nil {
		e.Hide(r)
	}
}

// isFromTrustedProxy reports whether r came through a proxy whose headers are true.
func isFromTrustedProxy(r *http.Request) bool {
	return known(r, func(e *Environment) func(*http.Request) bool { return e.Trusted })
}

// clientURL returns the URL of r before a prefix was removed from its path.
func clientURL(r *http.Request) *url.URL {
	if u := known(r, func(e *Environment) func(*http.Request) *url.URL { return e.Original }); u != nil {
		return u
	}
	return r.URL
}
