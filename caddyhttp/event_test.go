package caddyhttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddytest"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/caddy-notify/caddy-notify/notifier"
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

// eventful runs the apps notify and events, without servers, under global
// options.
func eventful(t *testing.T, options string) (notify *App, emit func(name string, data map[string]any) caddy.Event) {
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

// sent waits for all messages that are under way.
func sent(t *testing.T, a *App) {
	t.Helper()
	if left := a.shared.background.wait(time.Minute); left > 0 {
		t.Fatalf("%d messages are not sent", left)
	}
}

// Every event that Caddy emits has a text that tells what has happened, and to
// what.
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
		{"cert_obtaining", map[string]any{"identifier": "a.example.com"}, false, "Obtaining a certificate for a.example.com", "Obtaining a certificate for a.example.com.", notifier.Info},
		{
			"cert_obtaining", map[string]any{"identifier": "a.example.com", "renewal": true, "forced": false, "remaining": 30 * 24 * time.Hour, "issuer": "ca"}, false,
			"Renewing the certificate of a.example.com", "The current certificate is valid for another 30 days.\nIssuer: ca", notifier.Info,
		},
		{"cert_obtained", map[string]any{"identifier": "a.example.com", "renewal": false, "issuer": "ca", "csr_pem": []byte("x")}, false, "Certificate for a.example.com obtained", "Issuer: ca", notifier.Success},
		{"cert_obtained", map[string]any{"identifier": "a.example.com", "renewal": true, "issuer": "ca"}, false, "Certificate of a.example.com renewed", "Issuer: ca", notifier.Success},
		{
			"cert_failed", map[string]any{"identifier": "a.example.com", "renewal": false, "issuers": []string{"ca", "cb"}, "error": errors.New("no route")}, false,
			"No certificate for a.example.com", "no route\nIssuers: ca, cb", notifier.Failure,
		},
		{
			"cert_failed", map[string]any{"identifier": "a.example.com", "renewal": true, "remaining": 5 * time.Hour, "error": errors.New("no route")}, false,
			"Certificate of a.example.com not renewed", "no route\nThe current certificate is valid for another 5 hours.", notifier.Failure,
		},
		{
			"cert_failed", map[string]any{"identifier": "a.example.com", "renewal": true, "remaining": -time.Hour, "error": errors.New("no route")}, false,
			"Certificate of a.example.com not renewed", "no route\nThe current certificate has expired.", notifier.Failure,
		},
		{
			"cert_ocsp_revoked", map[string]any{"subjects": []string{"a.example.com", "b.example.com"}, "certificate": struct{ Key string }{"secretsecret"}, "reason": 1, "revoked_at": time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)}, false,
			"Certificate of a.example.com, b.example.com revoked", "Reason: 1\nRevoked: 2026-03-01 12:30:00 UTC", notifier.Failure,
		},
		{"cached_managed_cert", map[string]any{"sans": []string{"a.example.com"}}, false, "Certificate for a.example.com loaded", "Certificate for a.example.com loaded.", notifier.Info},
		{"cached_unmanaged_cert", map[string]any{"sans": []string{"a.example.com"}, "replacement": true}, false, "Certificate for a.example.com loaded", "It replaces another certificate.", notifier.Info},
		{"healthy", map[string]any{"host": "10.0.0.7:80"}, false, "Upstream 10.0.0.7:80 is up", "passes its health checks", notifier.Success},
		{"unhealthy", map[string]any{"host": "10.0.0.7:80"}, false, "Upstream 10.0.0.7:80 is down", "fails its health checks", notifier.Failure},
		{
			"rate_limit_exceeded", map[string]any{"zone": "api", "wait": 1500 * time.Millisecond, "remote_ip": "192.0.2.1"}, false,
			"Rate limit exceeded by 192.0.2.1", "Zone: api\nNext request possible in: 1.5s", notifier.Warning,
		},
		{
			"notify_failed", map[string]any{"key": "ops", "delivered": 1, "failed": 2, "error": "no route; no room"}, false,
			"Message not delivered (key ops)", "1 of 3 destinations have the message.\nno route; no room", notifier.Failure,
		},
		{"notify_delivered", map[string]any{"key": "", "delivered": 1, "failed": 0, "services": []string{"JSON"}}, false, "Message delivered", "1 of 1 destinations have the message.\nServices: JSON", notifier.Success},
		// Events that nobody has thought of, or with other data than expected.
		{
			"backup_done", map[string]any{"size": 12, "file": "a\nb", "error": nil, "who": (*net.IPAddr)(nil), "cert": struct{ Key string }{"secretsecret"}, "took": 3 * time.Minute}, false,
			"Event backup_done", "file: a\nsize: 12\ntook: 3 minutes\nwho: <nil>", notifier.Info,
		},
		{"backup_done", nil, false, "Event backup_done", "The event has no data.", notifier.Info},
		{"unhealthy", nil, false, "Upstream an unknown name is down", "an unknown name", notifier.Failure},
	} {
		e, err := caddy.NewEvent(caddy.Context{}, tt.event, tt.data)
		if err != nil {
			t.Fatal(err)
		}
		got := describeEvent(e, tt.reload)
		if got.title != tt.title || !strings.Contains(got.body, tt.body) || got.typ != tt.kind {
			t.Errorf("%s %v:\n got %q\n     %q, %s\nwant %q\n     %q, %s", tt.event, tt.data, got.title, got.body, got.typ, tt.title, tt.body, tt.kind)
		}
		if strings.Contains(got.body, "secretsecret") {
			t.Errorf("%s: the message shows a structure", tt.event)
		}
	}
}

