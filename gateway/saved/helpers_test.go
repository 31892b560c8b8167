package saved_test

import (
	"net/http"
	"testing"

	"github.com/caddyserver/certmagic"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// newGateway returns a gateway with saved keys that managers may read and change. Nil managers
// stand for nobody, and a nil storage for a new one.
func newGateway(t testing.TB, storage certmagic.Storage, m *site.Managers, o saved.Options) *gatewaytest.Gateway {
	t.Helper()
	o.Manage = m != nil
	return gatewaytest.New(t, gatewaytest.Options{
		Site:    site.Options{Egress: gatewaytest.Loopback(), Managers: m},
		Saved:   &o,
		Storage: storage,
	})
}

// get gets an address and accepts types of content.
func get(g *gatewaytest.Gateway, target, accept string) gatewaytest.Reply {
	return g.Do(gatewaytest.NewRequest(http.MethodGet, target, "", "Accept", accept))
}
