package caddyhttp

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// URLs of clients do not lead into the private network unless egress allows
// it; URLs of the operator do. Nor do redirects.
func TestEgress(t *testing.T) {
	s := newStation(t)
	redirect := httptest.NewServer(http.RedirectHandler(s.URL+"/redirected", http.StatusTemporaryRedirect))
	defer redirect.Close()
	elsewhere := "json://" + strings.TrimPrefix(redirect.URL, "http://")
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	for _, tt := range []struct {
		name, block, url string
		arrives          bool
	}{
		{"by default", "", s.url("/"), false},
		{"localhost by default", "", "json://localhost" + port, false},
		{"a number by default", "", "json://2130706433" + port, false},
		{"IPv4 in IPv6 by default", "", "json://[::ffff:127.0.0.1]" + port, false},
		{"allowed", "egress {\nallow 127.0.0.1\n}", s.url("/"), true},
		{"all allowed", "egress {\nallow all\n}", s.url("/"), true},
		{"private ranges allowed", "egress {\nallow private_ranges\n}", s.url("/"), true},
		{"another allowed", "egress {\nallow 10.0.0.0/8\n}", s.url("/"), false},
		{"denied", "egress {\nallow all\ndeny 127.0.0.0/8\n}", s.url("/"), false},
		{"redirected, by default", "", elsewhere, false},
		{"redirected, allowed", "egress {\nallow 127.0.0.1\n}", elsewhere, true},
	} {
		got := post(t, newGateway(t, tt.block, ""), "/notify", typeJSON, `{"body":"x","urls":["`+tt.url+`"]}`)
		if want := map[bool]int{true: 200, false: 424}[tt.arrives]; got.status != want {
			t.Errorf("%s: status %d, want %d: %s", tt.name, got.status, want, got.body)
		}
		if n := len(s.take()); (n == 1) != tt.arrives {
			t.Errorf("%s: %d messages arrived", tt.name, n)
		}
	}
	operator := newGateway(t, "key k {\nurl "+s.url("/")+"\n}\ndefault_urls "+s.url("/")+"\negress {\ndeny 127.0.0.0/8\n}", "")
	for _, path := range []string{"/notify", "/notify/k"} {
		if got := post(t, operator, path, typeForm, "body=x"); got.status != 200 {
			t.Errorf("a URL of the operator: %s: status %d: %s", path, got.status, got.body)
		}
	}
}

// What a client sends is never taken for a placeholder.
func TestPlaceholdersOfClients(t *testing.T) {
	t.Setenv("NOTIFY_TEST_SECRET", "secretsecret")
	s := newStation(t)
	h := newGateway(t, open+"key k {\nurl "+s.url("/k")+"\n}", "")
	const p = "{env.NOTIFY_TEST_SECRET}"
	for _, path := range []string{"/notify", "/notify/k"} {
		got := post(t, h, path, typeJSON, `{"body":"`+p+`","title":"`+p+`","urls":"`+s.url("/"+p)+`"}`)
		if got.status != 200 {
			t.Fatalf("%s: status %d: %s", path, got.status, got.body)
		}
		a := s.one(t)
		if a.Message != p || a.Title != p || strings.Contains(a.Path, "secret") {
			t.Errorf("%s: %+v", path, a)
		}
	}
}

// Caddy's debug log prints whole modules. They show counts alone.
func TestModulesInLogs(t *testing.T) {
	h := newGateway(t, "key k {\nurl json://u:secretsecret@h a\n}\ndefault_urls json://u:secretsecret@h", "key g {\nurl json://u:secretsecret@h\n}")
	var out bytes.Buffer
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), zapcore.AddSync(&out), zap.DebugLevel))
	log.Debug("", zap.Any("handler", h), zap.Any("app", &App{Settings: h.Settings}), zap.Any("settings", &h.Settings), zap.Any("key", h.Keys["k"]), zap.Any("url", h.Keys["k"].URLs[0]))
	if strings.Contains(out.String(), "secret") || !strings.Contains(out.String(), `"handler":{"keys":1,"default_urls":1}`) {
		t.Error(out.String())
	}
}

// A request can outlive its configuration.
func TestServeAfterCleanup(t *testing.T) {
	s := newStation(t)
	h := newGateway(t, open+"key k {\nurl "+s.url("/k")+"\n}", "")
	for range 2 { // a second time does nothing
		if err := h.Cleanup(); err != nil {
			t.Fatal(err)
		}
	}
	for path, arrives := range map[string]string{"/notify/k": "k", "/notify": "mine"} {
		if got := post(t, h, path, typeForm, "body=x&urls="+s.url("/mine")); got.status != 200 {
			t.Errorf("%s: status %d: %s", path, got.status, got.body)
		}
		if paths := s.paths(); paths != arrives {
			t.Errorf("%s: messages at %q", path, paths)
		}
	}
}

// The engine is given back as often as it was taken, whatever went wrong.
func TestSharedIsReleased(t *testing.T) {
	held := func() int { n, _ := sharedPool.References(sharedName); return n }
	before := held()
	a, b := newGateway(t, "", ""), newGateway(t, "", "")
	if a.shared.sender != b.shared.sender {
		t.Error("two sites have two engines")
	}
	_ = a.Cleanup()
	_ = b.Cleanup()
	if _, err := provision(t, "key k {\nurl {env.NOTIFY_TEST_UNSET}\n}", ""); err == nil {
		t.Fatal("no error")
	}
	// The apps of the contexts above are still provisioned.
	if n := held(); n != before+3 {
		t.Errorf("%d uses, want %d for the apps", n, before+3)
	}
}
