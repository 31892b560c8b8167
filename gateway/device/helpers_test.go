package device_test

import (
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// keyK is the key k, which has only its devices.
var keyK = site.KeyOptions{Name: "k"}

// options returns the options of a gateway with a queue in a folder, to whose keys devices
// subscribe with an invitation.
func options(dir string, keys ...site.KeyOptions) gatewaytest.Options {
	return gatewaytest.Options{Global: gatewaytest.PushOptions(keys...), Queue: &outbox.Settings{Path: dir}}
}

// newGateway starts a gateway with these options.
func newGateway(t *testing.T, dir string, keys ...site.KeyOptions) *gatewaytest.Gateway {
	t.Helper()
	return gatewaytest.New(t, options(dir, keys...))
}

// newOpenGateway is newGateway for devices that need no invitation.
func newOpenGateway(t *testing.T, dir string, keys ...site.KeyOptions) *gatewaytest.Gateway {
	t.Helper()
	o := options(dir, keys...)
	o.Global.Push.Who = "open"
	return gatewaytest.New(t, o)
}

// away stops the gateway of a bubble until a time, and returns what start starts then. Days without
// a gateway take no time, because a gateway looks each second at what is due.
func away(t *testing.T, g *gatewaytest.Gateway, at string, start func() *gatewaytest.Gateway) *gatewaytest.Gateway {
	t.Helper()
	g.Stop()
	gatewaytest.Until(t, at)
	return start()
}
