package routing_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

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

// reply is a response of the gateway.
type reply struct {
	status int
	header http.Header
	body   string
}

const (
	typeJSON = "application/json"
	typeForm = "application/x-www-form-urlencoded"
	browser  = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
)

const testReader = "reader-of-the-inbox"
