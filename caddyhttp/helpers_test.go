package caddyhttp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/process"
	_ "github.com/caddy-notify/caddy-notify/notifier/services"
)

// open lets clients use the test's destinations, which are on loopback.
const open = "egress {\nallow 127.0.0.1\n}\n"

// newGateway provisions a handler with the options of its block, and an app
// with the options of the global block.
func newGateway(t *testing.T, block, global string) *Handler {
	t.Helper()
	h, err := provision(t, block, global)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// provisioning is locked while Caddy provisions a configuration, which sets its
// global variables.
var provisioning sync.Mutex

func provision(t *testing.T, site, global string) (*Handler, error) {
	t.Helper()
	var x Handler
	var app App
	for to, text := range map[caddyfile.Unmarshaler]string{&x: site, &app: global} {
		if err := to.UnmarshalCaddyfile(caddyfile.NewTestDispenser("notify {\n" + text + "\n}")); err != nil {
			return nil, err
		}
	}
	off := false
	provisioning.Lock()
	defer provisioning.Unlock()
	block.Remember(string(handlerID), caddyconfig.JSON(&x, nil), x.Caddyfile) // as parseSite and parseGlobalOption do
	block.Remember(string(appID), caddyconfig.JSON(&app, nil), app.Caddyfile)
	if own := ownPools[t.Name()]; own != nil {
		outside := process.Pool
		process.Pool = own
		defer func() { process.Pool = outside }()
	}
	config := &caddy.Config{
		Admin:   &caddy.AdminConfig{Disabled: true, Config: &caddy.ConfigSettings{Persist: &off}},
		AppsRaw: caddy.ModuleMap{},
	}
	ctx, err := provisionContext(t, config)
	if err != nil {
		return nil, err
	}
	// The handler provisions the app. If Caddy did so, there would be no site.
	config.AppsRaw["notify"] = caddyconfig.JSON(&app, nil)
	m, err := ctx.LoadModuleByID("http.handlers.notify", caddyconfig.JSON(x, nil))
	if err != nil {
		return nil, err
	}
	return m.(*Handler), nil
}

// provisionContext returns the context of a configuration. At the end of the test, all
// modules are cleaned up that were loaded with it, also those that could not be
// provisioned. Without that, tests once shared their history, metrics and connections.
func provisionContext(t *testing.T, c *caddy.Config) (caddy.Context, error) {
	t.Helper()
	provisioned, err := caddy.ProvisionContext(c)
	if err != nil {
		return caddy.Context{}, err
	}
	ctx, cleanUp := caddy.NewContext(provisioned)
	t.Cleanup(cleanUp)
	return ctx, nil
}

// ownPools are the pools of the tests that share with nobody, by their names. It is
// guarded by provisioning.
var ownPools = map[string]*caddy.UsagePool{}

// ownShared gives the gateways of [newGateway] in a test a shared value of their own, also
// while other tests run.
func ownShared(t *testing.T) {
	t.Helper()
	provisioning.Lock()
	defer provisioning.Unlock()
	ownPools[t.Name()] = caddy.NewUsagePool()
	t.Cleanup(func() {
		provisioning.Lock()
		defer provisioning.Unlock()
		delete(ownPools, t.Name())
	})
}

// reply is a response of the gateway.
type reply struct {
	status int
	header http.Header
	body   string
}

// nextStatus is the status of the next handler in tests.
const nextStatus = http.StatusTeapot

func do(t *testing.T, h *Handler, r *http.Request) reply {
	t.Helper()
	w := httptest.NewRecorder()
	next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(nextStatus)
		return nil
	})
	if err := h.ServeHTTP(w, r, next); err != nil {
		t.Fatalf("ServeHTTP: %v", err)
	}
	return reply{w.Code, w.Header(), w.Body.String()}
}

func post(t *testing.T, h *Handler, target, contentType, body string) reply {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	r.Header.Set("Accept", "application/json")
	return do(t, h, r)
}

const (
	typeJSON = "application/json"
	typeForm = "application/x-www-form-urlencoded"
)

const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// asUser returns r as a user has sent it.
func asUser(r *http.Request, name string) *http.Request {
	values := caddy.NewReplacer()
	values.Set("http.auth.user.id", name)
	return r.WithContext(context.WithValue(r.Context(), caddy.ReplacerCtxKey, values))
}
