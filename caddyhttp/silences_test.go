package caddyhttp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// jsonItems returns the items of a JSON array.
func jsonItems(t *testing.T, text string) (items []string) {
	t.Helper()
	var all []json.RawMessage
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	for _, x := range all {
		items = append(items, string(x))
	}
	return items
}

// silenceCalls returns requests about silences, with all answers that are described.
func silenceCalls(t *testing.T, s *gatewaytest.Station) map[string][]describedCall {
	t.Helper()
	key := managed + "key k {\nurl " + s.NotifyURL("/a") + "\n}"
	h, full := newQueueGateway(t, t.TempDir(), key, ""), newQueueGateway(t, t.TempDir(), key, "")
	for range rules.MaxSilences {
		silence(t, full, "for=1h&title=x")
	}
	one, other := "/notify/k/silences/"+silence(t, h, "for=1h&title=x&incident=i&tag=all&reason=r&who=w"), "/notify/k/silences/"+silence(t, h, "for=1h&title=x")
	notOpen := newGateway(t, key, "queue {\npath "+t.TempDir()+"\n}")
	notOpen.app.ready()
	nobody := newGateway(t, "key k {\nurl "+s.NotifyURL("/a")+"\n}", "")
	calls := map[string][]describedCall{}
	for op, target := range map[string]string{"GET " + httpapi.RouteSilences: "/notify/k/silences", "GET " + httpapi.RouteSilence: one, "DELETE " + httpapi.RouteSilence: other, "POST " + httpapi.RouteSilences: "/notify/k/silences"} {
		for _, c := range []describedCall{{h: h, target: target}, {h: nobody, target: target}, {h: h, target: strings.Replace(target, "/k/", "/none/", 1)}, {h: notOpen, target: target}} {
			c.contentType, c.body = typeForm, "for=1h&title=y"
			calls[op] = append(calls[op], c)
		}
	}
	op := "POST " + httpapi.RouteSilences
	calls[op] = append(calls[op],
		describedCall{h: h, target: "/notify/k/silences", contentType: typeForm, body: "for=1h"},
		describedCall{h: full, target: "/notify/k/silences", contentType: typeForm, body: "for=1h&title=y"},
		describedCall{h: h, target: "/notify/k/silences", contentType: typeForm, body: strings.Repeat("x", httpapi.MaxSilenceRequest+1)},
		describedCall{h: h, target: "/notify/k/silences", contentType: "text/plain", body: "x"})
	return calls
}
