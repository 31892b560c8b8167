package caddyhttp

import (
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/site"
)

func TestOverloadSettings(t *testing.T) {
	for _, tt := range []struct {
		block, global string
		want          int
	}{{"", "", site.DefaultMaxInFlight}, {"", "max_in_flight 7", 7}, {"max_in_flight 8", "max_in_flight 7", 8}} {
		if got := newGateway(t, tt.block, tt.global).api.Resolved.Limits.InFlight.Total; got != tt.want {
			t.Errorf("%q below %q: %d, want %d", tt.block, tt.global, got, tt.want)
		}
	}
	if _, err := (&Settings{MaxInFlight: -1}).resolve(nil, nil, nil, nil); err == nil {
		t.Error("-1 is accepted")
	}
}
