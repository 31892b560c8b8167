package caddyhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
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

// TestOverload checks that messages above the limit are refused in every format
// before they are read. Messages of all sites count; the limit is that of the
// site.
func TestOverload(t *testing.T) {
	j := newStalled(t)
	h := newGateway(t, "max_in_flight 2\nkey k {\nurl "+j.NotifyURL()+"\n}", "")
	wider := newGateway(t, "", "max_in_flight 3\nkey k {\nurl "+j.NotifyURL()+"\n}")
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
		for _, path := range []string{"/notify", "/notify/k"} {
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
	// Refused messages do not count.
	for range 5 {
		if got := post(t, h, "/notify/none", typeForm, "body=x"); got.status != http.StatusNotFound {
			t.Errorf("an unknown key: status %d", got.status)
		}
	}
	if got := post(t, h, "/notify/k", typeForm, "body=x"); got.status != http.StatusOK {
		t.Errorf("after the load: status %d: %s", got.status, got.body)
	}
	if n := h.shared.InFlight.Load(); n != 0 {
		t.Errorf("%d messages under way, want none", n)
	}
}

func TestOverloadSettings(t *testing.T) {
	for _, tt := range []struct {
		block, global string
		want          int
	}{{"", "", defaultMaxInFlight}, {"", "max_in_flight 7", 7}, {"max_in_flight 8", "max_in_flight 7", 8}} {
		if got := newGateway(t, tt.block, tt.global).Resolved.Limits.InFlight.Total; got != tt.want {
			t.Errorf("%q below %q: %d, want %d", tt.block, tt.global, got, tt.want)
		}
	}
	if _, err := (&Settings{MaxInFlight: -1}).resolve(&settled{Site: &site.Site{}}, nil, nil); err == nil {
		t.Error("-1 is accepted")
	}
}

// TestClientAddress checks that a client is an IPv4 address or a network of
// IPv6.
func TestClientAddress(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.7":           "192.0.2.7",
		"::ffff:192.0.2.7":    "192.0.2.7",
		"2001:db8:1:2:3::4":   "2001:db8:1:2::",
		"2001:db8:1:2::9":     "2001:db8:1:2::",
		"fe80::1%eth0":        "fe80::",
		"":                    "invalid IP",
		"@":                   "invalid IP",
		"2001:db8:1:3:3::4%1": "2001:db8:1:3::",
	} {
		ctx := context.WithValue(t.Context(), caddyhttp.VarsCtxKey, map[string]any{caddyhttp.ClientIPVarKey: text})
		if got := httpapi.ClientAddress(httpapi.WithEnvironment(httptest.NewRequestWithContext(ctx, http.MethodPost, "/", nil), &requestEnvironment)).String(); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestInFlightShares checks that messages with URLs have a share of the limit,
// and each client has a share of that. Finished messages do not count.
func TestInFlightShares(t *testing.T) {
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	limits := site.NewInFlightLimits(32, 0, 0)
	var f site.InFlight
	enter := func(from netip.Addr, want string) site.Admission {
		t.Helper()
		e, err := f.EnterClient(limits, from)
		if got := fmt.Sprint(err); !strings.Contains(got, want) {
			t.Fatalf("%s, want %s", got, want)
		}
		return e
	}
	var entries []site.Admission
	for range 2 {
		entries = append(entries, enter(a, "nil"))
	}
	enter(a, "from your address are under way, at most 2")
	for i := range 14 {
		entries = append(entries, enter(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), "nil"))
	}
	enter(b, "URLs of clients under way, at most 16")
	if _, err := f.EnterFetch(limits, b); err == nil {
		t.Error("a message for a key fetches files beside the limit")
	}
	for range 16 {
		e, err := f.Enter(limits)
		if err != nil {
			t.Fatalf("a message for a key: %v", err)
		}
		entries = append(entries, e)
	}
	if _, err := f.Enter(limits); err == nil || !strings.Contains(err.Error(), "at most 32 (max_in_flight)") {
		t.Errorf("a message too many: %v", err)
	}
	for _, e := range entries {
		e.Leave()
	}
	if f.Total != 0 || f.Clients != 0 || len(f.ByAddress) != 0 {
		t.Errorf("%d, %d, %v are left", f.Total, f.Clients, f.ByAddress)
	}
	if l := site.NewInFlightLimits(1, 0, 0); l != (site.InFlightLimits{Total: 1, Clients: 1, PerAddress: 1}) {
		t.Errorf("of one: %v", l)
	}
	if l := site.NewInFlightLimits(100, 90, 7); l != (site.InFlightLimits{Total: 100, Clients: 90, PerAddress: 7}) {
		t.Errorf("as set: %v", l)
	}
}

// TestUnverifiedInFlight checks that a message counts among those of clients until its
// token or signature is verified.
func TestUnverifiedInFlight(t *testing.T) {
	from := netip.MustParseAddr("192.0.2.1")
	limits := site.NewInFlightLimits(16, 0, 0)
	var f site.InFlight
	e, err := f.EnterUnverified(limits, from)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.EnterUnverified(limits, from); err == nil || !strings.Contains(err.Error(), "from your address whose token or signature has not been verified are under way, at most 1") {
		t.Errorf("a second one of its address: %v", err)
	}
	if _, err := f.EnterClient(limits, from); err == nil {
		t.Error("a message with URLs of its address has room")
	}
	e.Verified()
	if f.Total != 1 || f.Clients != 0 || len(f.ByAddress) != 0 {
		t.Errorf("verified: %d, %d, %v", f.Total, f.Clients, f.ByAddress)
	}
	e.Verified()
	if other, err := f.EnterUnverified(limits, from); err != nil {
		t.Errorf("after the first is verified: %v", err)
	} else {
		other.Leave()
	}
	e.Leave()
	if f.Total != 0 || f.Clients != 0 || len(f.ByAddress) != 0 {
		t.Errorf("%d, %d, %v are left", f.Total, f.Clients, f.ByAddress)
	}
}
