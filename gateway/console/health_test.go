package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/storagetest"
)

// TestConsoleHealthAfterRestart checks that a destination whose state the queue does not keep has
// the state of its last messages: one refuses permanently, and one of a client does not fail.
func TestConsoleHealthAfterRestart(t *testing.T) {
	t.Parallel()
	ok, refuses := gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusForbidden)
	o := openConfigs()
	o.Site.Keys = []site.KeyOptions{gatewaytest.Key("refused", refuses.NotifyURL())}
	o.Queue, o.Storage = &outbox.Settings{Path: t.TempDir()}, storagetest.New(t.TempDir())
	o.Process = gatewaytest.NewProcess(t)
	g := gatewaytest.New(t, o)
	if r := g.PostForm("/add/mine", "urls="+ok.NotifyURL()); r.Status != http.StatusOK {
		t.Fatal(r.Body)
	}
	g.PostForm("/notify/mine", "body=x")
	g.PostForm("/notify/refused", "body=x")
	check := func() {
		t.Helper()
		for key, want := range map[string]string{"mine": "item is-fine", "refused": "item is-failing"} {
			if body := get(g, "/notify/console/keys/"+key, browser).Body; !strings.Contains(body, want) {
				t.Errorf("%s is not %s: %s", key, want, body)
			}
		}
		if body := get(g, "/notify/console/keys?state=fine", browser).Body; !strings.Contains(body, ">mine</a>") ||
			strings.Contains(body, ">refused</a>") {
			t.Errorf("the list: %s", body)
		}
	}
	check()
	g.Stop()
	o.Process = gatewaytest.NewProcess(t)
	g = gatewaytest.New(t, o)
	check()
}
