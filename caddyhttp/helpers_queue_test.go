package caddyhttp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/message"
)

// newQueueGateway is newGateway with a queue in a folder, and with the app
// started.
func newQueueGateway(t *testing.T, dir, block, global string) *Handler {
	t.Helper()
	h := newGateway(t, block, "queue {\npath "+dir+"\nwait 5s\n}\n"+global)
	h.app.gateway.Conf.QueueSettings.NoSync = true
	startApp(t, h)
	return h
}

func startApp(t *testing.T, h *Handler) {
	t.Helper()
	if err := h.app.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopApp(t, h) })
}

// stopApp stops the app as Caddy does. It can be called again.
func stopApp(t *testing.T, h *Handler) {
	t.Helper()
	if h.app.gateway.Rooms == nil {
		return
	}
	if err := h.app.Stop(); err != nil {
		t.Error(err)
	}
	if err := h.app.Cleanup(); err != nil {
		t.Error(err)
	}
	h.app.gateway.Rooms = nil
}

// inBubble runs f in a bubble of [gatewaytest.InBubble], in which gateways share nothing with the
// gateways of other tests, because the bubble cannot use channels from outside.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	ownShared(t)
	gatewaytest.InBubble(t, f)
}

// queued decodes the answer to a message.
func (r reply) queued(t *testing.T) gatewaytest.Answer {
	t.Helper()
	return gatewaytest.Reply{Body: r.body}.JSON(t)
}

// postWith posts a form with headers.
func postWith(t *testing.T, h *Handler, target, form string, header ...string) reply {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(form))
	r.Header.Set("Content-Type", typeForm)
	r.Header.Set("Accept", typeJSON)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return do(t, h, r)
}

func getMessage(t *testing.T, h *Handler, method, id, accept string) reply {
	t.Helper()
	r := httptest.NewRequest(method, "/notify/messages/"+id, nil)
	r.Header.Set("Accept", accept)
	return do(t, h, r)
}

// state returns the state of a message and its first result.
func state(t *testing.T, h *Handler, id string) (string, message.QueuedResult) {
	t.Helper()
	got := getMessage(t, h, http.MethodGet, id, typeJSON)
	if got.status != http.StatusOK {
		t.Fatalf("the message %s: status %d %s", id, got.status, got.body)
	}
	a := got.queued(t)
	return a.State, a.Results[0]
}
