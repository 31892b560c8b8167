package caddyhttp

import (
	"net/http"
	"net/url"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// requestEnvironment tells what Caddy knows of a request.
var requestEnvironment = environment{
	user: func(r *http.Request) (user string) {
		if values, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
			user, _ = values.GetString("http.auth.user.id")
		}
		return user
	},
	clientIP: func(r *http.Request) string {
		text, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
		return text
	},
	original: func(r *http.Request) *url.URL {
		if original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
			return original.URL
		}
		return r.URL
	},
	trusted: func(r *http.Request) bool {
		trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool)
		return trusted
	},
	hide: func(r *http.Request) { caddyhttp.SetVar(r.Context(), caddyhttp.LogSkipVar, true) },
	server: func(r *http.Request) string {
		if server, ok := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok && server != nil {
			return server.Name()
		}
		return ""
	},
}
