package caddyhttp

import (
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestServices checks that a client cannot use a service that is denied.
func TestServices(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, open+"services {\ndeny xml\n}", "")
	got := post(t, h, "/notify", typeForm, "body=x&urls="+s.NotifyURL("/a")+",xml://127.0.0.1:1/b")
	if got.status != 424 || !strings.Contains(got.body, "the service XML may not be used here") {
		t.Errorf("one of two denied: status %d: %s", got.status, got.body)
	}
}
