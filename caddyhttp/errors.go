package caddyhttp

import (
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/failure"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
)

// Values of Settings.Errors.
const (
	errorsCaddy  = "caddy"
	errorsNotify = "notify"
)

var (
	errErrors        = errors.New("it must be caddy or notify")
	errNoErrorRoutes = errors.New("errors caddy would answer with an empty body, because the server has no handle_errors; " +
		"add handle_errors to the site, or remove this line")
)

// checkErrors returns an error if text is no value of Settings.Errors.
func checkErrors(text string) error {
	if text != errorsCaddy && text != errorsNotify {
		return errErrors
	}
	return nil
}

// serveOrFail answers a request as ServeHTTP does, and returns an answer with an error status as an
// error of Caddy instead of writing it.
func (h *Handler) serveOrFail(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	answer := failure.Writer{ResponseWriter: w}
	switch {
	case h.api.Serve(&answer, r):
	case h.home && isHome(r):
		return serveHome(w, r, next)
	default:
		return next.ServeHTTP(w, r)
	}
	if answer.Status == 0 {
		return nil
	}
	placeholder := func(string) (string, bool) { return "", false }
	if values, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		placeholder = values.GetString
	}
	return caddyhttp.Error(answer.Status, errors.New(httpapi.ErrorText(placeholder, answer.Status)))
}

// checkErrorRoutes returns an error if a site hands its errors to Caddy and its server has no routes
// for them. server is the server of the handler, or nil if it is unknown.
func (h *Handler) checkErrorRoutes(server *caddyhttp.Server) error {
	if !h.handsOver || server == nil || server.Errors != nil && len(server.Errors.Routes) > 0 {
		return nil
	}
	return h.Caddyfile.Locate("errors", errNoErrorRoutes)
}
