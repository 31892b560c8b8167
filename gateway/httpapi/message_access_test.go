package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

const (
	aliceToken = "first-token-0123456789"
	bobToken   = "second-token-0123456789"
)

// askMessage asks for a message of the queue as JSON, with headers given as names and values.
func askMessage(g *gatewaytest.Gateway, method, id string, header ...string) gatewaytest.Reply {
	return g.Do(gatewaytest.NewRequest(method, "/notify/messages/"+id, "", header...))
}

// The ID of an incident, with which anybody can resolve it, is for managers and clients with a
// token of the key. Once, the ID of a message was enough.
func TestIncidentIDOfMessage(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	open := gatewaytest.Key("k", p.NotifyURL())
	protected := open
	protected.Tokens = []string{aliceToken}
	read := protected
	read.Inbox, read.Readers = time.Hour, []string{bobToken}
	for _, tt := range []struct {
		name     string
		managers *site.Managers
		key      site.KeyOptions
		header   []string
		shown    bool
	}{
		{"an open key", nil, open, nil, false},
		{"an open key, and any token", nil, open, []string{"Authorization", "Bearer " + aliceToken}, false},
		{"without the token", nil, protected, nil, false},
		{"a wrong token", nil, protected, []string{"Authorization", "Bearer " + bobToken}, false},
		{"a reader", nil, read, []string{"Authorization", "Bearer " + bobToken}, false},
		{"the token", nil, protected, []string{"Authorization", "Bearer " + aliceToken}, true},
		{"who may manage", gatewaytest.Everybody(), open, nil, true},
		{"a console, and nobody who has signed in", &site.Managers{}, open, nil, false},
	} {
		tt.key.Rules = &rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}
		g := gatewaytest.New(t, gatewaytest.Options{
			Global: site.Options{Keys: []site.KeyOptions{tt.key}},
			Site:   site.Options{Managers: tt.managers},
			Queue:  &outbox.Settings{},
		})
		id := g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", "db1"), "Authorization", "Bearer "+aliceToken).JSON(t).ID
		got := askMessage(g, http.MethodGet, id, tt.header...)
		want := ""
		if tt.shown {
			want = g.ListIncidents("k")[0].ID
		}
		if a := got.JSON(t); got.Status != http.StatusOK || a.ID != id || a.IncidentID != want ||
			!strings.Contains(got.Body, `"incident":"db1"`) {
			t.Errorf("%s: %d %s", tt.name, got.Status, got.Body)
		}
	}
}

// The ID of a message is not enough to cancel it if others than its sender know it, or if not
// everybody may send to the key.
func TestCancelNeedsMore(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusBadGateway)
	for _, tt := range []struct {
		name     string
		managers *site.Managers
		key      site.KeyOptions
		header   []string
		want     int
	}{
		{"an open key", nil, site.KeyOptions{}, nil, 200},
		{"accept with direct", nil, site.KeyOptions{Accept: []string{"direct", "grafana"}}, nil, 200},
		{"accept without direct", nil, site.KeyOptions{Accept: []string{"grafana"}}, nil, 403},
		{"accept without direct, and who may manage", gatewaytest.Everybody(), site.KeyOptions{Accept: []string{"grafana"}}, nil, 200},
		{
			"a reader", nil,
			site.KeyOptions{KeySettings: site.KeySettings{Inbox: time.Hour}, Readers: []string{bobToken}},
			[]string{"Authorization", "Bearer " + bobToken},
			403,
		},
		{"a reader, and a token", nil, site.KeyOptions{
			KeySettings: site.KeySettings{Inbox: time.Hour}, Readers: []string{bobToken},
			Tokens: []string{aliceToken},
		}, []string{"Authorization", "Bearer " + aliceToken}, 200},
		{"the reader of a key with a token", nil, site.KeyOptions{
			KeySettings: site.KeySettings{Inbox: time.Hour}, Readers: []string{bobToken},
			Tokens: []string{aliceToken},
		}, []string{"Authorization", "Bearer " + bobToken}, 401},
	} {
		tt.key.Name, tt.key.URLs = "k", gatewaytest.URLs(p.NotifyURL())
		g := gatewaytest.New(t, gatewaytest.Options{
			Global: site.Options{Keys: []site.KeyOptions{tt.key}},
			Site:   site.Options{Managers: tt.managers},
			Queue:  &outbox.Settings{},
		})
		path, form := "/notify/k", "body=b"
		if slices.Equal(tt.key.Accept, []string{"grafana"}) {
			path, form = "/notify/k/grafana", `{"title": "x", "message": "b", "state": "alerting", "alerts": [], "orgId": 1, "receiver": "r", `+
				`"version": "1", "status": "firing"}`
		}
		r := httptest.NewRequest(http.MethodPost, path+"?token="+aliceToken, strings.NewReader(form))
		r.Header.Set("Accept", gatewaytest.TypeJSON)
		r.Header.Set("Content-Type", gatewaytest.TypeForm)
		if path != "/notify/k" {
			r.Header.Set("Content-Type", gatewaytest.TypeJSON)
		}
		id := g.Do(r).JSON(t).ID
		if s, _ := g.State(id); s != "queued" {
			t.Fatalf("%s: the message is %s", tt.name, s)
		}
		got := askMessage(g, http.MethodDelete, id, tt.header...)
		s, _ := g.State(id)
		if got.Status != tt.want || s == "cancelled" != (tt.want == 200) {
			t.Errorf("%s: status %d, and the message is %s: %s", tt.name, got.Status, s, got.Body)
		}
	}
}

