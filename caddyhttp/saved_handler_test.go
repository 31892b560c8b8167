package caddyhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/storagetest"
)

// newConfigGateway returns a gateway with saved configurations in a folder, and
// their storage.
func newConfigGateway(t *testing.T, dir, configs, global string) (*Handler, *storagetest.Storage) {
	t.Helper()
	h := newGateway(t, open+"configs {\n"+configs+"\n}", global)
	storage := storagetest.New(dir)
	h.app.spaces.Storage = storage
	var err error
	if h.api.Saved.Store, err = configstore.New(configstore.Options{Storage: storage, Index: h.api.Saved.Index, Secret: h.api.Saved.Secret}); err != nil {
		t.Fatal(err)
	}
	return h, storage
}

func get(t *testing.T, h *Handler, target, accept string) reply {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Header.Set("Accept", accept)
	return do(t, h, r)
}

// TestSavedDefaultTag checks where a message without a tag goes.
func TestSavedDefaultTag(t *testing.T) {
	s := gatewaytest.NewStation(t)
	const all, none = "a b c", ""
	for setting, want := range map[string][3]string{ // of the keys mixed, tagged and plain
		"":                       {all, "a b", "c"},
		"default_tag untagged":   {"c", none, "c"},
		"default_tag ops":        {"a", "a", none},
		"default_tag home,other": {"b", "b", none},
	} {
		t.Run(setting, func(t *testing.T) {
			h, _ := newConfigGateway(t, t.TempDir(), "manage open\n"+setting, "")
			tagged := "ops=" + s.NotifyURL("/a") + "\nhome=" + s.NotifyURL("/b") + "\n"
			plain := s.NotifyURL("/c") + "\n"
			for i, text := range []string{tagged + plain, tagged, plain} {
				if r := post(t, h, "/add/k", "text/plain", text); r.status != http.StatusOK {
					t.Fatal(r.body)
				}
				status, problem := http.StatusOK, ""
				if want[i] == none {
					status, problem = http.StatusFailedDependency, "the message has no tag, and default_tag matches none"
				}
				r := post(t, h, "/notify/k", typeForm, "body=x")
				if got := s.Paths(); r.status != status || got != want[i] || !strings.Contains(r.body, problem) {
					t.Errorf("%s arrives at %q with %d %s; want %q and %d", text, got, r.status, r.body, want[i], status)
				}
				if r := post(t, h, "/notify/k", typeForm, "body=x&tag=all"); r.status != http.StatusOK {
					t.Errorf("with the tag all: %s", r.body)
				}
				s.Paths()
			}
		})
	}
}

