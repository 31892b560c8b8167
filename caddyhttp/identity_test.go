package caddyhttp

import (
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

func TestIdentity(t *testing.T) {
	base := notifier.DefaultIdentity()
	h := newGateway(t, "", "")
	if *h.api.Resolved.Identity != base {
		t.Errorf("default: %+v", h.api.Resolved.Identity)
	}
	h = newGateway(t, "", "identity {\nname Ops\nicon https://i.example.com/{type}-{size}.png\n}")
	want := base
	want.Name, want.Icon = "Ops", "https://i.example.com/{type}-{size}.png"
	if *h.api.Resolved.Identity != want {
		t.Errorf("got %+v, want %+v", *h.api.Resolved.Identity, want)
	}
}
