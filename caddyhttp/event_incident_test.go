package caddyhttp

import (
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestIncidentsInEvents checks that events about messages name their incident.
func TestIncidentsInEvents(t *testing.T) {
	s := gatewaytest.NewStation(t)
	_, _ = startEventApps(t, `
	notify {
		key meta {
			url `+s.NotifyURL("/meta")+`
		}
	}
	events {
		on notify_failed notify meta {
			title "{event.data.incident}"
		}
	}`)
	h := newGateway(t, open, "")
	post(t, h, "/notify", typeForm, "body=x&incident=disk+db1&urls="+s.NotifyURL("/refuse"))
	if left := h.shared.Background.Wait(time.Minute); left > 0 {
		t.Fatal(left)
	}
	for _, got := range s.Take() {
		if got.Path == "/meta" && got.Title == "disk db1" {
			return
		}
	}
	t.Error("the event does not name the incident")
}