// An unknown event's data are shown within bounds.
func TestUnknownEventIsBounded(t *testing.T) {
	data := map[string]any{}
	for i := range 1000 {
		data[fmt.Sprint("name", i)] = strings.Repeat("x", 100_000)
	}
	e, err := caddy.NewEvent(caddy.Context{}, "x", data)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(describeEvent(e, false).body); n > (maxDataLines+1)*(2*maxDataValue) {
		t.Errorf("the message has %d bytes", n)
	}
}

// The operator's texts have their placeholders replaced; what the event brings
// is not read for placeholders, nor as HTML.
func TestEventMessages(t *testing.T) {
	t.Setenv("NOTIFY_TEST_SECRET", "secretsecret")
	t.Setenv("NOTIFY_TEST_PLACE", "Berlin")
	s := newStation(t)
	notify, emit := eventful(t, `
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
			"texts", map[string]any{"text": "<i>{env.NOTIFY_TEST_SECRET}</i>", "list": []string{"x", "y"}},
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

// emitAs emits an event in the name of the app.
func emitAs(a *App, name string, data map[string]any) {
	a.emitter.events.Emit(a.emitter.ctx, name, data)
}

// The emitter is not kept waiting, however slow the destination is, and gets
// no error, whatever becomes of the message.
func TestEventsNeverBlock(t *testing.T) {
	release := make(chan struct{})
	got := make(chan struct{}, maxBackground+maxQueued+1)
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-release
		got <- struct{}{}
	}))
	defer slow.Close()
	notify, emit := eventful(t, `
	notify {
		key slow {
			url json://`+strings.TrimPrefix(slow.URL, "http://")+`
		}
		timeout 1m
	}
	events {
		on x notify slow
	}`)
	lost := &notify.shared.background.dropped
	lost.mu.Lock()
	before, told := lost.count, lost.timer != nil
	lost.mu.Unlock()
	const more = 5
	for range maxBackground + maxQueued + more {
		if e := emit("x", nil); e.Aborted != nil {
			t.Fatal(e.Aborted)
		}
	}
	close(release)
	sent(t, notify)
	if len(got) != maxBackground+maxQueued {
		t.Errorf("%d messages were sent, want as many as the background takes: %d", len(got), maxBackground+maxQueued)
	}
	lost.mu.Lock()
	defer lost.mu.Unlock()
	want := before + more
	if !told {
		want-- // the first was told at once
	}
	if lost.count != want {
		t.Errorf("%d lost messages are still to be told, want %d", lost.count, want)
	}
}

// Each message is told of by an event. Who is notified of that is not notified
// of the notification again, and never of a failure to notify it.
func TestOwnEvents(t *testing.T) {
	s := newStation(t)
	closed := httptest.NewServer(nil)
	closed.Close()
	gone := strings.Replace(closed.URL, "http", "json", 1)
	notify, emit := eventful(t, `
	notify {
		key ok {
			url `+s.url("/ok")+`
		}
		key broken {
			url `+s.url("/refuse/broken")+`
			url `+gone+`/secretsecret?+x=secretsecret
			url `+s.url("/fine")+`
		}
		key meta {
			url `+s.url("/meta")+`
		}
		key meta_broken {
			url `+s.url("/refuse/meta")+`
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
	}`)
	emit("ok", nil)
	sent(t, notify)
	if paths := s.paths(); paths != "meta ok" {
		t.Errorf("delivered: messages at %q", paths)
	}
	emit("broken", nil)
	sent(t, notify)
	messages := s.take()
	var paths []string
	for _, m := range messages {
		paths = append(paths, m.Path)
	}
	if want := []string{"/fine", "/meta", "/refuse/broken", "/refuse/meta"}; !slices.Equal(paths, want) {
		t.Fatalf("failed: messages at %q, want %q", paths, want)
	}
	meta := messages[1]
	if meta.Title != "broken by event" || !strings.HasPrefix(meta.Message, "JSON, JSON 1 2 json://") || !strings.Contains(meta.Message, "500") || !strings.Contains(meta.Message, "refused") {
		t.Errorf("got %+v", meta)
	}
	for _, m := range messages {
		if strings.Contains(m.Title+m.Message, "x=secretsecret") {
			t.Errorf("a message shows a secret: %+v", m)
		}
	}
}

// A message over HTTP is told of too, and without its text.
func TestOwnEventsOverHTTP(t *testing.T) {
	s := newStation(t)
	_, _ = eventful(t, `
	notify {
		key meta {
			url `+s.url("/meta")+`
		}
	}
	events {
		on notify_delivered notify meta
		on notify_failed notify meta
	}`)
	h := newGateway(t, open, "")
	for path, want := range map[string]string{"/client": "Message delivered", "/refuse": "Message not delivered"} {
		post(t, h, "/notify", typeForm, "title=secrettitle&body=secretbody&urls="+s.url(path))
		if left := h.shared.background.wait(time.Minute); left > 0 {
			t.Fatal(left)
		}
		got := s.take()
		i := slices.IndexFunc(got, func(a arrived) bool { return a.Path == "/meta" })
		if len(got) != 2 || i < 0 {
			t.Fatalf("%s: %+v", path, got)
		}
		meta := got[i]
		if meta.Title != want || strings.Contains(meta.Message, "secret") {
			t.Errorf("%s: got %+v", path, meta)
		}
	}
}

// Lists in events are bounded, as the number of destinations is not.
func TestOwnEventData(t *testing.T) {
	var results []notifier.Result
	for range 500 {
		results = append(results, notifier.Result{Service: "JSON", Destination: "json://h", Status: notifier.Failed, Err: errors.New(strings.Repeat("x", 10_000))})
	}
	results = append(results, notifier.Result{Service: "Form", Status: notifier.Delivered})
	data := ownEventData(delivery{source: sourceHTTP, key: "k"}, false, results)
	if data["failed"] != 500 || data["delivered"] != 1 || data["key"] != "k" || data["source"] != "http" {
		t.Errorf("got %v", data)
	}
	if n := len(fmt.Sprint(data)); n > 50_000 {
		t.Errorf("the data have %d bytes", n)
	}
}

// What makes no message.
func TestEventsLeftOut(t *testing.T) {
	s := newStation(t)
	notify, emit := eventful(t, `
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

// A key or tag that does not exist is refused when the configuration loads,
// whatever Caddy loads first.
func TestUnknownRecipients(t *testing.T) {
	const notify = "notify {\nkey k {\nurl json://h a\n}\n}\n"
	for options, want := range map[string]string{
		notify + "events {\non x notify other\n}":                          "on x notify: the global option notify has no key other",
		notify + "events {\non x notify k\non y notify other\n}":           "on y notify: the global option notify has no key other",
		notify + "events {\non * notify other\n}":                          "on * notify: the global option notify has no key other",
		"log x {\noutput notify k\n}":                                      "the global option notify is missing",
		"log {\noutput notify k\n}\nevents {\non x notify k\n}":            "the global option notify is missing",
		"events {\non x notify other\n}":                                   "the global option notify has no key other",
		notify + "events {\non x notify k {\ntag b\n}\n}":                  "none of the 1 destinations of the key k has the tag b",
		notify + "log x {\noutput notify other\n}":                         "log output notify: the global option notify has no key other",
		notify + "log x {\noutput notify k {\ntag b\n}\n}":                 "log output notify: none of the 1 destinations of the key k has the tag b",
		notify + "events {\non x notify k\n}\nlog x {\noutput notify k\n}": "",
	} {
		for range 5 { // the order is random
			err := caddy.Validate(adapted(t, "{\nadmin off\npersist_config off\n"+options+"\n}\n"))
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Fatalf("%s\nerror %v, want %q", options, err, want)
			}
		}
	}
}

// The same holds where a site loads the gateway, whatever Caddy loads first.
func TestUnknownRecipientsBesideSites(t *testing.T) {
	const site = "http://localhost:9080 {\nroute {\nnotify\n}\n}\n"
	for options, want := range map[string]string{
		"notify {\nkey k {\nurl json://h a\n}\n}\nlog x {\noutput notify nope\n}":          "the global option notify has no key nope",
		"notify {\nkey k {\nurl json://h a\n}\n}\nlog x {\noutput notify k {\ntag b\n}\n}": "has the tag b",
		"log x {\noutput notify nope\n}":                                                   "the global option notify is missing",
		"notify {\nkey k {\nurl json://h a\n}\n}\nlog x {\noutput notify k\n}":             "",
	} {
		for range 20 { // the order is random
			err := caddy.Validate(adapted(t, "{\nadmin off\npersist_config off\n"+options+"\n}\n"+site))
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Fatalf("%s\nerror %v, want %q", options, err, want)
			}
		}
	}
}

// A text is not accepted with a placeholder that never has a value.
func TestTextPlaceholders(t *testing.T) {
	t.Setenv("NOTIFY_TEST_PLACE", "Berlin")
	file := filepath.Join(t.TempDir(), "place")
	if err := os.WriteFile(file, []byte("Berlin"), 0o600); err != nil {
		t.Fatal(err)
	}
	const notify = "notify {\nkey k {\nurl json://h\n}\n}\n"
	for _, tt := range []struct{ text, event, log string }{ // "" is no error
		{"91% of {this", "", ""},
		{"<style>p{color:red}</style>", "", ""},
		{`{{x}} and \{nosuch}`, "", ""},
		{"{system.hostname} {time.now.year} {env.NOTIFY_TEST_PLACE} {file." + file + "}", "", ""},
		{"{event.name} {event.data.anything} {event.time_unix}", "", "the placeholder {event.name} has no value in a message about log entries"},
		{"{event.nosuch}", "the placeholder {event.nosuch} has no value in a message about an event; use {event.name}", "{event.nosuch}"},
		{"{nosuch}", "{nosuch} has no value", "{nosuch} has no value"},
		{"{http.request.host}", "{http.request.host} has no value", "{http.request.host} has no value"},
		{"{env.NOTIFY_TEST_UNSET}", "on x notify: title: {env.NOTIFY_TEST_UNSET} has no value", "title: {env.NOTIFY_TEST_UNSET} has no value"},
		{"{file./no/such/file}", "title: {file./no/such/file} has no value", "title: {file./no/such/file} has no value"},
	} {
		for _, of := range []struct{ options, want string }{
			{"events {\non x notify k {\ntitle `" + tt.text + "`\n}\n}", tt.event},
			{"log x {\noutput notify k {\ntitle `" + tt.text + "`\n}\n}", tt.log},
		} {
			text := "{\nadmin off\npersist_config off\n" + notify + of.options + "\n}\n"
			config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
			if err != nil && !strings.Contains(err.Error(), "at Caddyfile:11") {
				t.Errorf("%s: no line in %v", tt.text, err)
			}
			var c caddy.Config
			if err == nil {
				err = json.Unmarshal(config, &c)
			}
			if err == nil {
				err = caddy.Validate(&c)
			}
			if of.want == "" && err != nil || of.want != "" && (err == nil || !strings.Contains(err.Error(), of.want)) {
				t.Errorf("%s: error %v, want %q", of.options, err, of.want)
			}
		}
	}
}

// Mistakes in the blocks of events and logs are refused with their line.
func TestRecipientMistakes(t *testing.T) {
	type unmarshaler = caddyfile.Unmarshaler
	both := []func() unmarshaler{func() unmarshaler { return new(EventHandler) }, func() unmarshaler { return new(LogWriter) }}
	event, log := both[:1], both[1:]
	for _, tt := range []struct {
		to         []func() unmarshaler
		text, line string
		want       string
	}{
		{both, "notify", "1", "expected notify <key> [{ … }]"},
		{both, "notify a b", "1", "expected notify <key> [{ … }]"},
		{both, "notify a.b", "1", "1 to 128 letters"},
		{both, "notify k {\nkey x\n}", "2", `unknown subdirective "key" in notify`},
		{both, "notify k {\ntag\n}", "2", "expected tag <expression>"},
		{both, "notify k {\ntag $\n}", "2", "tag: "},
		{both, "notify k {\ntag ,\n}", "2", "tag: it names no tag; write a tag expression"},
		{both, "notify k {\ntype bad\n}", "2", "type: unknown type"},
		{both, "notify k {\ntype info\ntype info\n}", "3", "occurs twice in notify"},
		{both, "notify k {\ntitle a b\n}", "2", "expected title <text>"},
		{both, "notify k {\ntitle \"\"\n}", "2", "must not be empty"},
		{event, "notify k {\nbody\n}", "2", "expected body <text>"},
		{event, "notify k {\nformat\n}", "2", "expected format text|markdown|html"},
		{event, "notify k {\nbody x\nformat rtf\n}", "3", "unknown format"},
		{event, "notify k {\nformat html\n}", "1", "format has no effect without body"},
		{event, "notify k {\ninterval 1m\n}", "2", "unknown subdirective"},
		{log, "notify k {\nbody x\n}", "2", "unknown subdirective"},
		{log, "notify k {\ninterval 10\n}", "2", "one second or more"},
		{log, "notify k {\ninterval 10ms\n}", "2", "one second or more"},
		{log, "notify k {\nmax 0\n}", "2", "a whole number from 1 to 100"},
		{log, "notify k {\nmax 101\n}", "2", "a whole number from 1 to 100"},
		{log, "notify k {\nmax 1 {\n}\n}", "2", "max takes no block"},
	} {
		for _, to := range tt.to {
			m := to()
			err := m.UnmarshalCaddyfile(caddyfile.NewTestDispenser(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasSuffix(err.Error(), ", at Testfile:"+tt.line) {
				t.Errorf("%T: %q: %v\nwant %q and line %s", m, tt.text, err, tt.want, tt.line)
			}
		}
	}
	for module, configs := range map[string]map[string]string{
		"events.handlers.notify": {
			`{"key":"a.b"}`:                 "1 to 128 letters",
			`{"key":"k","type":"bad"}`:      "unknown type",
			`{"key":"k","format":"rtf"}`:    "unknown format",
			`{"key":"k","format":"html"}`:   "format has no effect without body",
			`{"key":"k","tag":"$"}`:         "tag: ",
			`{"key":"k","interval":"1000"}`: "unknown field",
		},
		"caddy.logging.writers.notify": {
			`{}`:                             "1 to 128 letters",
			`{"key":"k","type":"bad"}`:       "unknown type",
			`{"key":"k","interval":1000000}`: "interval: it must be a duration",
			`{"key":"k","interval":-1}`:      "interval: it must be a duration",
			`{"key":"k","max":-1}`:           "max: it must be a whole number",
			`{"key":"k","max":101}`:          "max: it must be a whole number",
		},
	} {
		for config, want := range configs {
			ctx, err := caddy.ProvisionContext(&caddy.Config{Admin: &caddy.AdminConfig{Disabled: true}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ctx.LoadModuleByID(module, []byte(config)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s: %v, want %q", module, config, err, want)
			}
		}
	}
}

// An background has bounds, and ends what it began.
func TestOutbox(t *testing.T) {
	var o background
	if left := o.wait(0); left != 0 {
		t.Errorf("%d left of nothing", left)
	}
	release, done := make(chan struct{}), make(chan struct{}, maxBackground+maxQueued)
	for i := range maxBackground + maxQueued {
		if !o.add(func() { <-release; done <- struct{}{} }) {
			t.Fatalf("the background is full with %d", i)
		}
	}
	if o.add(func() { t.Error("sent in spite of being refused") }) {
		t.Error("the background has no bounds")
	}
	if left := o.wait(time.Millisecond); left != maxBackground+maxQueued {
		t.Errorf("%d left", left)
	}
	close(release)
	if left := o.wait(time.Minute); left != 0 || len(done) != cap(done) {
		t.Errorf("%d left, %d done", left, len(done))
	}
	if !o.add(func() {}) || o.wait(time.Minute) != 0 {
		t.Error("the background is no good any more")
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

// boot runs a Caddy with global options and sites.
func boot(t *testing.T, options, sites string) {
	t.Helper()
	caddytest.NewTester(t).InitServer(`{
	admin localhost:2999
	skip_install_trust
	http_port 9080
	https_port 9443
	persist_config off
	`+options+`
}
`+sites, "caddyfile")
}

const emptySite = "http://localhost:9080 {\nrespond ok\n}\n"

// A certificate that cannot be had becomes a message.
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
	closed := httptest.NewServer(nil)
	closed.Close()
	ca := strings.TrimPrefix(closed.URL, "http://")
	boot(t, "storage file_system "+dir+`
	notify {
		key ops {
			url `+s.url("/ops")+`
		}
	}
	events {
		on cert_failed notify ops
	}`, "fails.example.com:9443 {\ntls {\nissuer acme {\ndir https://"+ca+"/directory\n}\n}\nrespond ok\n}\n")
	got := s.arrives(t, "No certificate for fails.example.com")
	boot(t, "", emptySite) // so that it does not try again
	if got.Type != "failure" || !strings.Contains(got.Message, "connection refused") || !strings.Contains(got.Message, "Issuers: "+ca) {
		t.Errorf("got %+v", got)
	}
}

// An upstream that goes away becomes a message, and its return another.
func TestUpstreamGoesAway(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	s := newStation(t)
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	address := upstream.Listener.Addr().String()
	boot(t, `
	notify {
		key ops {
			url `+s.url("/ops")+`
		}
	}
	events {
		on healthy notify ops
		on unhealthy notify ops
	}`, "http://localhost:9080 {\nreverse_proxy "+address+" {\nhealth_uri /\nhealth_interval 100ms\n}\n}\n")
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
	boot(t, "", emptySite)
}

// Starting and reloading are told apart, and the end of a configuration is no
// end of Caddy.
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
	boot(t, options, emptySite)
	boot(t, options, "http://localhost:9080 {\nrespond reloaded\n}\n")
	boot(t, "", emptySite) // waits for what is under way
	var titles []string
	for _, m := range s.take() {
		titles = append(titles, m.Title)
	}
	// caddytest's own configuration came first.
	if want := []string{"Caddy has a new configuration", "Caddy has a new configuration"}; !slices.Equal(titles, want) {
		t.Errorf("got %q, want %q", titles, want)
	}
}
