package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestWaitersAreLimited checks, for each way of waiting, that a client is refused if its address
// has its share of waiting clients, learns when to try again, and gets answers that need no waiting
// at once.
func TestWaitersAreLimited(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	k := gatewaytest.Key("k", p.NotifyURL())
	k.Inbox, k.Readers, k.Tokens = time.Hour, []string{"reader-of-the-inbox"}, []string{"token-of-the-agent"}
	g := gatewaytest.New(t, gatewaytest.Options{
		Global: site.Options{Keys: []site.KeyOptions{k}, PublicURL: gatewaytest.PublicURL, Egress: gatewaytest.Loopback()},
		Site:   site.Options{MCP: new(true)}, Queue: &outbox.Settings{Wait: 10 * time.Millisecond},
	})
	do := func(method, target, body string, header ...string) gatewaytest.Reply {
		header = append([]string{"Content-Type", gatewaytest.TypeJSON, "Authorization", "Bearer token-of-the-agent"}, header...)
		return g.Do(gatewaytest.NewRequest(method, target, body, header...))
	}
	id := do(http.MethodPost, "/notify/k", `{"body":"b","ask":{"options":["yes","no"]}}`).JSON(t).ID
	message := "/notify/messages/" + id
	from := netip.MustParseAddr("192.0.2.1") // the address of the tests' requests
	for i := range site.MaxWaitingPerClient {
		if _, err := g.Process.Dispatcher.Waiting.Enter("a key of many", from); err != nil {
			t.Fatal(i, err)
		}
	}
	reader, socket := []string{"Authorization", "Bearer reader-of-the-inbox"}, []string{
		"Authorization", "Bearer reader-of-the-inbox",
		"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==",
	}
	for name, got := range map[string]gatewaytest.Reply{
		"wait":                      do(http.MethodGet, message+"?wait=60", ""),
		"a wait beyond all numbers": do(http.MethodGet, message+"?wait=99999999999999999999", ""),
		"a wait that overflows":     do(http.MethodGet, message+"?wait=1000000000000000000", ""),
		"Prefer":                    do(http.MethodGet, message, "", "Prefer", "wait=60"),
		"the stream of a question":  do(http.MethodGet, message, "", "Accept", "text/event-stream"),
		"lines":                     do(http.MethodGet, "/notify/k/stream", "", reader...),
		"events":                    do(http.MethodGet, "/notify/k/stream", "", append(reader, "Accept", "text/event-stream")...),
		"ntfy's lines":              do(http.MethodGet, "/notify/k/ntfy/x/json", "", reader...),
		"ntfy's events":             do(http.MethodGet, "/notify/k/ntfy/x/sse", "", reader...),
		"ntfy's texts":              do(http.MethodGet, "/notify/k/ntfy/x/raw", "", reader...),
		"ntfy's WebSocket":          do(http.MethodGet, "/notify/k/ntfy/x/ws", "", socket...),
	} {
		if got.Status != http.StatusTooManyRequests || got.Header.Get("Retry-After") == "" {
			t.Errorf("%s: status %d, Retry-After %q: %s", name, got.Status, got.Header.Get("Retry-After"), got.Body)
		}
	}
	call := func(tool, arguments string) gatewaytest.Reply {
		return do(http.MethodPost, "/notify/k/mcp",
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":`+arguments+`}}`)
	}
	if got := call("answer", `{"id":"`+id+`","wait":1000000000000000000}`); !strings.Contains(got.Body, "status 429") {
		t.Errorf("a tool that waits: %d %s", got.Status, got.Body)
	}
	for name, got := range map[string]gatewaytest.Reply{
		"the state":                do(http.MethodGet, message, ""),
		"ntfy's poll":              do(http.MethodGet, "/notify/k/ntfy/x/json?poll=1", "", reader...),
		"the tool without waiting": call("answer", `{"id":"`+id+`"}`),
		"a question of an agent":   call("ask", `{"question":"Deploy?","options":["yes","no"]}`), // it is asked, and the agent knows its ID
	} {
		if got.Status != http.StatusOK || strings.Contains(got.Body, "isError") {
			t.Errorf("%s: %d %s", name, got.Status, got.Body)
		}
	}
	// The results of a message are a wish.
	release := p.Hold()
	defer release()
	began := time.Now()
	if got := do(http.MethodPost, "/notify/k", `{"body":"b"}`, "Prefer", "wait=60"); got.Status != http.StatusAccepted ||
		time.Since(began) > 30*time.Second {
		t.Errorf("a message: %d %s", got.Status, got.Body)
	}
}

// TestAgentsAreUnderWay checks that a request of an agent, with its tool's requests, counts as one
// message under way until it only waits.
func TestAgentsAreUnderWay(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	k := gatewaytest.Key("k", p.NotifyURL())
	k.Tokens = []string{"token-of-the-agent"}
	g := gatewaytest.New(t, gatewaytest.Options{
		Global: site.Options{Keys: []site.KeyOptions{k}, PublicURL: gatewaytest.PublicURL, Egress: gatewaytest.Loopback(), MaxInFlight: 1},
		Site:   site.Options{MCP: new(true)}, Queue: &outbox.Settings{},
	})
	s := httptest.NewServer(g)
	defer s.Close()
	call := func(name, arguments string) gatewaytest.Reply {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + `}}`
		return g.Do(gatewaytest.NewRequest(http.MethodPost, "/notify/k/mcp", body, "Content-Type", gatewaytest.TypeJSON, "Authorization",
			"Bearer token-of-the-agent"))
	}
	if got := call("notify", `{"body":"b"}`); got.Status != http.StatusOK || !strings.Contains(got.Body, "delivered") {
		t.Errorf("one call: %d %s", got.Status, got.Body)
	}
	asked := make(chan gatewaytest.Reply)
	go func() { asked <- call("ask", `{"question":"?","options":["yes","no"]}`) }()
	gatewaytest.Eventually(t, func() bool { return p.Count() == 2 && g.Process.Dispatcher.InFlight.Load() == 0 })
	if got := call("notify", `{"body":"b"}`); !strings.Contains(got.Body, "delivered") {
		t.Errorf("beside one that waits: %d %s", got.Status, got.Body)
	}
	g.PostForm(strings.TrimPrefix(p.Got()[1].AnswerURL, gatewaytest.PublicURL), "answer=yes")
	if got := <-asked; !strings.Contains(got.Body, "answered") {
		t.Errorf("%s", got.Body)
	}
	e, err := g.Process.Dispatcher.InFlight.Enter(g.Resolved.Limits.InFlight)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"notify", "answer"} {
		if got := call(tool, `{}`); got.Status != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" {
			t.Errorf("%s beside a message: %d %s", tool, got.Status, got.Body)
		}
	}
	e.Leave()
	if n := g.Process.Dispatcher.InFlight.Load(); n != 0 {
		t.Errorf("%d messages are under way", n)
	}
}
