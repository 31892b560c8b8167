package caddyhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// stalled is a destination that does not answer before release.
type stalled struct {
	*httptest.Server
	arrived chan struct{}
	release func()
}

func newStalled(t *testing.T) *stalled {
	held := make(chan struct{})
	j := &stalled{arrived: make(chan struct{}, 100), release: sync.OnceFunc(func() { close(held) })}
	j.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		j.arrived <- struct{}{}
		<-held
	}))
	t.Cleanup(j.Close)
	t.Cleanup(j.release)
	return j
}

func (j *stalled) NotifyURL() string { return "json://" + strings.TrimPrefix(j.URL, "http://") }

// unread fails the test when it is read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, errors.New("read")
}

// TestOverload checks that messages above the limit are refused in every format
// before they are read. Messages of all sites count; the limit is that of the
// site.
func TestOverload(t *testing.T) {
	j := newStalled(t)
	h := newGateway(t, "max_in_flight 2\nkey k {\nurl "+j.NotifyURL()+"\n}", "")
	wider := newGateway(t, "", "max_in_flight 3\nkey k {\nurl "+j.NotifyURL()+"\n}")
	replies := make(chan int)
	begin := func(h *Handler) {
		go func() { replies <- post(t, h, "/notify/k", typeForm, "body=x").status }()
		<-j.arrived
	}
	begin(h)
	begin(h)
	for accept, body := range map[string]string{
		typeJSON:     `{"error":"the gateway has too many messages`,
		"text/plain": "[ERROR] the gateway has too many messages",
		"text/html":  `<div class="log_msg">the gateway has too many messages`,
	} {
		for _, path := range []string{"/notify", "/notify/k"} {
			r := httptest.NewRequest(http.MethodPost, path, unread{t})
			r.Header.Set("Content-Type", typeForm)
			r.Header.Set("Accept", accept)
			got := do(t, h, r)
			if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "1" || !strings.Contains(got.body, body) || !strings.HasPrefix(got.header.Get("Content-Type"), accept) {
				t.Errorf("%s as %s: status %d, %v\n%s", path, accept, got.status, got.header, got.body)
			}
		}
	}
	begin(wider)
	if got := post(t, wider, "/notify/k", typeForm, "body=x"); got.status != http.StatusServiceUnavailable {
		t.Errorf("a site with the bound of the app: status %d", got.status)
	}
	j.release()
	for range 3 {
		if status := <-replies; status != http.StatusOK {
			t.Errorf("a message under way got status %d", status)
		}
	}
	// Refused messages do not count.
	for range 5 {
		if got := post(t, h, "/notify/none", typeForm, "body=x"); got.status != http.StatusNotFound {
			t.Errorf("an unknown key: status %d", got.status)
		}
	}
	if got := post(t, h, "/notify/k", typeForm, "body=x"); got.status != http.StatusOK {
		t.Errorf("after the load: status %d: %s", got.status, got.body)
	}
	if n := h.shared.InFlight.Load(); n != 0 {
		t.Errorf("%d messages under way, want none", n)
	}
}

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

// TestClientAddress checks that a client is an IPv4 address or a network of
// IPv6.
func TestClientAddress(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.7":           "192.0.2.7",
		"::ffff:192.0.2.7":    "192.0.2.7",
		"2001:db8:1:2:3::4":   "2001:db8:1:2::",
		"2001:db8:1:2::9":     "2001:db8:1:2::",
		"fe80::1%eth0":        "fe80::",
		"":                    "invalid IP",
		"@":                   "invalid IP",
		"2001:db8:1:3:3::4%1": "2001:db8:1:3::",
	} {
		ctx := context.WithValue(t.Context(), caddyhttp.VarsCtxKey, map[string]any{caddyhttp.ClientIPVarKey: text})
		if got := httpapi.ClientAddress(httpapi.WithEnvironment(httptest.NewRequestWithContext(ctx, http.MethodPost, "/", nil), &requestEnvironment)).String(); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
