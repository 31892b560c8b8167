package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// mcpCalls returns requests that get each answer about agents.
func mcpCalls(t *testing.T) map[string][]describedCall {
	t.Helper()
	k := gatewaytest.Key("k", "json://127.0.0.1")
	k.Tokens = []string{"token-of-the-agent"}
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{MCP: new(true), Keys: []site.KeyOptions{k}}})
	call := func(header ...string) describedCall {
		h := http.Header{"Accept": {"application/json, text/event-stream"}}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return describedCall{
			g: g, target: "/notify/k/mcp", contentType: gatewaytest.TypeJSON,
			body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, header: h,
		}
	}
	batch, full := call("Authorization", "Bearer token-of-the-agent"), call("Authorization", "Bearer token-of-the-agent")
	batch.body = "[" + batch.body + "]"
	full.g = gatewaytest.New(t, gatewaytest.Options{Site: site.Options{MCP: new(true), MaxInFlight: 1, Keys: []site.KeyOptions{k}}})
	if _, err := full.g.Process.Dispatcher.InFlight.Enter(full.g.Resolved.Limits.InFlight); err != nil {
		t.Fatal(err)
	}
	return map[string][]describedCall{"POST " + httpapi.RouteMCP: {
		call("Authorization", "Bearer token-of-the-agent"), call(), call("Origin", "https://evil.example", "Sec-Fetch-Site",
			"cross-site"), batch, full,
	}}
}
