package caddyhttp

import (
	"net/http"
	"net/url"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
)

// requestEnvironment tells what Caddy knows of a request.
var requestEnvironment = environment.Environment{
	User: func(r *http.Request) (user string) {
		if values, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
			user, _ = values.GetString("http.auth.user.id")
		}
		return user
	},
	ClientIP: func(r *http.Request) string {
		text, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
		return text
	},
	Original: func(r *http.Request) *url.URL {
		if original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
			return original.URL
		}
		return r.URL
	},
	Trusted: func(r *http.Request) bool {
		trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool)
		return trusted
	},
	Hide: func(r *http.Request) { caddyhttp.SetVar(r.Context(), caddyhttp.LogSkipVar, true) },
	Server: func(r *http.Request) string {
		if server, ok := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok && server != nil {
			return server.Name()
		}
		return ""
	},
}
