package notifier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/redact"
)

// TestRedirects checks that a redirect keeps the method and the body, drops
// credentials for another host and never leads from TLS to plain text.
func TestRedirects(t *testing.T) {
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, fmt.Sprint(r.Method, " ", len(body) > 0, " ", r.Header.Get("X-Key")))
	}))
	defer other.Close()
	for code, want := range map[int]string{301: "POST true ", 302: "POST true ", 303: "GET false ", 307: "POST true ", 308: "POST true "} {
		got = nil
		base := target(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL+"/elsewhere", code) })
		s := newTestSender(t)
		r := send(t, s, hello, Options{}, base+"/tok?+X-Key=abc").Results[0]
		if r.Status != Delivered || len(got) != 1 || got[0] != want {
			t.Errorf("%d: %s, %q, %v", code, r.Status, got, r.Err)
		}
		got = nil
		if r := send(t, s, hello, Options{}, base+"/tok?redirect=no").Results[0]; r.Status != Failed || len(got) > 0 {
			t.Errorf("%d with redirect=no: %s, %q", code, r.Status, got)
		}
	}
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, 302) }))
	defer secure.Close()
	s := newTestSender(t)
	u := "probes://" + strings.TrimPrefix(secure.URL, "https://") + "/tok"
	if r := send(t, s, hello, Options{}, u+"?verify=no").Results[0]; r.Err == nil ||
		!strings.Contains(r.Err.Error(), "in the clear") || len(got) > 0 {
		t.Error(r.Err, got)
	}
	if r := send(t, s, hello, Options{}, u).Results[0]; r.Err == nil || !strings.Contains(r.Err.Error(), "certificate") {
		t.Error("a self-signed certificate:", r.Err)
	}
}

// TestPolicy checks that a client's URL reaches no private address, even over a
// connection opened for the operator's URL.
func TestPolicy(t *testing.T) {
	var hits atomic.Int32
	base := target(t, func(w http.ResponseWriter, r *http.Request) { hits.Add(1) })
	s := newTestSender(t)
	if !send(t, s, hello, Options{}, base+"/tok").OK() {
		t.Fatal("the operator's URL")
	}
	policy, err := egress.NewPolicy(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Parse(base+"/tok", policy)
	if err != nil {
		t.Fatal(err)
	}
	r := s.Send(context.Background(), hello, []Target{{Destination: d}}, Options{}).Results[0]
	if _, ok := errors.AsType[*egress.BlockedError](r.Err); !ok || hits.Load() != 1 {
		t.Errorf("%v, %d hits", r.Err, hits.Load())
	}
}

// TestExcerptHidesBeforeItCuts checks that the excerpt of an answer shows no
// part of a secret at its cut.
func TestExcerptHidesBeforeItCuts(t *testing.T) {
	const secret = "0123456789secret9876543210"
	masker := redact.NewMasker([]string{secret})
	d := new(Destination)
	d.masks.Store(masker)
	c := &Client{target: d}
	for n := range 330 {
		if got := c.Excerpt(strings.Repeat("x ", n/2) + secret); strings.Contains(got, secret[:5]) {
			t.Fatalf("after %d characters: %q", n, got)
		}
	}
	// Of an answer of more than 64 KiB only the beginning is searched.
	for n := range len(secret) + 1 {
		space := strings.Repeat(" ", maxExcerptBytes-n)
		if got := c.Excerpt(space + secret + space); n > 0 && got != redact.Mask {
			t.Fatalf("%d characters before the end of the searched part: %q", n, got)
		}
	}
}
