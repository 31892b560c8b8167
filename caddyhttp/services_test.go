package caddyhttp

import (
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

func TestServices(t *testing.T) {
	s := gatewaytest.NewStation(t)
	for _, tt := range []struct {
		services string
		usable   bool
	}{
		{"allow json", true},
		{"allow jsons", true}, // any schema of a service stands for all
		{"allow JSON xml", true},
		{"allow xml", false},
		{"deny xml", true},
		{"deny jsons", false},
		{"allow json xml\ndeny json", false},
	} {
		h := newGateway(t, open+"services {\n"+tt.services+"\n}", "")
		want := map[bool]int{true: 200, false: 400}[tt.usable]
		if got := post(t, h, "/notify", typeForm, "body=x&urls="+s.NotifyURL("/a")); got.status != want {
			t.Errorf("%s: a client's URL: status %d, want %d: %s", tt.services, got.status, want, got.body)
		}
		_, err := provision(t, "services {\n"+tt.services+"\n}\nkey k {\nurl "+s.NotifyURL("/a")+"\n}", "")
		if (err == nil) != tt.usable {
			t.Errorf("%s: a key's URL: error %v", tt.services, err)
		}
		_, err = provision(t, "key k {\nurl "+s.NotifyURL("/a")+"\n}", "services {\n"+tt.services+"\n}")
		if (err == nil) != tt.usable {
			t.Errorf("%s of the app: a key's URL: error %v", tt.services, err)
		}
	}
	h := newGateway(t, open+"services {\ndeny xml\n}", "")
	got := post(t, h, "/notify", typeForm, "body=x&urls="+s.NotifyURL("/a")+",xml://127.0.0.1:1/b")
	if got.status != 424 || !strings.Contains(got.body, "the service XML may not be used here") {
		t.Errorf("one of two denied: status %d: %s", got.status, got.body)
	}
}
