package caddyhttp

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestOwnEvents checks that each message causes an event, that a message about
// an event causes only an event of failure, and that a message about a failure
// causes none.
func TestOwnEvents(t *testing.T) {
	s := gatewaytest.NewStation(t)
	const gone = "json://127.0.0.1:1"
	notify, emit := startEventApps(t, `
	notify {
		key ok {
			url `+s.NotifyURL("/ok")+`
		}
		key broken {
			url `+s.NotifyURL("/refuse/broken")+`
			url `+gone+`/secretsecret?+x=secretsecret
			url `+s.NotifyURL("/fine")+`
		}
		key fine {
			url `+s.NotifyURL("/fine")+`
		}
		key meta {
			url `+s.NotifyURL("/meta")+`
		}
		key meta_broken {
			url `+s.NotifyURL("/refuse/meta")+`
		}
	}
	events {
		on ok notify ok
		on broken notify broken
		on notify_failed notify broken
		on notify_failed notify meta {
			title "{event.data.key} by {event.data.source}"
			body "{event.data.services} {event.data.delivered} {event.data.failed} {event.data.destinations} {event.data.error}"
		}
		on notify_failed notify meta_broken
		on notify_delivered notify ok
		on notify_delivered notify meta
		on notify_incident notify fine
	}`)
	emit("ok", nil)
	sent(t, notify)
	if paths := s.Paths(); paths != "meta ok" {
		t.Errorf("delivered: messages at %q", paths)
	}
	// A key with escalate would make an incident of the message that nobody has acknowledged
	// one, and tell that nobody has acknowledged that one either.
	emit(event.Incident, map[string]any{"change": event.IncidentExhausted, "key": "fine", "type": "failure"})
	sent(t, notify)
	if paths := s.Paths(); paths != "fine" {
		t.Errorf("a message about an incident: messages at %q", paths)
	}
	emit("broken", nil)
	sent(t, notify)
	messages := s.Take()
	var paths []string
	for _, m := range messages {
		paths = append(paths, m.Path)
	}
	if want := []string{"/fine", "/meta", "/refuse/broken", "/refuse/meta"}; !slices.Equal(paths, want) {
		t.Fatalf("failed: messages at %q, want %q", paths, want)
	}
	meta := messages[1]
	if meta.Title != "broken by event" || !strings.HasPrefix(meta.Message, "JSON, JSON 1 2 json://") ||
		!strings.Contains(meta.Message, "500") || !strings.Contains(meta.Message, "refused") {
		t.Errorf("got %+v", meta)
	}
	for _, m := range messages {
		if strings.Contains(m.Title+m.Message, "x=secretsecret") {
			t.Errorf("a message shows a secret: %+v", m)
		}
	}
}

// TestOwnEventsOverHTTP checks that a message over HTTP causes an event too,
// without its text.
func TestOwnEventsOverHTTP(t *testing.T) {
	s := gatewaytest.NewStation(t)
	_, _ = startEventApps(t, `
	notify {
		key meta {
			url `+s.NotifyURL("/meta")+`
		}
	}
	events {
		on notify_delivered notify meta
		on notify_failed notify meta
	}`)
	h := newGateway(t, open, "")
	for path, want := range map[string]string{"/client": "Message delivered", "/refuse": "Message not delivered"} {
		post(t, h, "/notify", typeForm, "title=secrettitle&body=secretbody&urls="+s.NotifyURL(path))
		if left := h.shared.Background.Wait(time.Minute); left > 0 {
			t.Fatal(left)
		}
		got := s.Take()
		i := slices.IndexFunc(got, func(a gatewaytest.Arrived) bool { return a.Path == "/meta" })
		if len(got) != 2 || i < 0 {
			t.Fatalf("%s: %+v", path, got)
		}
		meta := got[i]
		if meta.Title != want || strings.Contains(meta.Message, "secret") {
			t.Errorf("%s: got %+v", path, meta)
		}
	}
}
