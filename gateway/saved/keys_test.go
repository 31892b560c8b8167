package saved_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/storagetest"
)

// TestSavedDefaultTag checks where a message without a tag goes.
func TestSavedDefaultTag(t *testing.T) {
	s := gatewaytest.NewStation(t)
	const all, none = "a b c", ""
	for setting, want := range map[string][3]string{ // of the keys mixed, tagged and plain
		"":           {all, "a b", "c"},
		"untagged":   {"c", none, "c"},
		"ops":        {"a", "a", none},
		"home,other": {"b", "b", none},
	} {
		t.Run(setting, func(t *testing.T) {
			g := newGateway(t, nil, gatewaytest.Everybody(), saved.Options{DefaultTag: setting})
			tagged := "ops=" + s.NotifyURL("/a") + "\nhome=" + s.NotifyURL("/b") + "\n"
			plain := s.NotifyURL("/c") + "\n"
			for i, text := range []string{tagged + plain, tagged, plain} {
				if r := g.Post("/add/k", "text/plain", text); r.Status != http.StatusOK {
					t.Fatal(r.Body)
				}
				status, problem := http.StatusOK, ""
				if want[i] == none {
					status, problem = http.StatusFailedDependency, "the message has no tag, and default_tag matches none"
				}
				r := g.Post("/notify/k", gatewaytest.TypeForm, "body=x")
				if got := s.Paths(); r.Status != status || got != want[i] || !strings.Contains(r.Body, problem) {
					t.Errorf("%s arrives at %q with %d %s; want %q and %d", text, got, r.Status, r.Body, want[i], status)
				}
				if r := g.Post("/notify/k", gatewaytest.TypeForm, "body=x&tag=all"); r.Status != http.StatusOK {
					t.Errorf("with the tag all: %s", r.Body)
				}
				s.Paths()
			}
		})
	}
}

// TestURLIDs checks that the ID of a URL is the same at other instances and after
// a restart, differs from other URLs', and depends on a key.
func TestURLIDs(t *testing.T) {
	t.Parallel()
	ids := func(dir, secret string) (out []string) {
		t.Helper()
		g := newGateway(t, storagetest.New(dir), gatewaytest.Everybody(), saved.Options{Secret: secret})
		for _, urls := range []string{"json://127.0.0.1/a,json://127.0.0.1/b", "json://127.0.0.1/a"} {
			if r := g.Post("/add/ops", gatewaytest.TypeForm, "urls="+urls); r.Status != http.StatusOK {
				t.Fatal(r.Body)
			}
			for _, m := range regexp.MustCompile(`"id":"(\w+)"`).FindAllStringSubmatch(get(g, "/json/urls/ops", "*/*").Body, -1) {
				out = append(out, m[1])
			}
		}
		return out
	}
	dir := t.TempDir()
	first, again, other := ids(dir, ""), ids(dir, ""), ids(t.TempDir(), "")
	if len(first) != 3 || first[0] == first[1] || first[0] != first[2] || !slices.Equal(first, again) || first[0] == other[0] {
		t.Errorf("IDs %q, at another instance %q, on another storage %q", first, again, other)
	}
	const secret = "0123456789abcdef"
	if a, b := ids(t.TempDir(), secret), ids(t.TempDir(), secret); !slices.Equal(a, b) || a[0] == first[0] {
		t.Errorf("IDs with a secret: %q and %q", a, b)
	}
}

