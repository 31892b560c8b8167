package caddyhttp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/bolt"
)

// guest is a store as a module of another repository has it. It notes the texts that it gets.
type guest struct {
	// The folder of the guest. Required.
	Folder string `json:"folder,omitempty"`
}

// seen are the texts that guests have got.
var seen texts

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
	store, err := bolt.Open(bolt.Options{Path: g.Folder, NoSync: true, Logger: log})
	if err != nil {
		return nil, err
	}
	return &guestStore{store}, nil
}

type guestStore struct{ queue.Store }

func (s *guestStore) Hash(text string) queue.Hash {
	seen.add(text)
	return s.Store.Hash(text)
}

func (s *guestStore) Accept(ctx context.Context, maxSize int64, entries ...*queue.Entry) error {
	for _, e := range entries {
		s.watch(e.Update)
		for _, f := range e.Message.Files {
			b, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size))
			if err != nil {
				return err
			}
			seen.add(string(b))
		}
	}
	err := s.Store.Accept(ctx, maxSize, entries...)
	seen.note(entries)
	return err
}

func (s *guestStore) Settle(ctx context.Context, t *queue.Settlement) error {
	s.watch(t.Update)
	err := s.Store.Settle(ctx, t)
	seen.note(t)
	return err
}

func (s *guestStore) Update(ctx context.Context, u *queue.Update) error {
	s.watch(u)
	return s.Store.Update(ctx, u)
}

func (s *guestStore) SaveHealth(ctx context.Context, states ...queue.Health) error {
	seen.note(states)
	return s.Store.SaveHealth(ctx, states...)
}

// watch notes what an update stores.
func (s *guestStore) watch(u *queue.Update) {
	if u == nil {
		return
	}
	decide := u.Decide
	u.Decide = func(tx *queue.Tx) error {
		err := decide(tx)
		for i := range u.Names {
			if r, ok := tx.Changed(i); ok {
				seen.note(r)
			}
		}
		seen.note(tx.Owned())
		return err
	}
}

// texts are all texts in what was noted.
type texts struct {
	mu  sync.Mutex
	all strings.Builder
}

func (x *texts) add(text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all.WriteString(text + "\n")
}

func (x *texts) note(v any) { x.walk(reflect.ValueOf(v)) }

func (x *texts) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			x.walk(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				x.walk(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			x.add(string(v.Bytes()))
			return
		}
		for i := range v.Len() {
			x.walk(v.Index(i))
		}
	case reflect.String:
		x.add(v.String())
	}
}

// TestQueueGuest checks that a message is delivered from the store of another module, and that this store gets
// no text: not of messages, their destinations, attachments, incidents, silences, questions and inboxes.
func TestQueueGuest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := gatewaytest.NewPager(t, http.StatusBadGateway)
	const marker = "Marker7"
	inBubble(t, func(t *testing.T) {
		h := newGateway(t, "configs {\nmanage open\n}", "queue {\nstore guest {\nfolder "+dir+"\n}\nsecret "+t.Name()+"-secret\nwait 1s\n}\n"+
			"public_url https://notify.example.com\nkey k {\nurl "+strings.TrimSuffix(p.NotifyURL(), "/")+"/"+marker+" "+marker+
			"\ninbox 1h\nreader a-reader-"+marker+"\ndedupe 10m\n}")
		startApp(t, h)
		post := func(target, form string) reply {
			t.Helper()
			r := postWith(t, h, target, form, "Idempotency-Key", form+marker)
			if r.status/100 != 2 {
				t.Fatalf("%s %s: %d %s", target, form, r.status, r.body)
			}
			return r
		}
		id := post("/notify/k", "title="+marker+"&body=text+"+marker+"&incident="+marker+"&type=failure").queued(t).ID
		post("/notify/k", "body=later+"+marker+"&send_at=1h")
		post("/notify/k/silences", "tag="+marker+"&for=1h&reason="+marker)
		p.Answer(http.StatusOK)
		gatewaytest.Eventually(t, func() bool { s, _ := state(t, h, id); return s == "delivered" })
		time.Sleep(time.Minute)
		stopApp(t, h)
	})
	seen.mu.Lock()
	defer seen.mu.Unlock()
	all := seen.all.String()
	if len(all) < 10_000 {
		t.Errorf("the guest has got %d bytes", len(all))
	}
	for _, text := range []string{marker, strings.ToLower(marker), "127.0.0.1", "502"} {
		if i := strings.Index(all, text); i >= 0 {
			t.Errorf("the guest has got %q in %q", text, all[max(0, i-100):min(len(all), i+100)])
		}
	}
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
