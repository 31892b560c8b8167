package caddyhttp

import (
	"crypto/tls"
	"encoding/json"
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
)

func adapted(t *testing.T, text string) *caddy.Config {
	t.Helper()
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
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
	if left := a.shared.background.wait(time.Minute); left > 0 {
		t.Fatalf("%d messages are not sent", left)
	}
}

// TestEventMessages checks that placeholders are replaced in the operator's
// texts, and that the data of an event is neither searched for placeholders nor
// read as HTML.
func TestEventMessages(t *testing.T) {
	t.Setenv("NOTIFY_TEST_SECRET", "secretsecret")
	t.Setenv("NOTIFY_TEST_PLACE", "Berlin")
	s := newStation(t)
	notify, emit := startEventApps(t, `
	notify {
		key k {
			url `+s.url("/a")+`?format=html a
			url `+s.url("/b")+` b
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
		want  arrived
	}{
		{"default", map[string]any{"text": "{env.NOTIFY_TEST_SECRET}"}, arrived{Path: "/b", Title: "Event default", Message: "Module: notify\ntext: {env.NOTIFY_TEST_SECRET}", Type: "info"}},
		{
			"texts",
			map[string]any{"text": "<i>{env.NOTIFY_TEST_SECRET}</i>", "list": []string{"x", "y"}},
			arrived{Path: "/a", Title: "Berlin: texts x, y", Message: "<b>&lt;i&gt;{env.NOTIFY_TEST_SECRET}&lt;/i&gt;</b> {event.data.none} {event.name}", Type: "warning"},
		},
		{"lines", map[string]any{"text": "one\ntwo"}, arrived{Path: "/b", Title: "one", Message: "Module: notify\ntext: one", Type: "info"}},
	} {
		emitAs(notify, tt.event, tt.data)
		sent(t, notify)
		if got := s.one(t); got.Path != tt.want.Path || got.Title != tt.want.Title || got.Message != tt.want.Message || got.Type != tt.want.Type {
			t.Errorf("%s: got %+v\nwant %+v", tt.event, got, tt.want)
		}
	}
	if e := emit("default", nil); e.Aborted != nil {
		t.Errorf("the event was aborted: %v", e.Aborted)
	}
}

// emitAs emits an event with the app as its origin.
func emitAs(a *App, name string, data map[string]any) {
	a.emitter.events.Emit(a.emitter.ctx, name, data)
}

// TestEventsLeftOut checks which events cause no message.
func TestEventsLeftOut(t *testing.T) {
	s := newStation(t)
	notify, emit := startEventApps(t, `
	notify {
		key k {
			url `+s.url("/k")+`
		}
	}
	events {
		on * notify k
	}`)
	emit("tls_get_certificate", nil)
	emit("notify_failed", map[string]any{"key": "k"})
	emit("notify_delivered", map[string]any{"key": "k"})
	sent(t, notify)
	if got := s.take(); len(got) > 0 {
		t.Errorf("got %+v", got)
	}
	emit("notify_failed", map[string]any{"key": "other"})
	sent(t, notify)
	if got := s.one(t); got.Title != "Message not delivered (key other)" {
		t.Errorf("got %+v", got)
	}
}

// arrives waits for a message with the title.
func (s *station) arrives(t *testing.T, title string) arrived {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		s.mu.Lock()
		i := slices.IndexFunc(s.got, func(a arrived) bool { return strings.HasPrefix(a.Title, title) })
		if i >= 0 {
			defer s.mu.Unlock()
			return s.got[i]
		}
		s.mu.Unlock()
	}
	t.Fatalf("no message %q; there are %+v", title, s.take())
	return arrived{}
}

const emptySite = "http://localhost:9080 {\nrespond ok\n}\n"

// TestFailingIssuance checks that a message is sent if a certificate cannot be
// obtained.
func TestFailingIssuance(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	s := newStation(t)
	dir, err := os.MkdirTemp("", "notify")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	allow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer allow.Close()
	// The certificate is obtained on demand, because Caddy has a data race if one
	// app emits events before the others have started.
	const ca = "127.0.0.1:1"
	startCaddy(t, "storage file_system "+dir+`
	on_demand_tls {
		ask `+allow.URL+`
	}
	notify {
		key ops {
			url `+s.url("/ops")+`
		}
	}
	events {
		on cert_failed notify ops
	}`, "fails.example.com:9443 {\ntls {\non_demand\nissuer acme {\ndir https://"+ca+"/directory\n}\n}\nrespond ok\n}\n")
	conn, err := net.Dial("tcp", "localhost:9443")
	if err != nil {
		t.Fatal(err)
	}
	var handshake sync.WaitGroup
	handshake.Go(func() {
		if err := tls.Client(conn, &tls.Config{ServerName: "fails.example.com"}).Handshake(); err == nil {
			t.Error("there is a certificate")
		}
	})
	got := s.arrives(t, "No certificate for fails.example.com")
	_ = conn.Close()
	handshake.Wait()
	if got.Type != "failure" || !strings.Contains(got.Message, "connection refused") || !strings.Contains(got.Message, "Issuers: "+ca) {
		t.Errorf("got %+v", got)
	}
}

// TestUpstreamHealth checks that a message is sent when an upstream becomes
// unhealthy, and another when it is healthy again.
func TestUpstreamHealth(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	s := newStation(t)
	checks := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case checks <- struct{}{}:
		default:
		}
	}))
	address := upstream.Listener.Addr().String()
	startCaddy(t, `
	notify {
		key ops {
			url `+s.url("/ops")+`
		}
	}
	events {
		on healthy notify ops
		on unhealthy notify ops
	}`, "http://localhost:9080 {\nreverse_proxy "+address+" {\nhealth_uri /\nhealth_interval 100ms\n}\n}\n")
	// Caddy has a data race if an upstream becomes unhealthy before all apps have
	// started.
	<-checks
	upstream.Close()
	if got := s.arrives(t, "Upstream "+address+" is down"); got.Type != "failure" {
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
	if got := s.arrives(t, "Upstream "+address+" is up"); got.Type != "success" {
		t.Errorf("got %+v", got)
	}
}

// TestStartAndReload checks that starts and reloads have different messages,
// and that the end of a configuration is not reported as the end of Caddy.
func TestStartAndReload(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	s := newStation(t)
	options := `
	notify {
		key ops {
			url ` + s.url("/ops") + `
		}
	}
	events {
		on started notify ops
		on stopping notify ops
	}`
	startCaddy(t, options, emptySite)
	startCaddy(t, options, "http://localhost:9080 {\nrespond reloaded\n}\n")
	startCaddy(t, "", emptySite) // waits for what is under way
	var titles []string
	for _, m := range s.take() {
		titles = append(titles, m.Title)
	}
	if want := []string{"Caddy has started", "Caddy has a new configuration"}; !slices.Equal(titles, want) {
		t.Errorf("got %q, want %q", titles, want)
	}
}
