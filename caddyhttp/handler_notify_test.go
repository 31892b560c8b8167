package caddyhttp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestPlaceholdersOfClients checks that placeholders in a client's request are
// not replaced.
func TestPlaceholdersOfClients(t *testing.T) {
	t.Setenv("NOTIFY_TEST_SECRET", "secretsecret")
	s := gatewaytest.NewStation(t)
	h := newGateway(t, open+"key k {\nurl "+s.NotifyURL("/k")+"\n}", "")
	const p = "{env.NOTIFY_TEST_SECRET}"
	for _, path := range []string{"/notify", "/notify/k"} {
		got := post(t, h, path, typeJSON, `{"body":"`+p+`","title":"`+p+`","urls":"`+s.NotifyURL("/"+p)+`"}`)
		if got.status != 200 {
			t.Fatalf("%s: status %d: %s", path, got.status, got.body)
		}
		a := s.One(t)
		if a.Message != p || a.Title != p || strings.Contains(a.Path, "secret") {
			t.Errorf("%s: %+v", path, a)
		}
	}
}

// TestServeAfterCleanup checks that a request can outlive its configuration.
func TestServeAfterCleanup(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, open+"key k {\nurl "+s.NotifyURL("/k")+"\n}", "")
	for range 2 { // a second time does nothing
		if err := h.Cleanup(); err != nil {
			t.Fatal(err)
		}
	}
	for path, arrives := range map[string]string{"/notify/k": "k", "/notify": "mine"} {
		if got := post(t, h, path, typeForm, "body=x&urls="+s.NotifyURL("/mine")); got.status != 200 {
			t.Errorf("%s: status %d: %s", path, got.status, got.body)
		}
		if paths := s.Paths(); paths != arrives {
			t.Errorf("%s: messages at %q", path, paths)
		}
	}
}

// failingBody is a body that returns an error while it is read.
type failingBody struct{ err error }

func (b failingBody) Read([]byte) (int, error) { return 0, b.err }
func (b failingBody) Close() error             { return nil }

// TestLimitUpstream checks that the limit of a request_body directive before
// this handler has its own error.
func TestLimitUpstream(t *testing.T) {
	h := newGateway(t, "", "")
	limit := &http.MaxBytesError{Limit: 1}
	for _, err := range []error{limit, caddyhttp.Error(http.StatusRequestEntityTooLarge, limit)} {
		for _, contentType := range []string{typeJSON, typeForm, "multipart/form-data; boundary=x"} {
			r := httptest.NewRequest(http.MethodPost, "/notify", failingBody{err})
			r.ContentLength = 10
			r.Header.Set("Content-Type", contentType)
			if got := do(t, h, r); got.status != 413 {
				t.Errorf("%s, %T: status %d: %s", contentType, err, got.status, got.body)
			}
		}
	}
}
