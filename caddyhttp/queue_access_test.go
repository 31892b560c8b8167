package caddyhttp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
)

const (
	firstToken  = "first-token-0123456789"
	secondToken = "second-token-0123456789"
)

// askMessage asks for a message of the queue as JSON.
func askMessage(t *testing.T, h *Handler, method, id string, header ...string) reply {
	t.Helper()
	r := httptest.NewRequest(method, "/notify/messages/"+id, nil)
	r.Header.Set("Accept", typeJSON)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return do(t, h, r)
}

// The ID of an incident, with which everybody can resolve it, is for who may manage or has
// a token of the key. The ID of a message once was enough.
func TestIncidentIDOfMessage(t *testing.T) {
	p := newPager(t, http.StatusOK)
	for _, tt := range []struct {
		name, site, key string
		header          []string
		shown           bool
	}{
		{"an open key", "", "", nil, false},
		{"an open key, and any token", "", "", []string{"Authorization", "Bearer " + firstToken}, false},
		{"without the token", "", "token " + firstToken, nil, false},
		{"a wrong token", "", "token " + firstToken, []string{"Authorization", "Bearer " + secondToken}, false},
		{"a reader", "", "token " + firstToken + "\ninbox 1h\nreader " + secondToken, []string{"Authorization", "Bearer " + secondToken}, false},
		{"the token", "", "token " + firstToken, []string{"Authorization", "Bearer " + firstToken}, true},
		{"who may manage", "console {\nmanage open\n}", "", nil, true},
		{"a console, and nobody who has signed in", "console", "", nil, false},
	} {
		h := newQueueGateway(t, t.TempDir(), tt.site, "key k {\nurl "+p.NotifyURL()+"\ndedupe 1h\n"+tt.key+"\n}")
		id := postWith(t, h, "/notify/k", alertForm("failure", "down", "db1"), "Authorization", "Bearer "+firstToken).queued(t).ID
		got := askMessage(t, h, http.MethodGet, id, tt.header...)
		want := ""
		if tt.shown {
			want = incidentsOf(t, h)[0].ID
		}
		if a := got.queued(t); got.status != http.StatusOK || a.ID != id || a.IncidentID != want || !strings.Contains(got.body, `"incident":"db1"`) {
			t.Errorf("%s: %d %s", tt.name, got.status, got.body)
		}
	}
}

// The ID of a message is not enough to cancel it where others than its sender know it, or
// where not everybody may send to the key.
func TestCancelNeedsMore(t *testing.T) {
	p := newPager(t, http.StatusBadGateway)
	for _, tt := range []struct {
		name, site, key string
		header          []string
		want            int
	}{
		{"an open key", "", "", nil, 200},
		{"accept with direct", "", "accept direct grafana", nil, 200},
		{"accept without direct", "", "accept grafana", nil, 403},
		{"accept without direct, and who may manage", "console {\nmanage open\n}", "accept grafana", nil, 200},
		{"a reader", "", "inbox 1h\nreader " + secondToken, []string{"Authorization", "Bearer " + secondToken}, 403},
		{"a reader, and a token", "", "inbox 1h\nreader " + secondToken + "\ntoken " + firstToken, []string{"Authorization", "Bearer " + firstToken}, 200},
		{"the reader of a key with a token", "", "inbox 1h\nreader " + secondToken + "\ntoken " + firstToken, []string{"Authorization", "Bearer " + secondToken}, 401},
	} {
		h := newQueueGateway(t, t.TempDir(), tt.site, "key k {\nurl "+p.NotifyURL()+"\n"+tt.key+"\n}")
		path, form := "/notify/k", "body=b"
		if strings.HasPrefix(tt.key, "accept grafana") {
			path, form = "/notify/k/grafana", `{"title": "x", "message": "b", "state": "alerting", "alerts": [], "orgId": 1, "receiver": "r", "version": "1", "status": "firing"}`
		}
		r := httptest.NewRequest(http.MethodPost, path+"?token="+firstToken, strings.NewReader(form))
		r.Header.Set("Accept", typeJSON)
		r.Header.Set("Content-Type", typeForm)
		if path != "/notify/k" {
			r.Header.Set("Content-Type", typeJSON)
		}
		id := do(t, h, r).queued(t).ID
		if s, _ := state(t, h, id); s != "queued" {
			t.Fatalf("%s: the message is %s", tt.name, s)
		}
		got := askMessage(t, h, http.MethodDelete, id, tt.header...)
		s, _ := state(t, h, id)
		if got.status != tt.want || s == "cancelled" != (tt.want == 200) {
			t.Errorf("%s: status %d, and the message is %s: %s", tt.name, got.status, s, got.body)
		}
	}
}

