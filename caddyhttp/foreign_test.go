package caddyhttp

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// disguised is a link whose text hides its address, in Markdown. A destination that
// takes Markdown gets it as disguisedShown if another program has written it.
const (
	disguised      = "[click](https://evil.example)"
	disguisedShown = `\[click\](https://evil.example)`
)

// TestForeignEvents checks that the default text of an event counts as a text of another program,
// and a text of the operator does not.
func TestForeignEvents(t *testing.T) {
	s := gatewaytest.NewStation(t)
	notify, _ := startEventApps(t, `
	notify {
		key k {
			url `+s.NotifyURL("/a")+`?format=markdown
		}
	}
	events {
		on default notify k
		on titled notify k {
			title "Event"
		}
		on texts notify k {
			body "**{event.name}** {event.data.text}"
		}
	}`)
	for event, want := range map[string]string{
		"default": "Module: notify\ntext: " + disguisedShown,
		"titled":  "Module: notify\ntext: " + disguisedShown,
		"texts":   "**texts** " + disguised,
	} {
		emitAs(notify, event, map[string]any{"text": disguised})
		sent(t, notify)
		if got := s.One(t); got.Message != want {
			t.Errorf("%s: got %q, want %q", event, got.Message, want)
		}
	}
}

// TestForeignLog checks that log entries count as texts of another program. They
// contain the addresses of requests.
func TestForeignLog(t *testing.T) {
	caddyhttptest.ReplaceShared(t) // Caddy keeps its log open
	s := gatewaytest.NewStation(t)
	caddyhttptest.StartCaddy(t, logging(s.NotifyURL("/log")+"?format=markdown", anInterval()), broken)
	caddyhttptest.Do(t, http.MethodGet, caddyhttptest.Server+"/"+disguised, "")
	got := s.Arrives(t, "ERROR")
	if !strings.Contains(got.Message, "evil.example") || strings.Contains(got.Message, disguised) {
		t.Errorf("got %q", got.Message)
	}
	caddyhttptest.StartCaddy(t, "", emptySite)
}
