package caddyhttp

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

func adapted(t *testing.T, text string) *caddy.Config {
	t.Helper()
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	if err != nil && strings.Contains(text, "&(") && strings.Contains(err.Error(), "unrecognized directive: import") {
		t.Skip("the oldest Caddy imports nothing into a named route")
	}
	if err != nil {
		t.Fatal(err)
	}
	var c caddy.Config
	if err := json.Unmarshal(config, &c); err != nil {
		t.Fatal(err)
	}
	return &c
}

// startEventApps runs the apps notify and events with global options, without
// servers.
func startEventApps(t *testing.T, options string) (notify *App, emit func(name string, data map[string]any) caddy.Event) {
	t.Helper()
	ctx, err := caddy.ProvisionContext(adapted(t, "{\nadmin off\npersist_config off\n"+options+"\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"notify", "events"} {
		app, err := ctx.App(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := app.(caddy.App).Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := app.(caddy.App).Stop(); err != nil {
				t.Error(err)
			}
			if c, ok := app.(caddy.CleanerUpper); ok {
				if err := c.Cleanup(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	app, _ := ctx.App("notify")
	events, _ := ctx.App("events")
	return app.(*App), func(name string, data map[string]any) caddy.Event {
		return events.(*caddyevents.App).Emit(ctx, name, data)
	}
}

// sent waits until all messages are sent.
func sent(t *testing.T, a *App) {
	t.Helper()
	if left := a.shared.Background.Wait(time.Minute); left > 0 {
		t.Fatalf("%d messages are not sent", left)
	}
}

// TestEventMessages checks that placeholders are replaced in the operator's
// texts, and that the data of an event is neither searched for placeholders nor
// read as HTML.
func TestEventMessages(t *testing.T) {
	t.Setenv("NOTIFY_TEST_SECRET", "secretsecret")
	t.Setenv("NOTIFY_TEST_PLACE", "Berlin")
	s := gatewaytest.NewStation(t)
	notify, emit := startEventApps(t, `
	notify {
		key k {
			url `+s.NotifyURL("/a")+`?format=html a
			url `+s.NotifyURL("/b")+` b
		}
	}
	events {
		on default notify k {
			tag b
		}
		on texts notify k {
			title "{env.NOTIFY_TEST_PLACE}: {event.name} {event.data.list}"
			body "<b>{event.data.text}</b> {event.data.none} \{event.name}"
			format html
			type warning
			tag a
		}
		on lines notify k {
			title "{event.data.text}"
			tag b
		}
	}`)
	for _, tt := range []struct {
		event string
		data  map[string]any
		want  gatewaytest.Arrived
	}{
		{
			"default",
			map[string]any{"text": "{env.NOTIFY_TEST_SECRET}"},
			gatewaytest.Arrived{Path: "/b", Title: "Event default", Message: "Module: notify\ntext: {env.NOTIFY_TEST_SECRET}", Type: "info"},
		},
		{
			"texts",
			map[string]any{"text": "<i>{env.NOTIFY_TEST_SECRET}</i>", "list": []string{"x", "y"}},
			gatewaytest.Arrived{
				Path: "/a", Title: "Berlin: texts x, y",
				Message: "<b>&lt;i&gt;{env.NOTIFY_TEST_SECRET}&lt;/i&gt;</b> {event.data.none} {event.name}",
				Type:    "warning",
			},
		},
		{
			"lines",
			map[string]any{"text": "one\ntwo"},
			gatewaytest.Arrived{Path: "/b", Title: "one", Message: "Module: notify\ntext: one", Type: "info"},
		},
	} {
		emitAs(notify, tt.event, tt.data)
		sent(t, notify)
		if got := s.One(t); got.Path != tt.want.Path || got.Title != tt.want.Title || got.Message != tt.want.Message || got.Type != tt.want.Type {
			t.Errorf("%s: got %+v\nwant %+v", tt.event, got, tt.want)
		}
	}
	if e := emit("default", nil); e.Aborted != nil {
		t.Errorf("the event was aborted: %v", e.Aborted)
	}
}

// emitAs emits an event with the app as its origin.
func emitAs(a *App, name string, data map[string]any) {
	a.emitter.Emit(name, func() map[string]any { return data })
}

// TestEventsLeftOut checks which events cause no message.
func TestEventsLeftOut(t *testing.T) {
	s := gatewaytest.NewStation(t)
	notify, emit := startEventApps(t, `
	notify {
		key k {
			url `+s.NotifyURL("/k")+`
		}
	}
	events {
		on * notify k
	}`)
	emit("tls_get_certificate", nil)
	emit("notify_failed", map[string]any{"key": "k"})
	emit("notify_delivered", map[string]any{"key": "k"})
	sent(t, notify)
	if got := s.Take(); len(got) > 0 {
		t.Errorf("got %+v", got)
	}
	emit("notify_failed", map[string]any{"key": "other"})
	sent(t, notify)
	if got := s.One(t); got.Title != "Message not delivered (key other)" {
		t.Errorf("got %+v", got)
	}
}

var emptySite = caddyhttptest.Server + " {\nrespond ok\n}\n"

// TestFailingIssuance checks that a message is sent if a certificate cannot be
// obtained.
func TestFailingIssuance(t *testing.T) {
	s := gatewaytest.NewStation(t)
	dir, err := os.MkdirTemp("", "notify")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	// CertMagic remembers for the whole process which names have failed.
	name := fmt.Sprintf("fails%d.example.com", time.Now().UnixNano())
	allow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer allow.Close()
	// The certificate is obtained on demand, because Caddy has a data race if one
	// app emits events before the others have started.
	const ca = "127.0.0.1:1"
	caddyhttptest.StartCaddy(t, "storage file_system "+dir+`
	on_demand_tls {
		ask `+allow.URL+`
	}
	notify {
		key ops {
			url `+s.NotifyURL("/ops")+`
		}
	}
	events {
		on cert_failed notify ops
	}`, name+":"+caddyhttptest.SecurePort+" {\ntls {\non_demand\nissuer acme {\ndir https://"+ca+"/directory\n}\n}\nrespond ok\n}\n")
	conn, err := net.Dial("tcp", caddyhttptest.Secure)
	if err != nil {
		t.Fatal(err)
	}
	var handshake sync.WaitGroup
	handshake.Go(func() {
		if err := tls.Client(conn, &tls.Config{ServerName: name}).Handshake(); err == nil {
			t.Error("there is a certificate")
		}
	})
	got := s.Arrives(t, "No certificate for "+name)
	_ = conn.Close()
	handshake.Wait()
	if got.Type != "failure" || !strings.Contains(got.Message, "connection refused") || !strings.Contains(got.Message, "Issuers: "+ca) {
		t.Errorf("got %+v", got)
	}
}

// TestUpstreamHealth checks that a message is sent when an upstream becomes
// unhealthy, and another when it is healthy again.
func TestUpstreamHealth(t *testing.T) {
	s := gatewaytest.NewStation(t)
	checks := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case checks <- struct{}{}:
		default:
		}
	}))
	address := upstream.Listener.Addr().String()
	caddyhttptest.StartCaddy(t, `
	notify {
		key ops {
			url `+s.NotifyURL("/ops")+`
		}
	}
	events {
		on healthy notify ops
		on unhealthy notify ops
	}`, caddyhttptest.Server+" {\nreverse_proxy "+address+" {\nhealth_uri /\nhealth_interval 100ms\n}\n}\n")
	// Caddy has a data race if an upstream becomes unhealthy before all apps have
	// started.
	<-checks
	upstream.Close()
	if got := s.Arrives(t, "Upstream "+address+" is down"); got.Type != "failure" {
		t.Errorf("got %+v", got)
	}
	again, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	upstream = httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	_ = upstream.Listener.Close()
	upstream.Listener = again
	upstream.Start()
	defer upstream.Close()
	if got := s.Arrives(t, "Upstream "+address+" is up"); got.Type != "success" {
		t.Errorf("got %+v", got)
	}
}

// TestStartAndReload checks that starts and reloads have different messages,
// and that the end of a configuration is not reported as the end of Caddy.
func TestStartAndReload(t *testing.T) {
	s := gatewaytest.NewStation(t)
	options := `
	notify {
		key ops {
			url ` + s.NotifyURL("/ops") + `
		}
	}
	events {
		on started notify ops
		on stopping notify ops
	}`
	caddyhttptest.StartCaddy(t, options, emptySite)
	s.Arrives(t, "Caddy has started") // messages about events can overtake each other
	caddyhttptest.StartCaddy(t, options, caddyhttptest.Server+" {\nrespond reloaded\n}\n")
	caddyhttptest.StartCaddy(t, "", emptySite) // waits for what is under way
	var titles []string
	for _, m := range s.Take() {
		titles = append(titles, m.Title)
	}
	if want := []string{"Caddy has started", "Caddy has a new configuration"}; !slices.Equal(titles, want) {
		t.Errorf("got %q, want %q", titles, want)
	}
}

// TestEventData checks that a placeholder for data that the event never has is
// an error when the configuration loads, with a suggestion.
func TestEventData(t *testing.T) {
	const options = "{\nadmin off\npersist_config off\nnotify {\nkey k {\nurl json://h\n}\n}\nevents {\n"
	for _, tt := range []struct{ event, text, want string }{
		{
			"cert_failed", "{event.data.identifer}",
			"on cert_failed notify: title: the placeholder {event.data.identifer} has no value " +
				"in a message about the event cert_failed; did you mean {event.data.identifier}?",
		},
		{
			"cert_failed", "{event.data.domain}",
			"use {event.data.error}, {event.data.identifier}, {event.data.issuers}, {event.data.remaining}, {event.data.renewal}",
		},
		{"healthy", "{event.data.Host}", "did you mean {event.data.host}?"},
		{"started", "{event.data.host}", "remove the placeholder, because the event has no data"},
		{"notify_delivered", "{event.data.error}", "the event notify_delivered; use {event.data.delivered}"},
		{"cert_failed", `{event.data.identifier} {event.name} \{event.data.x} {{event.data.x}}`, ""},
		{"cert_ocsp_revoked", "{event.data.certificate}", "has no value"}, // it would send the private key
		{"cert_obtained", "{event.data.certificate_path}", ""},
		{"plugin_event", "{event.data.anything}", ""},
		{"rate_limit_exceeded", "{event.data.anything}", ""},
		{"*", "{event.data.anything}", ""},
	} {
		for _, option := range []string{"title", "body"} {
			want := strings.Replace(tt.want, "title:", option+":", 1)
			err := caddy.Validate(adapted(t, options+"on "+tt.event+" notify k {\n"+option+" `"+tt.text+"`\n}\n}\n}\n"))
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s with %s %s: error %v, want %q", tt.event, option, tt.text, err, want)
			}
		}
	}
}