// A page of another origin cannot cancel a message, whatever trusted_origins allows it to
// send.
func TestCancelFromOtherOrigin(t *testing.T) {
	p := newPager(t, http.StatusBadGateway)
	for _, trusted := range []string{"", "trusted_origins https://blog.example", "trusted_origins *"} {
		h := newQueueGateway(t, t.TempDir(), trusted, "key k {\nurl "+p.NotifyURL()+"\n}")
		id := postWith(t, h, "/notify/k", "body=b").queued(t).ID
		got := askMessage(t, h, http.MethodDelete, id, "Origin", "https://blog.example", "Sec-Fetch-Site", "cross-site")
		if s, _ := state(t, h, id); got.status != http.StatusForbidden || s != "queued" {
			t.Errorf("%q: status %d, and the message is %s", trusted, got.status, s)
		}
		if got := askMessage(t, h, http.MethodDelete, id, "Origin", "http://example.com", "Sec-Fetch-Site", "same-origin"); got.status != http.StatusOK {
			t.Errorf("%q: from its own origin: status %d: %s", trusted, got.status, got.body)
		}
	}
}

// An idempotency key is that of the clients with one token. One that another client has
// used, or guessed, once made the real alert a 422.
func TestIdempotencyKeyOfToken(t *testing.T) {
	p := newPager(t, http.StatusOK)
	h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+p.NotifyURL()+"\ntoken "+firstToken+" "+secondToken+"\n}")
	post := func(path, contentType, body string, header ...string) (int, string) {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.Header = http.Header{"Content-Type": {contentType}, "Accept": {typeJSON}, "Idempotency-Key": {"1"}}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		got := do(t, h, r)
		return got.status, got.queued(t).ID
	}
	payload := func(text string) string {
		return `{"title": "x", "message": "` + text + `", "state": "alerting", "alerts": [], "orgId": 1, "receiver": "r", "version": "1", "status": "firing"}`
	}
	for _, tt := range []struct{ path, contentType, guess, alert string }{
		{"/notify/k", typeForm, "body=guess", "body=alert"},
		{"/notify/k/grafana", typeJSON, payload("guess"), payload("alert")},
	} {
		status, guess := post(tt.path, tt.contentType, tt.guess, "Authorization", "Bearer "+firstToken)
		if status != 200 {
			t.Fatalf("%s: status %d", tt.path, status)
		}
		status, alert := post(tt.path, tt.contentType, tt.alert, "X-Gotify-Key", secondToken)
		if status != 200 || alert == guess && alert != "" {
			t.Errorf("%s: the alert of another client: status %d", tt.path, status)
		}
		// The place of the token does not matter.
		before := p.count()
		if status, again := post(tt.path+"?token="+secondToken, tt.contentType, tt.alert); status != 200 || again != alert || p.count() != before {
			t.Errorf("%s: sent again: status %d, the message %s instead of %s", tt.path, status, again, alert)
		}
		if status, _ := post(tt.path, tt.contentType, tt.alert, "Authorization", "Bearer "+firstToken); status != 422 {
			t.Errorf("%s: another request of the same client: status %d", tt.path, status)
		}
	}
	caddyhttptest.Eventually(t, func() bool { return p.count() == 4 })
}

// Each device of a key knows the IDs of the messages that it has got, also when it has been
// removed.
func TestCancelNeedsMoreWithDevices(t *testing.T) {
	s, chat := newPushService(t), newPager(t, http.StatusBadGateway)
	h := newQueueGateway(t, t.TempDir(), "", pushOptions("")+"key k {\nurl "+chat.NotifyURL()+" chat\n}")
	cancel := func(id string, want int) {
		t.Helper()
		if got := askMessage(t, h, http.MethodDelete, id); got.status != want {
			t.Errorf("status %d, want %d: %s", got.status, want, got.body)
		}
	}
	cancel(postWith(t, h, "/notify/k", "body=before").queued(t).ID, http.StatusOK)
	phone := s.subscribe(t, h, "phone", "phone")
	elsewhere := postWith(t, h, "/notify/k", "body=b&tag=chat").queued(t).ID
	cancel(elsewhere, http.StatusForbidden)
	id := postWith(t, h, "/notify/k", "body=b&tag=chat,phone").queued(t).ID
	if got := askJSON(t, h, http.MethodDelete, "/notify/k/devices/"+phone.ID, nil, "Authorization", "Bearer "+phone.Secret); got.status != http.StatusOK {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	cancel(id, http.StatusForbidden)
	cancel(elsewhere, http.StatusOK)
}
