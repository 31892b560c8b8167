// Package environment has what only the server knows about a request, so that the rest of the
// gateway does not depend on the server.
package environment

import (
	"context"
	"net/http"
	"net/url"
)

// Environment has what only the server knows about a request. A function may be nil if the server
// does not know.
type Environment struct {
	User     func(*http.Request) string   // user found by an authentication handler; "" for nobody
	ClientIP func(*http.Request) string   // "" if unknown
	Original func(*http.Request) *url.URL // before a prefix of the path was removed
	Trusted  func(*http.Request) bool     // the request comes from a proxy whose headers are trusted
	Server   func(*http.Request) string   // name of the server; "" if unknown
	Hide     func(*http.Request)          // keeps the request out of the access log

	// Provide makes the values of value known as placeholders, as long as the request lasts.
	Provide func(r *http.Request, value func(name string) (any, bool))
}

// server is the environment of all requests but those of [With].
var server Environment

// Register sets the environment of the server's requests. The package of the server calls it in an
// init function.
func Register(e Environment) { server = e }

type key struct{}

// With returns r with an environment of its own, for tests.
func With(r *http.Request, e *Environment) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), key{}, e))
}

// of returns the environment of r.
func of(r *http.Request) *Environment {
	if e, ok := r.Context().Value(key{}).(*Environment); ok {
		return e
	}
	return &server
}

// known returns a value from the environment of r, or the zero value.
func known[T any](r *http.Request, f func(*Environment) func(*http.Request) T) (value T) {
	if get := f(of(r)); get != nil {
		value = get(r)
	}
	return value
}

// User returns the user that the server's authentication found, or "".
func User(r *http.Request) string {
	return known(r, func(e *Environment) func(*http.Request) string { return e.User })
}

// ClientIP returns the address of the client of r as text, or "".
func ClientIP(r *http.Request) string {
	return known(r, func(e *Environment) func(*http.Request) string { return e.ClientIP })
}

// Server returns the name of the server that r came to, or "".
func Server(r *http.Request) string {
	return known(r, func(e *Environment) func(*http.Request) string { return e.Server })
}

// Hide keeps r out of the server's access log.
func Hide(r *http.Request) {
	if hide := of(r).Hide; hide != nil {
		hide(r)
	}
}

// Provide makes the values of value known to the server as placeholders of r.
func Provide(r *http.Request, value func(name string) (any, bool)) {
	if provide := of(r).Provide; provide != nil {
		provide(r, value)
	}
}

// IsTrusted reports whether r came through a proxy whose headers are trusted.
func IsTrusted(r *http.Request) bool {
	return known(r, func(e *Environment) func(*http.Request) bool { return e.Trusted })
}

// URL returns the URL of r before a prefix was removed from its path.
func URL(r *http.Request) *url.URL {
	if u := known(r, func(e *Environment) func(*http.Request) *url.URL { return e.Original }); u != nil {
		return u
	}
	return r.URL
}
