package httpapi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/internal/loglimit"
)

// TestRefusalReasons checks that every status has one of the fixed reasons, so
// that the metric has no others.
func TestRefusalReasons(t *testing.T) {
	for status := 400; status < 600; status++ {
		if reason := RefusalReason(status, nil); !slices.Contains(metrics.AllRefusalReasons, reason) {
			t.Errorf("%d: %s", status, reason)
		}
	}
	for _, tt := range []struct {
		status int
		err    error
		want   string
	}{
		{400, nil, metrics.RefusalBadRequest},
		{403, errStatelessOff, metrics.RefusalStateless},
		{403, api.ErrCrossOrigin, metrics.RefusalOrigin},
		{403, api.Errorf(http.StatusForbidden, "x"), metrics.RefusalForbidden},
		{404, nil, metrics.RefusalUnknownKey},
		{422, nil, metrics.RefusalBadRequest},
		{500, nil, metrics.RefusalError},
		{507, nil, metrics.RefusalStorage},
	} {
		if got := RefusalReason(tt.status, tt.err); got != tt.want {
			t.Errorf("%d: %s, want %s", tt.status, got, tt.want)
		}
	}
}

// TestFaultLog checks that a database that is down does not fill the log: requests that fail for
// the gateway's own reasons have a bounded number of lines, and are counted.
func TestFaultLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.ErrorLevel)
		h := &Base{Options: Options{Log: zap.New(core)}}
		for range 1000 {
			e := api.Errorf(http.StatusServiceUnavailable, "the queue cannot be written")
			e.Fault = errors.New("connection refused")
			if got := h.ErrorResponse(httptest.NewRequest(http.MethodGet, "/", nil), e).Status; got != http.StatusServiceUnavailable {
				t.Fatalf("status %d", got)
			}
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		all := logs.All()
		if n := len(all); n > loglimit.MaxLines+2 {
			t.Errorf("%d lines", n)
		}
		lines := int64(0)
		for _, e := range all {
			if n, ok := e.ContextMap()["lines"].(int64); ok {
				lines += n
			} else {
				lines++
			}
		}
		if lines != 1000 {
			t.Errorf("the log tells of %d requests, want 1000", lines)
		}
	})
}
