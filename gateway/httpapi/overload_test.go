package httpapi_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// stalledDestination is a destination that does not answer before release.
type stalledDestination struct {
	*httptest.Server
	arrived chan struct{}
	release func()
}

func newStalledDestination(t *testing.T) *stalledDestination {
	held := make(chan struct{})
	j := &stalledDestination{arrived: make(chan struct{}, 100), release: sync.OnceFunc(func() { close(held) })}
	j.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		j.arrived <- struct{}{}
		<-held
	}))
	t.Cleanup(j.Close)
	t.Cleanup(j.release)
	return j
}

func (j *stalledDestination) NotifyURL() string {
	return "json://" + strings.TrimPrefix(j.URL, "http://")
}

// overloadBody fails the test when it is read.
type overloadBody struct{ t *testing.T }

func (u overloadBody) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, errors.New("read")
}

// TestOverload checks that messages above the limit are refused in every format before they are
// read. Messages of all sites count against the limit of the site.
func TestOverload(t *testing.T) {
	t.Parallel()
	j := newStalledDestination(t)
	keys, process := []site.KeyOptions{gatewaytest.Key("k", j.NotifyURL())}, gatewaytest.NewProcess(t)
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: keys, MaxInFlight: 2}, Process: process})
	wider := gatewaytest.New(t, gatewaytest.Options{Global: site.Options{Keys: keys, MaxInFlight: 3}, Process: process})
	replies := make(chan int)
	begin := func(g *gatewaytest.Gateway) {
		go func() { replies <- g.Post("/notify/k", gatewaytest.TypeForm, "body=x").Status }()
		<-j.arrived
	}
	begin(g)
	begin(g)
	for accept, body := range map[string]string{
		gatewaytest.TypeJSON: `{"error":"the gateway has too many messages`,
		"text/plain":         "[ERROR] the gateway has too many messages",
		"text/html":          `<div class="log_msg">the gateway has too many messages`,
	} {
		for _, path := range []string{"/notify", "/notify/k"} {
			r := httptest.NewRequest(http.MethodPost, path, overloadBody{t})
			r.Header.Set("Content-Type", gatewaytest.TypeForm)
			r.Header.Set("Accept", accept)
			got := g.Do(r)
			if got.Status != http.StatusServiceUnavailable || got.Header.Get("Retry-After") != "1" || !strings.Contains(got.Body, body) ||
				!strings.HasPrefix(got.Header.Get("Content-Type"), accept) {
				t.Errorf("%s as %s: status %d, %v\n%s", path, accept, got.Status, got.Header, got.Body)
			}
		}
	}
	begin(wider)
	if got := wider.Post("/notify/k", gatewaytest.TypeForm, "body=x"); got.Status != http.StatusServiceUnavailable {
		t.Errorf("a site with the bound of the app: status %d", got.Status)
	}
	j.release()
	for range 3 {
		if status := <-replies; status != http.StatusOK {
			t.Errorf("a message under way got status %d", status)
		}
	}
	// Refused messages do not count.
	for range 5 {
		if got := g.Post("/notify/none", gatewaytest.TypeForm, "body=x"); got.Status != http.StatusNotFound {
			t.Errorf("an unknown key: status %d", got.Status)
		}
	}
	if got := g.Post("/notify/k", gatewaytest.TypeForm, "body=x"); got.Status != http.StatusOK {
		t.Errorf("after the load: status %d: %s", got.Status, got.Body)
	}
	if n := g.Process.InFlight.Load(); n != 0 {
		t.Errorf("%d messages under way, want none", n)
	}
}