// A page of another origin cannot cancel a message, whatever trusted_origins allows it to
// send.
func TestCancelFromOtherOrigin(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusBadGateway)
	for _, trusted := range [][]string{nil, {"https://blog.example"}, {"*"}} {
		g := gatewaytest.New(t, gatewaytest.Options{
			Global: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("k", p.NotifyURL())}},
			Site:   site.Options{TrustedOrigins: trusted},
			Queue:  &outbox.Settings{},
		})
		id := g.PostForm("/notify/k", "body=b").JSON(t).ID
		got := askMessage(g, http.MethodDelete, id, "Origin", "https://blog.example", "Sec-Fetch-Site", "cross-site")
		if s, _ := g.State(id); got.Status != http.StatusForbidden || s != "queued" {
			t.Errorf("%q: status %d, and the message is %s", trusted, got.Status, s)
		}
		if got := askMessage(g, http.MethodDelete, id, "Origin", "http://example.com", "Sec-Fetch-Site",
			"same-origin"); got.Status != http.StatusOK {
			t.Errorf("%q: from its own origin: status %d: %s", trusted, got.Status, got.Body)
		}
	}
}

// An idempotency key belongs to the clients with one token. Another client's use of it, or its
// guess, once made the real alert a 422.
func TestIdempotencyKeyOfToken(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	k := gatewaytest.Key("k", p.NotifyURL())
	k.Tokens = []string{aliceToken, bobToken}
	g := gatewaytest.New(t, gatewaytest.Options{Global: site.Options{Keys: []site.KeyOptions{k}}, Queue: &outbox.Settings{}})
	post := func(path, contentType, body string, header ...string) (int, string) {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.Header = http.Header{"Content-Type": {contentType}, "Accept": {gatewaytest.TypeJSON}, "Idempotency-Key": {"1"}}
		if path, _, _ = strings.Cut(path, "?"); path == "/notify" {
			r.Header.Set(httpapi.ConfigIDHeader, "k")
			r.Header.Set("Idempotency-Key", "named in the header")
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		got := g.Do(r)
		return got.Status, got.JSON(t).ID
	}
	payload := func(text string) string {
		return `{"title": "x", "message": "` + text +
			`", "state": "alerting", "alerts": [], "orgId": 1, "receiver": "r", "version": "1", "status": "firing"}`
	}
	for _, tt := range []struct{ path, contentType, guess, alert string }{
		{"/notify/k", gatewaytest.TypeForm, "body=guess", "body=alert"},
		{"/notify/k/grafana", gatewaytest.TypeJSON, payload("guess"), payload("alert")},
		{"/notify", gatewaytest.TypeForm, "body=guess", "body=alert"},
	} {
		status, guess := post(tt.path, tt.contentType, tt.guess, "Authorization", "Bearer "+aliceToken)
		if status != 200 {
			t.Fatalf("%s: status %d", tt.path, status)
		}
		status, alert := post(tt.path, tt.contentType, tt.alert, "X-Gotify-Key", bobToken)
		if status != 200 || alert == guess && alert != "" {
			t.Errorf("%s: the alert of another client: status %d", tt.path, status)
		}
		// The place of the token does not matter.
		before := p.Count()
		if status, again := post(tt.path+"?token="+bobToken, tt.contentType, tt.alert); status != 200 || again != alert || p.Count() != before {
			t.Errorf("%s: sent again: status %d, the message %s instead of %s", tt.path, status, again, alert)
		}
		if status, _ := post(tt.path, tt.contentType, tt.alert, "Authorization", "Bearer "+aliceToken); status != 422 {
			t.Errorf("%s: another request of the same client: status %d", tt.path, status)
		}
	}
	gatewaytest.Eventually(t, func() bool { return p.Count() == 6 })
}

// Each device of a key, even a removed one, knows the IDs of the messages that it received.
func TestCancelNeedsMoreWithDevices(t *testing.T) {
	t.Parallel()
	s, chat := gatewaytest.NewPushService(t), gatewaytest.NewPager(t, http.StatusBadGateway)
	g := gatewaytest.New(t, gatewaytest.Options{
		Global: gatewaytest.PushOptions(gatewaytest.Key("k", chat.NotifyURL()+" chat")),
		Queue:  &outbox.Settings{},
	})
	cancel := func(id string, want int) {
		t.Helper()
		if got := askMessage(g, http.MethodDelete, id); got.Status != want {
			t.Errorf("status %d, want %d: %s", got.Status, want, got.Body)
		}
	}
	cancel(g.PostForm("/notify/k", "body=before").JSON(t).ID, http.StatusOK)
	phone := s.Subscribe(t, g, "phone", "phone")
	elsewhere := g.PostForm("/notify/k", "body=b&tag=chat").JSON(t).ID
	cancel(elsewhere, http.StatusForbidden)
	id := g.PostForm("/notify/k", "body=b&tag=chat,phone").JSON(t).ID
	if got := g.Ask(http.MethodDelete, "/notify/k/devices/"+phone.ID, nil, "Authorization",
		"Bearer "+phone.Secret); got.Status != http.StatusOK {
		t.Fatalf("status %d: %s", got.Status, got.Body)
	}
	cancel(id, http.StatusForbidden)
	cancel(elsewhere, http.StatusOK)
}

// TestQueueCancelNeedsToken checks that the ID of a message is not enough to cancel it if
// its key has a token. Each device of the key knows the IDs of the messages that it gets.
func TestQueueCancelNeedsToken(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusBadGateway)
	k := gatewaytest.Key("k", p.NotifyURL())
	k.Tokens = []string{"0123456789abcdef"}
	g := gatewaytest.New(t, gatewaytest.Options{Global: site.Options{Keys: []site.KeyOptions{k}}, Queue: &outbox.Settings{}})
	r := httptest.NewRequest(http.MethodPost, "/notify/k?token=0123456789abcdef", strings.NewReader("body=b"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", gatewaytest.TypeJSON)
	id := g.Do(r).JSON(t).ID
	for _, query := range []string{"", "?token=0123456789abcdeg"} {
		if got := g.Message(http.MethodDelete, id+query, gatewaytest.TypeJSON); got.Status != http.StatusUnauthorized {
			t.Errorf("%q: status %d %s", query, got.Status, got.Body)
		}
	}
	if s, _ := g.State(id); s != "queued" {
		t.Errorf("the state is %s", s)
	}
	if got := g.Message(http.MethodDelete, id+"?token=0123456789abcdef", gatewaytest.TypeJSON); got.Status != http.StatusOK ||
		got.JSON(t).State != "cancelled" {
		t.Errorf("with the token: status %d %s", got.Status, got.Body)
	}
}

// TestIdempotencyKeyOfEarlierVersion checks that a message is known that was stored before
// idempotency keys belonged to a token: by an earlier version, or before the key had a token.
func TestIdempotencyKeyOfEarlierVersion(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	k := gatewaytest.Key("k", p.NotifyURL())
	o := gatewaytest.Options{Global: site.Options{Keys: []site.KeyOptions{k}}, Queue: &outbox.Settings{Path: t.TempDir()}}
	for _, body := range []string{"body=now", "body=later&send_at=1h"} {
		post := func(g *gatewaytest.Gateway) (int, string) {
			got := g.PostForm("/notify/k", body, "Accept", gatewaytest.TypeJSON, "Idempotency-Key", body, "Authorization",
				"Bearer "+aliceToken)
			return got.Status, got.JSON(t).ID
		}
		o.Global.Keys[0].Tokens = nil
		g := gatewaytest.New(t, o)
		_, first := post(g)
		g.Stop()
		o.Global.Keys[0].Tokens = []string{aliceToken}
		g = gatewaytest.New(t, o)
		if status, id := post(g); status != http.StatusOK || id != first || first == "" {
			t.Errorf("%s: status %d, ID %s, want %s", body, status, id, first)
		}
		g.Stop()
	}
	if n := p.Count(); n != 1 {
		t.Errorf("%d messages", n)
	}
}
