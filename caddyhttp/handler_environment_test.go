package caddyhttp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
)

// TestClientAddressOfCaddy checks that the address of a client is the one that Caddy has found, for
// example from a trusted proxy.
func TestClientAddressOfCaddy(t *testing.T) {
	ctx := context.WithValue(t.Context(), caddyhttp.VarsCtxKey, map[string]any{caddyhttp.ClientIPVarKey: "192.0.2.7"})
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", nil)
	if got := httpapi.ClientAddress(r).String(); got != "192.0.2.7" {
		t.Errorf("%s, want 192.0.2.7", got)
	}
}
