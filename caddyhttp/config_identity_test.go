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
	if *h.resolved.identity != *base.identity {
		t.Errorf("default: %+v", h.resolved.identity)
	}
	h = newGateway(t, "", "identity {\nname Ops\nicon https://i.example.com/{type}-{size}.png\n}")
	want := *base.identity
	want.Name, want.Icon = "Ops", "https://i.example.com/{type}-{size}.png"
	if *h.resolved.identity != want {
		t.Errorf("got %+v, want %+v", *h.resolved.identity, want)
	}
}
