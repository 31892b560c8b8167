package caddyhttp

import (
	"testing"
)

func TestIdentity(t *testing.T) {
	base, err := defaultSettings()
	if err != nil {
		t.Fatal(err)
	}
	h := newGateway(t, "", "")
	if *h.api.Resolved.Identity != *base.Identity {
		t.Errorf("default: %+v", h.api.Resolved.Identity)
	}
	h = newGateway(t, "", "identity {\nname Ops\nicon https://i.example.com/{type}-{size}.png\n}")
	want := *base.Identity
	want.Name, want.Icon = "Ops", "https://i.example.com/{type}-{size}.png"
	if *h.api.Resolved.Identity != want {
		t.Errorf("got %+v, want %+v", *h.api.Resolved.Identity, want)
	}
}
