package httpapi_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
)

// TestStatus checks the answer for load balancers, and that asking often does not write often.
func TestStatus(t *testing.T) {
	t.Parallel()
	status := func(g *gatewaytest.Gateway, method, accept string) gatewaytest.Reply {
		r := httptest.NewRequest(method, "/notify/status", nil)
		r.Header.Set("Accept", accept)
		return g.Do(r)
	}
	g := gatewaytest.New(t, gatewaytest.Options{})
	if got := status(g, "GET", ""); got.Status != 200 || got.Body != "OK\n" {
		t.Errorf("without a queue: %+v", got)
	}
	if got := status(g, "POST", ""); got.Status != 405 {
		t.Errorf("POST: %+v", got)
	}
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, gatewaytest.Options{Queue: &outbox.Settings{}})
		if got := status(g, "GET", gatewaytest.TypeJSON); got.Status != 200 || got.Body != `{"status":"OK"}`+"\n" {
			t.Errorf("with a queue: %+v", got)
		}
		q := g.Rooms()
		if err := q.Outbox.Queue.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer func() { // the queue cannot be closed again
			g.Gateway.Rooms = nil
		}()
		if got := status(g, "GET", ""); got.Status != 200 {
			t.Errorf("the result is not used again: %+v", got)
		}
		time.Sleep(time.Minute)
		got := status(g, "GET", gatewaytest.TypeJSON)
		if got.Status != 503 || got.Header.Get("Retry-After") == "" ||
			!strings.Contains(got.Body, `"status":"unavailable","error":"the queue cannot be written`) {
			t.Errorf("with a broken queue: %+v", got)
		}
	})
}
