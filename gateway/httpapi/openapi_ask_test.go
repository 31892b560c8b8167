package httpapi_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/ask"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// askCalls adds requests about questions to calls, by operation.
func askCalls(t *testing.T, calls map[string][]describedCall, notOpen *gatewaytest.Gateway) {
	t.Helper()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, gatewaytest.Options{
		Global: site.Options{Keys: []site.KeyOptions{
			gatewaytest.Key("ops", s.NotifyURL("/a")), gatewaytest.Key("silent", s.NotifyURL("/b")),
			gatewaytest.Key("full", s.NotifyURL("/c")),
		}, PublicURL: gatewaytest.PublicURL},
		Site: site.Options{Managers: gatewaytest.Everybody()}, Queue: &outbox.Settings{},
	})
	const question = "title=Deploy&body=x&ask=yes&ask=no"
	asks := func() (link, id string) {
		id = g.PostForm("/notify/ops", question).JSON(t).ID
		link = strings.TrimPrefix(s.Arrives(t, "Deploy").AnswerURL, gatewaytest.PublicURL)
		s.Take()
		return link, id
	}
	open, _ := asks()
	decided, id := asks() // a stream of an open one would not end
	g.PostForm(decided, "answer=yes")
	g.AddSilence("silent", "for=1h&tag=all")
	// Its messages arrive while others are awaited, so they have a title of their own.
	const crowd = "title=Crowd&body=x&ask=yes&ask=no"
	accepted := 0
	for range 2 * ask.Kind.Most() {
		r := g.PostForm("/notify/full", crowd)
		if r.Status == http.StatusTooManyRequests {
			break
		}
		if r.Status == http.StatusAccepted {
			accepted++
		} else {
			t.Logf("status %d: %s", r.Status, r.Body) // a busy machine
		}
	}
	if accepted != ask.Kind.Most() {
		t.Errorf("a key has %d open questions", accepted)
	}
	none := httpapi.RouteAsk[:len("/notify/asks/")] + strings.Repeat("a", 52)
	form := func(g *gatewaytest.Gateway, link, body string) describedCall {
		return describedCall{g: g, target: link, contentType: gatewaytest.TypeForm, body: body}
	}
	calls["GET "+httpapi.RouteAsk] = []describedCall{{g: g, target: open}, {g: g, target: none}, {g: notOpen, target: open}}
	foreign, fresh := form(g, open, "answer=yes"), form(g, "", "answer=yes")
	foreign.header = http.Header{"Sec-Fetch-Site": {"cross-site"}}
	calls["POST "+httpapi.RouteAsk] = []describedCall{
		form(g, open, "answer=maybe"), form(g, open, "answer="+strings.Repeat("x", httpapi.MaxAnswerForm)), foreign,
		form(g, none, "answer=yes"), form(g, decided, "answer=yes"), form(notOpen, open, "answer=yes"),
	}
	fresh.target, _ = asks()
	page, n := fresh, 0
	page.target, _ = asks()
	page.before = func() (after func()) { // the queue is away until a browser comes
		rooms := g.Gateway.Rooms
		if n++; n < 3 {
			g.Gateway.Rooms = nil
		}
		return func() { g.Gateway.Rooms = rooms }
	}
	calls["POST "+httpapi.RouteAsk] = append(calls["POST "+httpapi.RouteAsk], fresh, page)
	calls["POST /notify/{KEY}"] = append(calls["POST /notify/{KEY}"], form(g, "/notify/ops", question), form(g, "/notify/silent", question),
		form(g, "/notify/full", crowd), form(g, "/notify/full", "body=x&send_at=1h"))
	calls["GET /notify/messages/{ID}"] = append(calls["GET /notify/messages/{ID}"], describedCall{g: g, target: "/notify/messages/" + id},
		describedCall{g: g, target: "/notify/messages/" + id + "?wait=x"})
	_, waited := asks()
	calls["GET /notify/messages/{ID}"] = append(calls["GET /notify/messages/{ID}"],
		describedCall{g: g, target: "/notify/messages/" + waited + "?wait=9", before: func() (after func()) {
			var leave []func()
			for {
				l, err := g.Process.Dispatcher.Waiting.Enter("a key of many", netip.MustParseAddr("192.0.2.1"))
				if err != nil {
					break
				}
				leave = append(leave, l)
			}
			return func() {
				for _, l := range leave {
					l()
				}
			}
		}})
}
