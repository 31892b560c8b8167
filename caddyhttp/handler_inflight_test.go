package caddyhttp

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// jam is a destination that takes no message to its end before it is told to.
type jam struct {
	*httptest.Server
	arrived chan struct{}
	release func()
}

func newJam(t *testing.T) *jam {
	held := make(chan struct{})
	j := &jam{arrived: make(chan struct{}, 100), release: sync.OnceFunc(func() { close(held) })}
	j.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		j.arrived <- struct{}{}
		<-held
	}))
	t.Cleanup(j.Close)
	t.Cleanup(j.release)
	return j
}

func (j *jam) url() string { return "json://" + strings.TrimPrefix(j.URL, "http://") }

// unread fails the test when somebody reads it.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, errors.New("read")
}

// Above the bound, messages are turned away unread, in every format, until
// one of those under way is done. The count is of the whole gateway; the
// bound is of the site.
func TestOverload(t *testing.T) {
	j := newJam(t)
	h := newGateway(t, "max_in_flight 2\nkey k {\nurl "+j.url()+"\n}", "")
	wider := newGateway(t, "", "max_in_flight 3\nkey k {\nurl "+j.url()+"\n}")
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
		for _, path := range []string{"/notify", "/notify/k", "/notify/none"} {
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
	// Refused messages leave as well: more of them than the bound do no harm.
	for range 5 {
		if got := post(t, h, "/notify/none", typeForm, "body=x"); got.status != http.StatusNotFound {
			t.Errorf("an unknown key: status %d", got.status)
		}
	}
	if got := post(t, h, "/notify/k", typeForm, "body=x"); got.status != http.StatusOK {
		t.Errorf("after the load: status %d: %s", got.status, got.body)
	}
	if n := h.shared.inFlight.n.Load(); n != 0 {
		t.Errorf("%d messages under way, want none", n)
	}
}

func TestOverloadSettings(t *testing.T) {
	for _, tt := range []struct {
		block, global string
		want          int
	}{{"", "", defaultMaxInFlight}, {"", "max_in_flight 7", 7}, {"max_in_flight 8", "max_in_flight 7", 8}} {
		if got := newGateway(t, tt.block, tt.global).resolved.maxInFlight; got != tt.want {
			t.Errorf("%q below %q: %d, want %d", tt.block, tt.global, got, tt.want)
		}
	}
	if _, err := (&Settings{MaxInFlight: -1}).over(&resolved{}, nil, nil); err == nil {
		t.Error("-1 is accepted")
	}
}
