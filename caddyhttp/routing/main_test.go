package routing_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/caddyhttp"
	"github.com/caddy-notify/caddy-notify/caddyhttp/routing"
	"github.com/caddy-notify/caddy-notify/internal/hometest"
	_ "github.com/caddy-notify/caddy-notify/notifier/services" // the services of the keys
)

func TestMain(m *testing.M) { os.Exit(hometest.Main(m)) }

// provision provisions a Caddyfile until the end of the test, and returns its routes. It starts
// nothing.
func provision(t *testing.T, text string) (*caddyhttp.App, *routing.Routes) {
	t.Helper()
	options, ok := strings.CutPrefix(text, "{\n")
	if !ok {
		options = "}\n" + text
	}
	text = "{\nadmin off\npersist_config off\n" + options
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		t.Fatal(err)
	}
	var c caddy.Config
	if err := json.Unmarshal(adapted, &c); err != nil {
		t.Fatal(err)
	}
	c.Logging = nil
	ctx, err := caddy.ProvisionContext(&c)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ctx.App("notify")
	if err != nil {
		t.Fatal(err)
	}
	app := m.(*caddyhttp.App)
	t.Cleanup(func() { _ = app.Cleanup() })
	return app, app.Routes()
}

// warningsIn returns the warnings that the sites of routes log while check runs.
func warningsIn(routes *routing.Routes, check func()) (warnings []string) {
	core, logged := observer.New(zap.WarnLevel)
	for _, h := range routes.Sites {
		h.API.Log = zap.New(core)
	}
	check()
	for _, e := range logged.All() {
		warnings = append(warnings, e.Message)
	}
	return warnings
}

const (
	browser    = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	testReader = "reader-of-the-inbox"
)
