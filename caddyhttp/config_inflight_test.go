package caddyhttp

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

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
