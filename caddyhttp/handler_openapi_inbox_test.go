package caddyhttp

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
)

// inboxCalls returns requests that get each answer about inboxes.
func inboxCalls(t *testing.T) map[string][]describedCall {
	t.Helper()
	const key = "key k {\ninbox 7d\nreader " + testReader + "\n}"
	h, full := newQueueGateway(t, t.TempDir(), managed+key, ""), newQueueGateway(t, t.TempDir(), managed+key, "")
	guarded := newQueueGateway(t, t.TempDir(), key, "")
	notOpen := newGateway(t, managed+key, "queue {\npath "+t.TempDir()+"\n}")
	notOpen.app.ready()
	post(t, h, "/notify/k", typeJSON, `{"body":"x","title":"t","incident":"i","attach":{"base64":"aGVsbG8=","filename":"a.txt"}}`)
	h.api.Streams.Stop() // so that a stream ends
	for range inbox.MaxListeners {
		if _, _, err := full.app.gateway.Rooms.Inboxes.Listen(t.Context(), "site "+full.api.Site()+"\x00k"); err != nil {
			t.Fatal(err)
		}
	}
	calls := map[string][]describedCall{}
	for op, target := range map[string]string{"GET " + httpapi.RouteInbox: "/notify/k/messages", "GET " + httpapi.RouteInboxStream: "/notify/k/stream", "GET " + httpapi.RouteNtfyInbox: "/notify/k/ntfy/x/json"} {
		query := "?since=all"
		calls[op] = []describedCall{
			{h: h, target: target + query},
			{h: guarded, target: target + query},
			{h: h, target: strings.Replace(target, "/k/", "/none/", 1)},
			{h: h, target: target + "?since=x"},
			{h: notOpen, target: target},
		}
		if op != "GET "+httpapi.RouteInbox {
			calls[op] = append(calls[op], describedCall{h: full, target: target})
		}
	}
	op := "GET " + httpapi.RouteNtfyInbox
	socket := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Origin": {"https://evil.example"}}
	calls[op] = append(calls[op],
		describedCall{h: h, target: "/notify/k/ntfy/x/auth"}, describedCall{h: h, target: "/notify/k/ntfy/x/sse?poll=1"}, describedCall{h: h, target: "/notify/k/ntfy/x/ws", header: socket})
	return calls
}
