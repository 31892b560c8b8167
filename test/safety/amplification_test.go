package safety

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// requestCount is a web server that counts the requests it gets.
type requestCount struct {
	authority string
	n         atomic.Int32
	last      atomic.Int32 // requests with the header that stops forwarding
}

// newRequestCount starts a server that answers with the status and body.
func newRequestCount(t *testing.T, status int, body string) *requestCount {
	c := &requestCount{}
	s := serveHTTP(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		c.n.Add(1)
		if r.Header.Get("X-Apprise-Recursion-Count") == "2" {
			c.last.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
	c.authority = authority(s)
	return c
}

// repeated returns f(0) to f(n-1).
func repeated(n int, f func(i int) string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = f(i)
	}
	return out
}

// items returns a comma-separated list of n names.
func items(n int) string {
	return strings.Join(repeated(n, func(i int) string { return fmt.Sprint("t", i) }), ",")
}

// TestAmplification checks that a client's request that would cause too many
// requests, or too much traffic, is refused. 1000 URLs with retry=10 once made
// 11,000 requests, 100 URLs with 500 recipients each 50,000, and a file of 20 MB
// for 40 URLs sent 1.1 GB.
func TestAmplification(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	c := newRequestCount(t, http.StatusInternalServerError, "{}")
	g := start(t, "", "egress {\nallow 127.0.0.1\n}")
	long := strings.Repeat("word ", 7<<20/5)
	for _, tt := range []struct {
		name   string
		body   string
		urls   []string
		status int
		want   string
	}{
		{
			"URLs", "x", repeated(1000, func(i int) string { return fmt.Sprintf("json://%s/%d?retry=10&wait=0", c.authority, i) }),
			400, "has more than 500 URLs (client_limits deliveries)",
		},
		{
			"recipients", "x", repeated(100, func(i int) string { return fmt.Sprintf("ntfy://%s/?to=%s&x=%d", c.authority, items(500), i) }),
			400, "would make 50000 deliveries, one for each recipient and part; the limit is 500 (client_limits deliveries)",
		},
		{
			"parts", long[:1<<20],
			[]string{"ntfy://" + c.authority + "/a/b?overflow=split"},
			400, "client_limits deliveries",
		},
		{
			"text", long, repeated(40, func(i int) string { return fmt.Sprintf("json://%s/%d", c.authority, i) }),
			413, "would send 280 MiB, which is its text and files for each recipient and retry; the limit is 256 MiB (client_limits bytes)",
		},
		{
			"text and retries", long, repeated(20, func(i int) string { return fmt.Sprintf("json://%s/%d?retry=9", c.authority, i) }),
			413, "would send 420 MiB",
		},
	} {
		got := g.post("/notify", message{"body": tt.body, "urls": tt.urls})
		if got.Status != tt.status || !strings.Contains(got.Error, tt.want) {
			t.Errorf("%s: %d %.300s, want %d %s", tt.name, got.Status, got.Error, tt.status, tt.want)
		}
		if n := c.n.Swap(0); n != 0 {
			t.Errorf("%s: %d requests were sent", tt.name, n)
		}
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	_ = w.WriteField("body", "x")
	for i := range 40 {
		_ = w.WriteField("urls", fmt.Sprintf("form://%s/%d", c.authority, i))
	}
	part, _ := w.CreateFormFile("attach", "f.bin")
	_, _ = part.Write(make([]byte, 20<<20))
	_ = w.Close()
	if got := g.do("/notify", w.FormDataContentType(), &form); got.Status != 413 ||
		!strings.Contains(got.Error, "would send 800 MiB") || c.n.Swap(0) != 0 {
		t.Errorf("a file: %d %s", got.Status, got.Error)
	}
}

// TestRetriesOfClients checks that a client's URL is tried at most three times,
// a second apart, with a warning if its parameters ask for more, and that the
// parameters of a key's URL have no such limits.
func TestRetriesOfClients(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	c, own := newRequestCount(t, http.StatusInternalServerError, ""), newRequestCount(t, http.StatusInternalServerError, "")
	g := start(t, "", "key ops {\nurl json://"+own.authority+"/?retry=5&wait=0\n}\negress {\nallow 127.0.0.1\n}")
	begun := time.Now()
	got := g.post("/notify", message{"body": "x", "urls": repeated(100, func(i int) string {
		return fmt.Sprintf("json://%s/%d?retry=10&wait=0", c.authority, i)
	})})
	if took := time.Since(begun); took < 2*time.Second {
		t.Errorf("three tries took %s", took)
	}
	if n := c.n.Load(); got.Status != http.StatusFailedDependency || n != 300 {
		t.Errorf("%d requests: %d %s", n, got.Status, got.Error)
	}
	for _, warning := range []string{
		"URL 1 of 100: retry=10 is above the limit of 2 (client_limits retry); 2 is used",
		"URL 1 of 100: wait=0 is below the limit of 1s (client_limits wait); 1s is used",
	} {
		if !strings.Contains(fmt.Sprint(got.Details), warning) {
			t.Errorf("no warning %s: %.500v", warning, got.Details)
		}
	}
	if got := g.post("/notify/ops", message{"body": "x"}); got.Status != http.StatusFailedDependency || own.n.Load() != 6 {
		t.Errorf("a key: %d requests: %d %s", own.n.Load(), got.Status, got.Error)
	}
}

// TestRequestsOfServers checks that the limit of requests also holds if the list
// of recipients comes from the destination's server.
func TestRequestsOfServers(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	rooms, err := json.Marshal(map[string]any{
		"access_token": "token", "user_id": "@a:h", "device_id": "d", "event_id": "$e", "room_id": "!r:h",
		"joined_rooms": repeated(300, func(i int) string { return fmt.Sprintf("!room%d:h", i) }),
	})
	if err != nil {
		t.Fatal(err)
	}
	c := newRequestCount(t, http.StatusOK, string(rooms))
	url := "matrix://user:password@" + c.authority
	g := start(t, "", "timeout 2m\nclient_limits {\nrequests 100\n}\nkey ops {\nurl "+url+"\n}\negress {\nallow 127.0.0.1\n}")
	got := g.post("/notify", message{"body": "x", "urls": url})
	if n := c.n.Swap(0); n > 100 || got.Status != http.StatusFailedDependency ||
		!strings.Contains(got.text(), "has made 100 requests and may not make more (client_limits requests)") {
		t.Errorf("%d requests: %d %s", n, got.Status, got.text())
	}
	got = g.post("/notify/ops", message{"body": "x"})
	if n := c.n.Load(); n <= 300 || got.Status != http.StatusOK {
		t.Errorf("a key: %d requests: %d %s", n, got.Status, got.text())
	}
}

// TestRedirectsOfServers checks that the limits of requests and bytes also hold
// if servers redirect: 490 URLs made 2,940 requests, and each redirect sent the
// files again.
func TestRedirectsOfServers(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	var requests, received atomic.Int64
	s := serveHTTP(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		requests.Add(1)
		received.Add(n)
		http.Redirect(w, r, "/", http.StatusTemporaryRedirect)
	})
	const mebibyte = 1 << 20
	g := start(t, "", "egress {\nallow 127.0.0.1\n}\nclient_limits {\nbytes 9MiB\n}")
	urls := func(n int) []string {
		return repeated(n, func(i int) string { return fmt.Sprintf("json://%s/%d?redirect=yes", authority(s), i) })
	}
	if r := g.post("/notify", message{"body": "x", "urls": urls(490)}); requests.Load() > 1500 ||
		!strings.Contains(r.text(), "(client_limits requests)") {
		t.Errorf("490 URLs made %d requests: %.300s", requests.Load(), r.text())
	}
	received.Store(0)
	if r := g.post("/notify", message{"body": strings.Repeat("x", mebibyte), "urls": urls(8)}); received.Load() > 18*mebibyte ||
		!strings.Contains(r.text(), "(client_limits bytes)") {
		t.Errorf("8 URLs with 1 MiB received %d bytes: %.300s", received.Load(), r.text())
	}
}

// TestForwardedRequestsDoNotMultiply checks that a message forwarded by a gateway
// is delivered to one destination only, and that no third gateway forwards it.
func TestForwardedRequestsDoNotMultiply(t *testing.T) {
	t.Parallel()
	c := newRequestCount(t, http.StatusOK, "")
	g := start(t, "", "egress {\nallow 127.0.0.0/8\n}")
	nested := func(urls ...string) string {
		return "json://" + g.address() + "/notify?:body=x&:urls=" + strings.NewReplacer(":", "%3A", "/", "%2F", ",", "%2C", "?", "%3F", "=",
			"%3D", "&", "%26").Replace(strings.Join(urls, ","))
	}
	target := func(i int) string { return fmt.Sprintf("json://%s/%d?retry=2", c.authority, i) }
	for _, tt := range []struct {
		name     string
		urls     []string
		requests int32
		want     string
	}{
		{
			"many to many", repeated(30, func(i int) string { return nested(repeated(30, target)...) + fmt.Sprint("&:n=", i) }), 0,
			"would make 30 deliveries, one for each recipient and part; the limit is 1 for a message that comes from another gateway",
		},
		{"many to one", repeated(30, func(i int) string { return nested(target(i)) }), 30, ""},
		{"a third", []string{nested(nested(target(0)))}, 0, "too many gateways"},
	} {
		got := g.post("/notify", message{"body": "x", "urls": tt.urls})
		if n := c.n.Swap(0); n != tt.requests || !strings.Contains(got.text(), tt.want) {
			t.Errorf("%s: %d requests, want %d: %d %.500s", tt.name, n, tt.requests, got.Status, got.text())
		}
		if n := c.last.Swap(0); n != tt.requests {
			t.Errorf("%s: %d of %d requests have the header that stops forwarding", tt.name, n, tt.requests)
		}
	}
	if got := g.post("/notify", message{"body": "x", "urls": target(0)}); got.Status != http.StatusOK || c.last.Load() != 0 {
		t.Errorf("a message that was not forwarded: %d %s", got.Status, got.text())
	}
}
