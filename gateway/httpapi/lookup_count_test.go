package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// countedRequest marks the context of a request whose lookups are counted.
type countedRequest struct{}

// TestKeyIsFoundOnce checks that a request looks its key up once, for all its parts. A saved key
// can change between two lookups, and each may read the storage.
func TestKeyIsFoundOnce(t *testing.T) {
	t.Parallel()
	s := newSavedAgain(t)
	s.save()
	token := strings.TrimSpace(s.Post("/cfg/ops/token", "", "").Body)
	if _, rest, ok := strings.Cut(token, `"token":"`); ok {
		token, _, _ = strings.Cut(rest, `"`)
	}
	var finds atomic.Int64
	find := s.Resolved.Saved.Find
	s.Resolved.Saved.Find = func(ctx context.Context, name string) (*site.Key, error) {
		if ctx.Value(countedRequest{}) != nil {
			finds.Add(1)
		}
		return find(ctx, name)
	}
	for _, tt := range []struct {
		method, target, body string
		header               string // name: value
		status               int
	}{
		{"POST", "/notify/ops", "body=hello", "", 200},
		{"POST", "/notify/ops", "body=hello", "Idempotency-Key: 1", 200},
		{"POST", "/notify/ops", "body=hello", "Authorization: Bearer wrong", 401},
		{"POST", "/notify/ops?preview", "body=hello", "Accept: text/html", 200},
		{"POST", "/notify/ops?beat=backup", "", "", 404},
		{"POST", "/notify", "body=hello", "X-Apprise-Config-ID: ops", 200},
		{"GET", "/notify/ops", "", "Accept: text/html", 200},
		{"GET", "/notify/ops?device", "", "Accept: text/html", 200},
		{"GET", "/notify/ops/messages", "", "", 200},
		{"GET", "/notify/ops/ntfy/topic/json?poll=1", "", "", 200},
		{"POST", "/notify/ops/ntfy/topic", "hello", "", 200},
		{"POST", "/notify/ops/ntfy/topic", "hello", "Idempotency-Key: 2", 200},
		{"POST", "/notify/ops/ntfy/topic", "hello", "Authorization: Bearer wrong", 401},
		{
			"POST", "/notify/ops/grafana",
			`{"alerts":[{"status":"firing","labels":{"alertname":"a"}}],"status":"firing","title":"t","message":"m","version":"1","orgId":1}`,
			"Content-Type: application/json", 200,
		},
		{"GET", "/json/urls/ops", "", "", 200},
		{"GET", "/notify/console/keys/ops", "", "Accept: text/html", 200},
	} {
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), countedRequest{}, true), tt.method, tt.target,
			strings.NewReader(tt.body))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", gatewaytest.TypeForm)
		if name, value, ok := strings.Cut(tt.header, ": "); ok {
			r.Header.Set(name, value)
		}
		finds.Store(0)
		got := s.Do(r)
		if n := finds.Load(); got.Status != tt.status || n != 1 {
			t.Errorf("%s %s with %q: %d lookups and %d %s; want 1 and %d", tt.method, tt.target, tt.header, n, got.Status, got.Body, tt.status)
		}
	}
	// A request that names no key looks for none.
	r := httptest.NewRequestWithContext(context.WithValue(t.Context(), countedRequest{}, true), http.MethodPost, "/notify",
		strings.NewReader("body=hello&urls="+s.station.NotifyURL("/y")))
	r.Header.Set("Content-Type", gatewaytest.TypeForm)
	finds.Store(0)
	if got := s.Do(r); got.Status != http.StatusOK || finds.Load() != 0 {
		t.Errorf("without a key: %d lookups and %d %s", finds.Load(), got.Status, got.Body)
	}
}