// TestSavedStorageDown checks that the last good copy is used while the storage
// is down, and that a key that was never read gets a 503.
func TestSavedStorageDown(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	dir := t.TempDir()
	storage := storagetest.New(dir)
	g := newGateway(t, storage, gatewaytest.Everybody(), saved.Options{Refresh: time.Nanosecond})
	if r := g.Post("/add/used", gatewaytest.TypeForm, "urls="+s.NotifyURL("/used")); r.Status != http.StatusOK {
		t.Fatal(r.Body)
	}
	if r := g.Post("/add/unused", gatewaytest.TypeForm, "urls="+s.NotifyURL("/unused")); r.Status != http.StatusOK {
		t.Fatal(r.Body)
	}
	if r := g.Post("/notify/used", gatewaytest.TypeForm, "body=x"); r.Status != http.StatusOK {
		t.Fatal(r.Body)
	}
	s.Take()
	storage.Down.Store(true)
	if r := g.Post("/notify/used", gatewaytest.TypeForm, "body=x"); r.Status != http.StatusOK || s.Paths() != "used" {
		t.Errorf("a key that was used gets %d %s", r.Status, r.Body)
	}
	for _, r := range []gatewaytest.Reply{
		g.Post("/notify/unused", gatewaytest.TypeForm, "body=x"), g.Post("/add/used", gatewaytest.TypeForm, "urls="+s.NotifyURL("/x")),
		g.Post("/get/used", "", ""),
	} {
		if r.Status != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" ||
			strings.Contains(r.Body, storagetest.ErrDown.Error()) {
			t.Errorf("the answer is %d %s, want a 503 with Retry-After", r.Status, r.Body)
		}
	}
	g.Saved.Shared.Checked = time.Time{}
	if r := get(g, "/status", "text/plain"); r.Status != http.StatusExpectationFailed || r.Body != "CONFIG_PERMISSION_ISSUE" {
		t.Errorf("/status gets %d %s", r.Status, r.Body)
	}
	storage.Down.Store(false)
	if r := g.Post("/notify/unused", gatewaytest.TypeForm, "body=x"); r.Status != http.StatusOK {
		t.Errorf("when the storage is back: %d %s", r.Status, r.Body)
	}
}

// TestTwoGateways checks that two gateways on one storage see each other's
// changes, including deletions, after the refresh time.
func TestTwoGateways(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	dir := t.TempDir()
	a := newGateway(t, storagetest.New(dir), gatewaytest.Everybody(), saved.Options{Refresh: time.Nanosecond})
	b := newGateway(t, storagetest.New(dir), nil, saved.Options{Refresh: time.Nanosecond})
	for _, path := range []string{"/first", "/second"} {
		if r := a.Post("/add/ops", gatewaytest.TypeForm, "urls="+s.NotifyURL(path)); r.Status != http.StatusOK {
			t.Fatal(r.Body)
		}
		if r := b.Post("/notify/ops", gatewaytest.TypeForm, "body=x"); r.Status != http.StatusOK || "/"+s.Paths() != path {
			t.Errorf("%s: %d %s", path, r.Status, r.Body)
		}
	}
	if r := a.Post("/del/ops", "", ""); r.Status != http.StatusOK {
		t.Fatal(r.Body)
	}
	if r := b.Post("/notify/ops", gatewaytest.TypeForm, "body=x"); r.Status != http.StatusNotFound {
		t.Errorf("after the deletion: %d %s", r.Status, r.Body)
	}
}

// TestSavedKeyCost checks that an unused key is not read, and that a used key
// is read once within the refresh time and keeps the destinations of unchanged
// URLs.
func TestSavedKeyCost(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	dir := t.TempDir()
	storage := storagetest.New(dir)
	g := newGateway(t, storage, gatewaytest.Everybody(), saved.Options{Refresh: time.Hour, MaxKeys: 200})
	for i := range 100 {
		if err := g.Saved.Store.Save(t.Context(), fmt.Sprint("key", i), configstore.FormatText, s.NotifyURL("/x"), 200); err != nil {
			t.Fatal(err)
		}
	}
	if storage.Loads.Load() > 0 {
		t.Error("keys that are not used are read")
	}
	for range 50 {
		if _, err := g.Resolved.Key(t.Context(), "key1"); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Resolved.Key(t.Context(), "unknown"); !errors.Is(err, site.ErrNoKey) {
			t.Fatal(err)
		}
	}
	if n := storage.Loads.Load(); n != 1 {
		t.Errorf("50 uses of a key read it %d times", n)
	}
	before, _ := g.Resolved.Key(t.Context(), "key1")
	stays := before.Targets[0].Destination
	if r := g.Post("/add/key1", gatewaytest.TypeForm, "urls="+s.NotifyURL("/x")+","+s.NotifyURL("/new")); r.Status != http.StatusOK {
		t.Fatal(r.Body)
	}
	after, err := g.Resolved.Key(t.Context(), "key1")
	if err != nil || len(after.Targets) != 2 || after.Targets[0].Destination != stays {
		t.Errorf("after the change, the destination of the unchanged URL is another one: %v", err)
	}
}

