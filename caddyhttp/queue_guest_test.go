package caddyhttp

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/bolt"
)

// guest is a store as a module of another repository has it.
type guest struct {
	// The folder of the guest. Required.
	Folder string `json:"folder,omitempty"`
}

func init() { caddy.RegisterModule(new(guest)) }

func (*guest) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "notify.queue.guest", New: func() caddy.Module { return new(guest) }}
}

func (g *guest) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	for d.Next() {
		for d.NextBlock(0) {
			if d.Val() != "folder" || !d.AllArgs(&g.Folder) {
				return d.ArgErr()
			}
		}
	}
	return nil
}

func (g *guest) Validate() error {
	if g.Folder == "" {
		return fmt.Errorf("the guest has no folder")
	}
	return nil
}

func (g *guest) Name() string { return g.Folder }

func (g *guest) Open(_ context.Context, log *zap.Logger) (queue.Store, error) {
	return bolt.Open(bolt.Options{Path: g.Folder, NoSync: true, Logger: log})
}

// TestQueueGuest checks that a message waits in the store of a module that a Caddyfile chooses, and is
// delivered from it. TestGuestSeesNoText in package gateway checks what this store gets.
func TestQueueGuest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := gatewaytest.NewPager(t, http.StatusBadGateway)
	inBubble(t, func(t *testing.T) {
		h := newGateway(t, "", "queue {\nstore guest {\nfolder "+dir+"\n}\nsecret "+t.Name()+"-secret\nwait 1s\n}\n"+
			"key k {\nurl "+p.NotifyURL()+"\n}")
		startApp(t, h)
		id := postWith(t, h, "/notify/k", "body=hello").queued(t).ID
		p.Answer(http.StatusOK)
		gatewaytest.Eventually(t, func() bool { s, _ := state(t, h, id); return s == "delivered" })
		stopApp(t, h)
	})
}

func TestQueueGuestMistakes(t *testing.T) {
	for config, want := range map[string]string{
		"queue {\nstore guest {\nfolder x\n}\n}":                                  "a queue in guest needs a secret",
		"queue {\nstore guest\nsecret " + t.Name() + "\n}":                        "the guest has no folder",
		"queue {\nstore nobody\nsecret " + t.Name() + "\n}":                       "notify.queue.nobody",
		"queue {\nstore guest {\nfolder x\n}\npath x\nsecret " + t.Name() + "\n}": "the store is set twice",
		"queue {\nstore bolt x y\n}":                                              "expected store bolt [<path>]",
		"queue {\nstore postgres\nsecret " + t.Name() + "\n}":                     "expected store postgres <dsn>",
		"queue {\nsecret " + t.Name() + " short\n}":                               "16 or more characters",
		"queue {\nstore postgres postgres://localhost/x {\na b\n}\n}":             "takes no block",
	} {
		_, err := provision(t, "", config)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nerror %v\nwant %s", config, err, want)
		}
	}
}

// TestQueueSecretReload checks that a reload can change the secret while messages wait, and that one that
// takes away a secret that is needed is refused.
func TestQueueSecretReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := gatewaytest.NewPager(t, http.StatusBadGateway)
	inBubble(t, func(t *testing.T) {
		load := func(secrets string) (*Handler, error) {
			h := newGateway(t, "", "queue {\npath "+dir+"\nwait 1s\nsecret "+secrets+"\n}\nkey k {\nurl "+p.NotifyURL()+"\n}")
			h.app.gateway.Conf.QueueSettings.NoSync = true
			err := h.app.Start()
			if err == nil {
				t.Cleanup(func() { stopApp(t, h) })
			}
			return h, err
		}
		first, err := load("the-first-secret-of-the-test")
		if err != nil {
			t.Fatal(err)
		}
		id := postWith(t, first, "/notify/k", "body=hello").queued(t).ID
		if _, err := load("the-second-secret-of-the-test"); err == nil || !strings.Contains(err.Error(), "after the new one") {
			t.Errorf("without the first secret: %v", err)
		}
		second, err := load("the-second-secret-of-the-test the-first-secret-of-the-test")
		if err != nil {
			t.Fatal(err)
		}
		stopApp(t, first)
		p.Answer(http.StatusOK)
		gatewaytest.Eventually(t, func() bool { s, _ := state(t, second, id); return s == "delivered" })
		gatewaytest.Eventually(t, func() bool {
			old, known := second.app.gateway.Rooms.Outbox.Queue.OldSecrets()
			return known && old.Set && !old.Needed()
		})
		if _, err := load("the-second-secret-of-the-test"); err != nil {
			t.Errorf("when nothing needs the first secret: %v", err)
		}
	})
}