// TestSavedKeys saves, uses, reads, lists and deletes a key in all formats.
func TestSavedKeys(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h, _ := newConfigGateway(t, t.TempDir(), "manage open", "")
	yaml := "urls:\n  - " + s.NotifyURL("/yaml") + ":\n      tag: ops\n"
	for name, c := range map[string]struct{ contentType, body, paths string }{
		"urls as a text":     {typeJSON, `{"urls": "` + s.NotifyURL("/a") + "," + s.NotifyURL("/b") + `"}`, "a b"},
		"urls as an array":   {typeJSON, `{"urls": ["` + s.NotifyURL("/a") + `"]}`, "a"},
		"urls before config": {typeJSON, `{"urls": "` + s.NotifyURL("/a") + `", "config": "x", "format": "text"}`, "a"},
		"a form":             {typeForm, "urls=" + s.NotifyURL("/a"), "a"},
		"a text in a form":   {typeForm, "config=ops%3D" + s.NotifyURL("/a"), "a"},
		"YAML in a form":     {typeForm, "format=auto&config=" + strings.NewReplacer("\n", "%0A", " ", "+").Replace(yaml), "yaml"},
		"YAML in JSON":       {typeJSON, `{"format": "yaml", "config": "` + strings.ReplaceAll(yaml, "\n", `\n`) + `"}`, "yaml"},
		"plain text":         {"text/plain", s.NotifyURL("/a") + "\n" + s.NotifyURL("/b"), "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, slash := range []string{"", "/"} {
				if r := post(t, h, "/add/Home"+slash, c.contentType, c.body); r.status != http.StatusOK || r.json(t).Error != nil {
					t.Fatalf("the answer is %d %s", r.status, r.body)
				}
			}
			if r := post(t, h, "/notify/Home", typeForm, "body=x"); r.status != http.StatusOK {
				t.Errorf("the message gets %d %s", r.status, r.body)
			}
			if got := s.Paths(); got != c.paths {
				t.Errorf("the message arrived at %q, want %q", got, c.paths)
			}
		})
	}
	// An Apprise client identifies as a gateway. Its message still goes to all
	// URLs of the key.
	if r := post(t, h, "/add/Home", typeForm, "urls="+s.NotifyURL("/a")+","+s.NotifyURL("/b")); r.status != http.StatusOK {
		t.Fatal(r.body)
	}
	relayed := httptest.NewRequest(http.MethodPost, "/notify/Home", strings.NewReader("body=x"))
	relayed.Header.Set("Content-Type", typeForm)
	relayed.Header.Set("X-Apprise-Recursion-Count", "1")
	if r := do(t, h, relayed); r.status != http.StatusOK || s.Paths() != "a b" {
		t.Errorf("a message that has passed through a gateway gets %d %s", r.status, r.body)
	}
	text := " # a comment\r\nops=" + s.NotifyURL("/a") + "\n"
	if r := post(t, h, "/add/Home", "text/plain", text); r.status != http.StatusOK {
		t.Fatalf("the answer is %d %s", r.status, r.body)
	}
	for _, route := range []string{"/get/Home", "/cfg/Home/"} {
		r := httptest.NewRequest(http.MethodPost, route, nil)
		if got := do(t, h, r); got.body != text || !strings.HasPrefix(got.header.Get("Content-Type"), "text/plain") {
			t.Errorf("%s answers %q as %s; want the text byte for byte", route, got.body, got.header.Get("Content-Type"))
		}
	}
	if got, want := post(t, h, "/get/Home", "", "").body, `{"format":"text","config":" # a comment\r\nops=`+s.NotifyURL("/a")+`\n"}`+"\n"; got != want {
		t.Errorf("as JSON it is %s, want %s", got, want)
	}
	for _, tt := range []struct{ sent, accept, want string }{
		{"", "*/*", "text/plain; charset=utf-8"}, // as apprise --config asks
		{typeForm, "*/*", "text/plain; charset=utf-8"},
		{typeJSON, "*/*", typeJSON},
		{typeJSON, "", typeJSON},
		{typeJSON, "text/plain", "text/plain; charset=utf-8"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/get/Home", strings.NewReader("{}"))
		r.Header.Set("Content-Type", tt.sent)
		r.Header.Set("Accept", tt.accept)
		if got := do(t, h, r).header.Get("Content-Type"); got != tt.want {
			t.Errorf("/get with Content-Type %q and Accept %q answers %s, want %s", tt.sent, tt.accept, got, tt.want)
		}
	}
	list := get(t, h, "/json/urls/Home", "*/*").body
	_, rest, _ := strings.Cut(list, `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	if want := `{"tags":["ops"],"urls":[{"id":"` + id + `","service_name":"JSON","enabled":true,"url":"` + s.NotifyURL("/a") + `","retry":0,"optional":false,"tags":["ops"],"tag_details":[{"name":"ops","priority":0,"token":"ops","exact":"0:ops"}]}]}` + "\n"; list != want || len(id) != 32 {
		t.Errorf("the URLs are %s, want %s", list, want)
	}
	if r := get(t, h, "/json/urls/Home?tag=other", "*/*"); r.body != `{"tags":[],"urls":[]}`+"\n" {
		t.Errorf("the URLs with another tag are %s", r.body)
	}
	if r := post(t, h, "/add/numbers", "text/plain", "2:Ops,dev,1:ops="+s.NotifyURL("/a")+"\n3:x="+s.NotifyURL("/b")); r.status != http.StatusOK {
		t.Fatal(r.body)
	}
	r := get(t, h, "/json/urls/numbers", "*/*").body
	for _, want := range []string{
		`{"tags":["dev","ops","x"],"urls":[`,
		`"tags":["dev","ops"],"tag_details":[{"name":"dev","priority":0,"token":"dev","exact":"0:dev"},{"name":"ops","priority":1,"token":"1:ops","exact":"1:ops"},{"name":"ops","priority":2,"token":"2:ops","exact":"2:ops"}]`,
		`"tags":["x"],"tag_details":[{"name":"x","priority":3,"token":"3:x","exact":"3:x"}]`,
	} {
		if !strings.Contains(r, want) {
			t.Errorf("with numbers: %s, want %s", r, want)
		}
	}
	if r := post(t, h, "/del/numbers", "", ""); r.status != http.StatusOK {
		t.Error(r.body)
	}
	if r := get(t, h, "/cfg", "application/json"); r.body != `["Home"]`+"\n" {
		t.Errorf("the keys are %s", r.body)
	}
	if r := post(t, h, "/del/Home", "", ""); r.status != http.StatusOK {
		t.Errorf("deleting gets %d %s", r.status, r.body)
	}
	for _, r := range []reply{post(t, h, "/del/Home", "", ""), post(t, h, "/get/Home", "", ""), post(t, h, "/notify/Home", typeForm, "body=x"), get(t, h, "/json/urls/Home", "*/*")} {
		if r.status != http.StatusNotFound {
			t.Errorf("a deleted key gets %d %s", r.status, r.body)
		}
	}
}

// TestURLIDs checks that the ID of a URL is the same at other instances and after
// a restart, differs from other URLs', and depends on a key.
func TestURLIDs(t *testing.T) {
	ids := func(dir, secret string) (out []string) {
		t.Helper()
		h, _ := newConfigGateway(t, dir, "manage open"+secret, "")
		for _, urls := range []string{"json://127.0.0.1/a,json://127.0.0.1/b", "json://127.0.0.1/a"} {
			if r := post(t, h, "/add/ops", typeForm, "urls="+urls); r.status != http.StatusOK {
				t.Fatal(r.body)
			}
			for _, m := range regexp.MustCompile(`"id":"(\w+)"`).FindAllStringSubmatch(get(t, h, "/json/urls/ops", "*/*").body, -1) {
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
	const secret = "\nsecret 0123456789abcdef"
	if a, b := ids(t.TempDir(), secret), ids(t.TempDir(), secret); !slices.Equal(a, b) || a[0] == first[0] {
		t.Errorf("IDs with a secret: %q and %q", a, b)
	}
}

// TestSaveMistakes checks that a configuration with a mistake is refused, that
// the error has the position but not the URL, and that the saved configuration
// stays.
func TestSaveMistakes(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h, _ := newConfigGateway(t, t.TempDir(), "manage open\nmax_urls 2\nmax_size 1KiB\nmax_keys 1", "key fixed {\nurl "+s.NotifyURL("/fixed")+"\n}")
	before := `{"urls": "` + s.NotifyURL("/a") + `"}`
	if r := post(t, h, "/add/ops", typeJSON, before); r.status != http.StatusOK {
		t.Fatal(r.body)
	}
	for name, c := range map[string]struct {
		target, body string
		status       int
		want         string
	}{
		"a wrong URL":                     {"/add/ops", `{"urls": ["` + s.NotifyURL("/a") + `", "nope://t0ken/"]}`, 400, "URL 2, line 2"},
		"egress":                          {"/add/ops", `{"urls": "json://10.1.2.3/t0ken"}`, 400, "10.1.2.3 is private"},
		"a line of text":                  {"/add/ops", `{"format": "text", "config": "# x\n\nt0ken t0ken\n"}`, 400, "line 3"},
		"YAML":                            {"/add/ops", `{"format": "yaml", "config": "urls:\n - [t0ken\n"}`, 400, "line "},
		"an include":                      {"/add/ops", `{"format": "text", "config": "include http://127.0.0.1/t0ken"}`, 400, "cannot include others"},
		"a local include":                 {"/add/ops", `{"format": "text", "config": "include /etc/passwd"}`, 400, "cannot include others"},
		"too many URLs":                   {"/add/ops", `{"urls": ["` + s.NotifyURL("/1") + `", "` + s.NotifyURL("/2") + `", "` + s.NotifyURL("/3") + `"]}`, 400, "at most 2"},
		"too large":                       {"/add/ops", `{"urls": "` + s.NotifyURL("/"+strings.Repeat("x", 1100)) + `"}`, 413, "larger than 1.0 KiB"},
		"no URL":                          {"/add/ops", `{"format": "text", "config": "# none\n"}`, 400, "has no notification URL"},
		"nothing":                         {"/add/ops", `{}`, 400, "urls or config is missing"},
		"no format":                       {"/add/ops", `{"config": "json://localhost"}`, 400, "format is missing"},
		"an unknown format":               {"/add/ops", `{"config": "json://localhost", "format": "toml"}`, 400, "text, yaml or auto"},
		"a wrong type":                    {"/add/ops", `{"urls": 1}`, 400, "urls"},
		"too many keys":                   {"/add/more", before, 400, "max_keys"},
		"a malformed key":                 {"/add/a.b", before, 404, "letters"},
		"a reserved key":                  {"/add/messages", before, 404, "messages"},
		"a key of the Caddyfile":          {"/add/fixed", before, 403, "in the configuration"},
		"reading a key of the Caddyfile":  {"/get/fixed", "", 403, "in the configuration"},
		"deleting a key of the Caddyfile": {"/del/fixed", "", 403, "in the configuration"},
	} {
		t.Run(name, func(t *testing.T) {
			r := post(t, h, c.target, typeJSON, c.body)
			a := r.json(t)
			if r.status != c.status || a.Error == nil || !strings.Contains(*a.Error, c.want) || strings.Contains(r.body, "t0ken") {
				t.Errorf("the answer is %d %s, want %d and %q", r.status, r.body, c.status, c.want)
			}
			if got := post(t, h, "/get/ops", "", "").body; !strings.Contains(got, s.NotifyURL("/a")) {
				t.Errorf("what was saved before is now %s", got)
			}
		})
	}
	r := httptest.NewRequest(http.MethodGet, "/add/ops", nil)
	if got := do(t, h, r); got.status != http.StatusMethodNotAllowed || got.header.Get("Allow") != http.MethodPost {
		t.Errorf("GET /add/ops gets %d, Allow: %s", got.status, got.header.Get("Allow"))
	}
}

// TestManage checks who may read and change saved configurations.
func TestManage(t *testing.T) {
	asUser := func(r *http.Request) *http.Request {
		values := caddy.NewReplacer()
		values.Set("http.auth.user.id", "ann")
		return r.WithContext(context.WithValue(r.Context(), caddy.ReplacerCtxKey, values))
	}
	for manage, allowed := range map[string]struct{ stranger, user bool }{
		"":               {false, false},
		"manage":         {false, true},
		"manage bob ann": {false, true},
		"manage Ann":     {false, false},
		"manage open":    {true, true},
	} {
		h, _ := newConfigGateway(t, t.TempDir(), manage, "")
		for _, c := range []struct{ method, target string }{
			{http.MethodPost, "/add/ops"},
			{http.MethodPost, "/get/ops"},
			{http.MethodPost, "/cfg/ops"},
			{http.MethodPost, "/del/ops"},
			{http.MethodGet, "/cfg"},
			{http.MethodGet, "/cfg/ops"},
		} {
			for _, user := range []bool{false, true} {
				r := httptest.NewRequest(c.method, c.target, strings.NewReader("urls=json://127.0.0.1"))
				r.Header.Set("Content-Type", typeForm)
				r.Header.Set("Accept", "text/html")
				want := allowed.stranger
				if user {
					r, want = asUser(r), allowed.user
				}
				if got := do(t, h, r); (got.status != http.StatusForbidden) != want {
					t.Errorf("%q, %s %s, user %v: %d", manage, c.method, c.target, user, got.status)
				}
			}
		}
		for _, target := range []string{"/status", "/details"} {
			if got := get(t, h, target, "*/*"); got.status != http.StatusOK {
				t.Errorf("%q, %s: %d %s", manage, target, got.status, got.body)
			}
		}
	}
}

// TestManageFromOtherSites checks that pages of other sites cannot change keys
// through the browser of a user who may.
func TestManageFromOtherSites(t *testing.T) {
	h, _ := newConfigGateway(t, t.TempDir(), "manage open", "")
	for _, target := range []string{"/add/ops", "/del/ops", "/get/ops"} {
		r := httptest.NewRequest(http.MethodPost, target, strings.NewReader("urls=json://127.0.0.1"))
		r.Header.Set("Content-Type", typeForm)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		if got := do(t, h, r); got.status != http.StatusForbidden {
			t.Errorf("%s: %d %s", target, got.status, got.body)
		}
	}
}

// TestConfigsOff checks that the routes do not exist without the setting.
func TestConfigsOff(t *testing.T) {
	h := newGateway(t, "", "")
	for _, target := range []string{"/add/ops", "/cfg", "/status", "/details", "/json/urls/ops"} {
		if got := get(t, h, target, "*/*"); got.status != nextStatus {
			t.Errorf("%s: %d", target, got.status)
		}
	}
}

// TestSavedStorageDown checks that the last good copy is used while the storage
// is down, and that a key that was never read gets a 503.
func TestSavedStorageDown(t *testing.T) {
	s := gatewaytest.NewStation(t)
	dir := t.TempDir()
	h, storage := newConfigGateway(t, dir, "manage open\nrefresh 1ns", "")
	if r := post(t, h, "/add/used", typeForm, "urls="+s.NotifyURL("/used")); r.status != http.StatusOK {
		t.Fatal(r.body)
	}
	if r := post(t, h, "/add/unused", typeForm, "urls="+s.NotifyURL("/unused")); r.status != http.StatusOK {
		t.Fatal(r.body)
	}
	if r := post(t, h, "/notify/used", typeForm, "body=x"); r.status != http.StatusOK {
		t.Fatal(r.body)
	}
	s.Take()
	storage.Down.Store(true)
	if r := post(t, h, "/notify/used", typeForm, "body=x"); r.status != http.StatusOK || s.Paths() != "used" {
		t.Errorf("a key that was used gets %d %s", r.status, r.body)
	}
	for _, r := range []reply{
		post(t, h, "/notify/unused", typeForm, "body=x"), post(t, h, "/add/used", typeForm, "urls="+s.NotifyURL("/x")), post(t, h, "/get/used", "", ""),
	} {
		if r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" || strings.Contains(r.body, storagetest.ErrDown.Error()) {
			t.Errorf("the answer is %d %s, want a 503 with Retry-After", r.status, r.body)
		}
	}
	h.api.Saved.Shared.Checked = time.Time{}
	if r := get(t, h, "/status", "text/plain"); r.status != http.StatusExpectationFailed || r.body != "CONFIG_PERMISSION_ISSUE" {
		t.Errorf("/status gets %d %s", r.status, r.body)
	}
	storage.Down.Store(false)
	if r := post(t, h, "/notify/unused", typeForm, "body=x"); r.status != http.StatusOK {
		t.Errorf("when the storage is back: %d %s", r.status, r.body)
	}
}

// TestTwoGateways checks that two gateways on one storage see each other's
// changes, including deletions, after the refresh time.
func TestTwoGateways(t *testing.T) {
	s := gatewaytest.NewStation(t)
	dir := t.TempDir()
	a, _ := newConfigGateway(t, dir, "manage open\nrefresh 1ns", "")
	b, _ := newConfigGateway(t, dir, "refresh 1ns", "")
	for _, path := range []string{"/first", "/second"} {
		if r := post(t, a, "/add/ops", typeForm, "urls="+s.NotifyURL(path)); r.status != http.StatusOK {
			t.Fatal(r.body)
		}
		if r := post(t, b, "/notify/ops", typeForm, "body=x"); r.status != http.StatusOK || "/"+s.Paths() != path {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	if r := post(t, a, "/del/ops", "", ""); r.status != http.StatusOK {
		t.Fatal(r.body)
	}
	if r := post(t, b, "/notify/ops", typeForm, "body=x"); r.status != http.StatusNotFound {
		t.Errorf("after the deletion: %d %s", r.status, r.body)
	}
}

// TestSavedKeyCost checks that an unused key is not read, and that a used key
// is read once within the refresh time and keeps the destinations of unchanged
// URLs.
func TestSavedKeyCost(t *testing.T) {
	s := gatewaytest.NewStation(t)
	dir := t.TempDir()
	h, storage := newConfigGateway(t, dir, "manage open\nrefresh 1h\nmax_keys 200", "")
	for i := range 100 {
		if err := h.api.Saved.Store.Save(t.Context(), fmt.Sprint("key", i), configstore.FormatText, s.NotifyURL("/x"), 200); err != nil {
			t.Fatal(err)
		}
	}
	if len(h.api.Saved.Keys) > 0 || storage.Loads.Load() > 0 {
		t.Error("keys that are not used are read")
	}
	for range 50 {
		if _, err := h.api.Resolved.Key(t.Context(), "key1"); err != nil {
			t.Fatal(err)
		}
		if _, err := h.api.Resolved.Key(t.Context(), "unknown"); !errors.Is(err, site.ErrNoKey) {
			t.Fatal(err)
		}
	}
	if n := storage.Loads.Load(); n != 1 {
		t.Errorf("50 uses of a key read it %d times", n)
	}
	before, _ := h.api.Resolved.Key(t.Context(), "key1")
	stays := before.Targets[0].Destination
	if r := post(t, h, "/add/key1", typeForm, "urls="+s.NotifyURL("/x")+","+s.NotifyURL("/new")); r.status != http.StatusOK {
		t.Fatal(r.body)
	}
	after, err := h.api.Resolved.Key(t.Context(), "key1")
	if err != nil || len(after.Targets) != 2 || after.Targets[0].Destination != stays {
		t.Errorf("after the change, the destination of the unchanged URL is another one: %v", err)
	}
}

// TestSavedConcurrently changes and uses a key at the same time.
func TestSavedConcurrently(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h, _ := newConfigGateway(t, t.TempDir(), "manage open\nrefresh 1ns", "")
	if r := post(t, h, "/add/ops", typeForm, "urls="+s.NotifyURL("/0")); r.status != http.StatusOK {
		t.Fatal(r.body)
	}
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			if r := post(t, h, "/add/ops", typeForm, "urls="+s.NotifyURL(fmt.Sprint("/", i))); r.status != http.StatusOK {
				t.Error(r.body)
			}
		})
		wg.Go(func() {
			if r := post(t, h, "/notify/ops", typeForm, "body=x"); r.status != http.StatusOK {
				t.Error(r.body)
			}
		})
	}
	wg.Wait()
	if n := len(s.Take()); n != 10 {
		t.Errorf("%d of 10 messages arrived", n)
	}
}

// TestConfigPages checks that the page of a key of the Caddyfile shows no
// secrets and no editor, and that a saved key has an editor.
func TestConfigPages(t *testing.T) {
	h, _ := newConfigGateway(t, t.TempDir(), "manage open", "key fixed {\nurl gotify://push.example.com/s3cret-t0ken-x\n}")
	page := get(t, h, "/cfg/fixed", "text/html")
	if page.status != http.StatusOK || strings.Contains(page.body, "s3cret") || strings.Contains(page.body, "<textarea") || !strings.Contains(page.body, "Gotify") {
		t.Errorf("the page of a key of the Caddyfile: %d %s", page.status, page.body)
	}
	if r := post(t, h, "/add/mine", typeForm, "urls=gotify://127.0.0.1/s3cret-t0ken-x"); r.status != http.StatusOK {
		t.Fatal(r.body)
	}
	page = get(t, h, "/cfg/mine", "text/html")
	if !strings.Contains(page.body, `action="../add/mine"`) || !strings.Contains(page.body, "<textarea") {
		t.Errorf("the page of a saved key has no editor: %s", page.body)
	}
	list := get(t, h, "/cfg/", "text/html")
	if !strings.Contains(list.body, `href="../notify/console/keys/mine"`) || !strings.Contains(list.body, `href="../notify/console/keys/fixed"`) {
		t.Errorf("the list of keys: %s", list.body)
	}
	if r := get(t, h, "/cfg?key=new", "text/html"); r.status != http.StatusSeeOther || r.header.Get("Location") != "./notify/console/keys/new" {
		t.Errorf("a new key: %d, Location: %s", r.status, r.header.Get("Location"))
	}
}