// TestSavedConcurrently changes and uses a key at the same time.
func TestSavedConcurrently(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := newGateway(t, nil, gatewaytest.Everybody(), saved.Options{Refresh: time.Nanosecond})
	if r := g.Post("/add/ops", gatewaytest.TypeForm, "urls="+s.NotifyURL("/0")); r.Status != http.StatusOK {
		t.Fatal(r.Body)
	}
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			if r := g.Post("/add/ops", gatewaytest.TypeForm, "urls="+s.NotifyURL(fmt.Sprint("/", i))); r.Status != http.StatusOK {
				t.Error(r.Body)
			}
		})
		wg.Go(func() {
			if r := g.Post("/notify/ops", gatewaytest.TypeForm, "body=x"); r.Status != http.StatusOK {
				t.Error(r.Body)
			}
		})
	}
	wg.Wait()
	if n := len(s.Take()); n != 10 {
		t.Errorf("%d of 10 messages arrived", n)
	}
}

// TestChanges checks that a change of a saved key returns the same error, writes the same line in the
// log and emits the same event whoever makes it: a client of the HTTP API, or code.
func TestChanges(t *testing.T) {
	t.Parallel()
	const url, mistake = "json://127.0.0.1:9/", "nope://127.0.0.1:9/"
	type change func(context.Context, saved.Changes) error
	save := func(name, text string) change {
		return func(ctx context.Context, c saved.Changes) error {
			_, _, err := c.Save(ctx, name, configstore.FormatText, text)
			return err
		}
	}
	move := func(from, to string) change {
		return func(ctx context.Context, c saved.Changes) error { return c.Move(ctx, from, to) }
	}
	remove := func(name string) change {
		return func(ctx context.Context, c saved.Changes) error { return c.Delete(ctx, name) }
	}
	token := func(name string) change {
		return func(ctx context.Context, c saved.Changes) error {
			_, _, err := c.NewToken(ctx, name)
			return err
		}
	}
	oldTokens := func(name string) change {
		return func(ctx context.Context, c saved.Changes) error {
			_, err := c.RemoveOldTokens(ctx, name)
			return err
		}
	}
	type gatewayOfTest struct {
		*gatewaytest.Gateway
		log    *observer.ObservedLogs
		events []string
	}
	start := func() *gatewayOfTest {
		core, log := observer.New(zap.InfoLevel)
		g := &gatewayOfTest{log: log}
		g.Gateway = gatewaytest.New(t, gatewaytest.Options{
			Site: site.Options{
				Egress: gatewaytest.Loopback(), Managers: gatewaytest.Everybody(), Keys: []site.KeyOptions{gatewaytest.Key("fixed", url)},
			},
			Saved: &saved.Options{Manage: true, MaxKeys: 2}, Log: zap.New(core),
			Emit: func(name string, data map[string]any) { g.events = append(g.events, fmt.Sprint(name, data)) },
		})
		return g
	}
	code, client := start(), start()
	for _, step := range []struct {
		do      change
		request string // the same one: its path, and its body for JSON
		status  int
		field   string // of the error
		log     string // key, change and number of destinations; "" for no change
	}{
		{save("a", url), `/add/a {"urls":"` + url + `"}`, 200, "", "a saved 1"},
		{save("b", url+"\n"+url+"b"), `/add/b {"urls":["` + url + `","` + url + `b"]}`, 200, "", "b saved 2"},
		{save("c", url), `/add/c {"urls":"` + url + `"}`, 400, "", ""}, // too many keys
		{save("b", mistake), `/add/b {"urls":"` + mistake + `"}`, 400, "", ""},
		{save("fixed", url), `/add/fixed {"urls":"` + url + `"}`, 403, "", ""},
		{move("a", "a"), `/move/a {"to":"a"}`, 400, "to", ""},
		{move("a", "messages"), `/move/a {"to":"messages"}`, 400, "to", ""},
		{move("a", "fixed"), `/move/a {"to":"fixed"}`, 403, "to", ""},
		{move("a", "b"), `/move/a {"to":"b"}`, 409, "to", ""},
		{move("none", "c"), `/move/none {"to":"c"}`, 404, "", ""},
		{move("fixed", "c"), `/move/fixed {"to":"c"}`, 403, "", ""},
		{move("b", "c"), `/move/b {"to":"c"}`, 200, "", "c moved 2"},
		{oldTokens("c"), `/cfg/c/token?old {}`, 200, "", ""}, // there are none
		{token("c"), `/cfg/c/token {}`, 200, "", "c token_added 2"},
		{token("c"), `/cfg/c/token {}`, 200, "", "c token_added 2"},
		{token("fixed"), `/cfg/fixed/token {}`, 403, "", ""},
		{oldTokens("c"), `/cfg/c/token?old {}`, 200, "", "c tokens_removed 2"},
		{oldTokens("fixed"), `/cfg/fixed/token?old {}`, 403, "", ""},
		{remove("a"), `/del/a {}`, 200, "", "a deleted 0"},
		{remove("a"), `/del/a {}`, 404, "", ""},
		{remove("fixed"), `/del/fixed {}`, 403, "", ""},
	} {
		err := step.do(t.Context(), code.Saved.By("ann", "192.0.2.1"))
		path, body, _ := strings.Cut(step.request, " ")
		r := client.Do(gatewaytest.As(gatewaytest.NewRequest(http.MethodPost, path, body,
			"Content-Type", gatewaytest.TypeJSON, "Accept", gatewaytest.TypeJSON), "ann"))
		var answer struct{ Error, Field string }
		if json.Unmarshal([]byte(r.Body), &answer) != nil || r.Status != step.status || answer.Field != step.field {
			t.Errorf("%s: status %d %s", step.request, r.Status, r.Body)
		}
		e, typed := errors.AsType[*message.Error](err)
		if typed != (step.status != 200) || typed && (!strings.HasPrefix(answer.Error, e.Error()) || e.Field != step.field) {
			t.Errorf("%s: the error is %v, and the client gets %s", step.request, err, r.Body)
		}
		for name, g := range map[string]*gatewayOfTest{"code": code, "a client": client} {
			var log, event string
			for _, line := range g.log.TakeAll() {
				if line.Message != "saved configuration changed" {
					continue
				}
				f := line.ContextMap()
				log += fmt.Sprint(f["key"], " ", f["change"], " ", f["destinations"])
				event += fmt.Sprint("notify_config_changed", map[string]any{
					"key": f["key"], "space": f["space"], "change": f["change"], "destinations": f["destinations"], "user": f["user"],
				})
				if f["user"] != "ann" || f["client_ip"] != "192.0.2.1" || f["space"] != "default" {
					t.Errorf("%s by %s: the line in the log has %v", step.request, name, f)
				}
			}
			if events := strings.Join(g.events, ""); log != step.log || events != event {
				t.Errorf("%s by %s: the log has %q and the events are %s, want %q", step.request, name, log, events, step.log)
			}
			g.events = nil
		}
	}
}
