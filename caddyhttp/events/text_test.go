package events

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestEventTexts checks that every event of Caddy has a text with what has
// happened, and to what.
func TestEventTexts(t *testing.T) {
	for _, tt := range []struct {
		event       string
		data        map[string]any
		reload      bool
		title, body string
		kind        notifier.Type
	}{
		{"started", nil, false, "Caddy has started", "has started.", notifier.Info},
		{"started", nil, true, "Caddy has a new configuration", "has loaded a new configuration.", notifier.Info},
		{"stopping", nil, false, "Caddy is stopping", "is stopping.", notifier.Warning},
		{
			"cert_obtaining",
			map[string]any{"identifier": "a.example.com"},
			false,
			"Obtaining a certificate for a.example.com", "Obtaining a certificate for a.example.com.", notifier.Info,
		},
		{
			"cert_obtaining",
			map[string]any{"identifier": "a.example.com", "renewal": true, "forced": false, "remaining": 30 * 24 * time.Hour, "issuer": "ca"},
			false,
			"Renewing the certificate of a.example.com", "The current certificate is valid for another 30 days.\nIssuer: ca", notifier.Info,
		},
		{
			"cert_obtained",
			map[string]any{"identifier": "a.example.com", "renewal": false, "issuer": "ca", "csr_pem": []byte("x")},
			false, "Certificate for a.example.com obtained", "Issuer: ca", notifier.Success,
		},
		{
			"cert_obtained",
			map[string]any{"identifier": "a.example.com", "renewal": true, "issuer": "ca"},
			false, "Certificate of a.example.com renewed", "Issuer: ca", notifier.Success,
		},
		{
			"cert_failed",
			map[string]any{"identifier": "a.example.com", "renewal": false, "issuers": []string{"ca", "cb"}, "error": errors.New("no route")},
			false,
			"No certificate for a.example.com", "no route\nIssuers: ca, cb", notifier.Failure,
		},
		{
			"cert_failed",
			map[string]any{"identifier": "a.example.com", "renewal": true, "remaining": 5 * time.Hour, "error": errors.New("no route")},
			false,
			"Certificate of a.example.com not renewed", "no route\nThe current certificate is valid for another 5 hours.", notifier.Failure,
		},
		{
			"cert_failed",
			map[string]any{"identifier": "a.example.com", "renewal": true, "remaining": -time.Hour, "error": errors.New("no route")},
			false,
			"Certificate of a.example.com not renewed", "no route\nThe current certificate has expired.", notifier.Failure,
		},
		{
			"cert_ocsp_revoked",
			map[string]any{
				"subjects":    []string{"a.example.com", "b.example.com"},
				"certificate": struct{ Key string }{"secretsecret"}, "reason": 1,
				"revoked_at": time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC),
			},
			false,
			"Certificate of a.example.com, b.example.com revoked", "Reason: 1\nRevoked: 2026-03-01 12:30:00 UTC", notifier.Failure,
		},
		{
			"cached_managed_cert",
			map[string]any{"sans": []string{"a.example.com"}},
			false,
			"Certificate for a.example.com loaded", "Certificate for a.example.com loaded.", notifier.Info,
		},
		{
			"cached_unmanaged_cert",
			map[string]any{"sans": []string{"a.example.com"}, "replacement": true},
			false, "Certificate for a.example.com loaded", "It replaces another certificate.", notifier.Info,
		},
		{"healthy", map[string]any{"host": "10.0.0.7:80"}, false, "Upstream 10.0.0.7:80 is up", "passes its health checks", notifier.Success},
		{"unhealthy", map[string]any{"host": "10.0.0.7:80"}, false, "Upstream 10.0.0.7:80 is down", "fails its health checks", notifier.Failure},
		{
			"rate_limit_exceeded",
			map[string]any{"zone": "api", "wait": 1500 * time.Millisecond, "remote_ip": "192.0.2.1"},
			false,
			"Rate limit exceeded by 192.0.2.1", "Zone: api", notifier.Warning,
		},
		{
			"notify_failed",
			map[string]any{"key": "ops", "delivered": 1, "failed": 2, "error": "no route; no room"},
			false,
			"Message not delivered (key ops)", "1 of 3 destinations have the message.\nno route; no room", notifier.Failure,
		},
		{
			"notify_delivered",
			map[string]any{"key": "", "delivered": 1, "failed": 0, "services": []string{"JSON"}},
			false,
			"Message delivered", "1 of 1 destinations have the message.\nServices: JSON", notifier.Success,
		},
		// Unknown events, and known ones with unexpected data.
		{
			"backup_done",
			map[string]any{
				"size": 12, "file": "a\nb", "error": nil, "who": (*net.IPAddr)(nil),
				"cert": struct{ Key string }{"secretsecret"}, "took": 3 * time.Minute,
			},
			false,
			"Event backup_done", "file: a\nsize: 12\ntook: 3 minutes\nwho: <nil>", notifier.Info,
		},
		{"backup_done", nil, false, "Event backup_done", "The event has no data.", notifier.Info},
		{"unhealthy", nil, false, "Upstream an unknown name is down", "an unknown name", notifier.Failure},
	} {
		e, err := caddy.NewEvent(caddy.Context{}, tt.event, tt.data)
		if err != nil {
			t.Fatal(err)
		}
		got := describe(e, tt.reload)
		if got.Title != tt.title || !strings.Contains(got.Body, tt.body) || got.Type != tt.kind {
			t.Errorf("%s %v:\n got %q\n     %q, %s\nwant %q\n     %q, %s", tt.event,
				tt.data, got.Title, got.Body, got.Type, tt.title, tt.body, tt.kind)
		}
		if strings.Contains(got.Body, "secretsecret") {
			t.Errorf("%s: the message shows a structure", tt.event)
		}
	}
}

// TestUnknownEventIsBounded checks that the data of an unknown event is shown
// up to a maximum length.
func TestUnknownEventIsBounded(t *testing.T) {
	data := map[string]any{}
	for i := range 1000 {
		data[fmt.Sprint("name", i)] = strings.Repeat("x", 100_000)
	}
	e, err := caddy.NewEvent(caddy.Context{}, "x", data)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(describe(e, false).Body); n > (maxDataLines+1)*(2*maxDataValue) {
		t.Errorf("the message has %d bytes", n)
	}
}
