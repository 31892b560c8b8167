package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestSavedKeys saves, uses, reads, lists and deletes a key in all formats.
func TestSavedKeys(t *testing.T) {
	s := gatewaytest.NewStation(t)
	g := newSavedKeys(t, nil, gatewaytest.Everybody(), saved.Options{})
	yaml := "urls:\n  - " + s.NotifyURL("/yaml") + ":\n      tag: ops\n"
	for name, c := range map[string]struct{ contentType, body, paths string }{
		"urls as a text":     {gatewaytest.TypeJSON, `{"urls": "` + s.NotifyURL("/a") + "," + s.NotifyURL("/b") + `"}`, "a b"},
		"urls as an array":   {gatewaytest.TypeJSON, `{"urls": ["` + s.NotifyURL("/a") + `"]}`, "a"},
		"urls before config": {gatewaytest.TypeJSON, `{"urls": "` + s.NotifyURL("/a") + `", "config": "x", "format": "text"}`, "a"},
		"a form":             {gatewaytest.TypeForm, "urls=" + s.NotifyURL("/a"), "a"},
		"a text in a form":   {gatewaytest.TypeForm, "config=ops%3D" + s.NotifyURL("/a"), "a"},
		"YAML in a form":     {gatewaytest.TypeForm, "format=auto&config=" + strings.NewReplacer("\n", "%0A", " ", "+").Replace(yaml), "yaml"},
		"YAML in JSON":       {gatewaytest.TypeJSON, `{"format": "yaml", "config": "` + strings.ReplaceAll(yaml, "\n", `\n`) + `"}`, "yaml"},
		"plain text":         {"text/plain", s.NotifyURL("/a") + "\n" + s.NotifyURL("/b"), "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, slash := range []string{"", "/"} {
				if r := g.Post("/add/Home"+slash, c.contentType, c.body); r.Status != http.StatusOK || r.JSON(t).Error != nil {
					t.Fatalf("the answer is %d %s", r.Status, r.Body)
				}
			}
			if r := g.Post("/notify/Home", gatewaytest.TypeForm, "body=x"); r.Status != http.StatusOK {
				t.Errorf("the message gets %d %s", r.Status, r.Body)
			}
			if got := s.Paths(); got != c.paths {
				t.Errorf("the message arrived at %q, want %q", got, c.paths)
			}
		})
	}
	// An Apprise client identifies as a gateway. Its message still goes to all
	// URLs of the key.
	if r := g.Post("/add/Home", gatewaytest.TypeForm, "urls="+s.NotifyURL("/a")+","+s.NotifyURL("/b")); r.Status != http.StatusOK {
		t.Fatal(r.Body)
	}
	relayed := httptest.NewRequest(http.MethodPost, "/notify/Home", strings.NewReader("body=x"))
	relayed.Header.Set("Content-Type", gatewaytest.TypeForm)
	relayed.Header.Set("X-Apprise-Recursion-Count", "1")
	if r := g.Do(relayed); r.Status != http.StatusOK || s.Paths() != "a b" {
		t.Errorf("a message that has passed through a gateway gets %d %s", r.Status, r.Body)
	}
	text := " # a comment\r\nops=" + s.NotifyURL("/a") + "\n"
	if r := g.Post("/add/Home", "text/plain", text); r.Status != http.StatusOK {
		t.Fatalf("the answer is %d %s", r.Status, r.Body)
	}
	for _, route := range []string{"/get/Home", "/cfg/Home/"} {
		r := httptest.NewRequest(http.MethodPost, route, nil)
		if got := g.Do(r); got.Body != text || !strings.HasPrefix(got.Header.Get("Content-Type"), "text/plain") {
			t.Errorf("%s answers %q as %s; want the text byte for byte", route, got.Body, got.Header.Get("Content-Type"))
		}
	}
	if got, want := g.Post("/get/Home", "", "").Body, `{"format":"text","config":" # a comment\r\nops=`+s.NotifyURL("/a")+`\n"}`+
		"\n"; got != want {
		t.Errorf("as JSON it is %s, want %s", got, want)
	}
	for _, tt := range []struct{ sent, accept, want string }{
		{"", "*/*", "text/plain; charset=utf-8"}, // as apprise --config asks
		{gatewaytest.TypeForm, "*/*", "text/plain; charset=utf-8"},
		{gatewaytest.TypeJSON, "*/*", gatewaytest.TypeJSON},
		{gatewaytest.TypeJSON, "", gatewaytest.TypeJSON},
		{gatewaytest.TypeJSON, "text/plain", "text/plain; charset=utf-8"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/get/Home", strings.NewReader("{}"))
		r.Header.Set("Content-Type", tt.sent)
		r.Header.Set("Accept", tt.accept)
		if got := g.Do(r).Header.Get("Content-Type"); got != tt.want {
			t.Errorf("/get with Content-Type %q and Accept %q answers %s, want %s", tt.sent, tt.accept, got, tt.want)
		}
	}
	list := getAccepting(g, "/json/urls/Home", "*/*").Body
	_, rest, _ := strings.Cut(list, `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	if want := `{"tags":["ops"],"urls":[{"id":"` + id + `","service_name":"JSON","enabled":true,"url":"` + s.NotifyURL("/a") +
		`","template":{},"retry":0,"optional":false,"tags":["ops"],"tag_details":[{"name":"ops","priority":0,"token":"ops","exact":"0:ops"}]}]}` +
		"\n"; list != want || len(id) != 32 {
		t.Errorf("the URLs are %s, want %s", list, want)
	}
	if r := getAccepting(g, "/json/urls/Home?tag=other", "*/*"); r.Body != `{"tags":[],"urls":[]}`+"\n" {
		t.Errorf("the URLs with another tag are %s", r.Body)
	}
	if r := g.Post("/add/numbers", "text/plain", "2:Ops,dev,1:ops="+s.NotifyURL("/a")+"\n3:x="+s.NotifyURL("/b")); r.Status != http.StatusOK {
		t.Fatal(r.Body)
	}
	r := getAccepting(g, "/json/urls/numbers", "*/*").Body
	for _, want := range []string{
		`{"tags":["dev","ops","x"],"urls":[`,
		`"tags":["dev","ops"],"tag_details":[{"name":"dev","priority":0,"token":"dev","exact":"0:dev"},{"name":"ops","priority":1,` +
			`"token":"1:ops","exact":"1:ops"},{"name":"ops","priority":2,"token":"2:ops","exact":"2:ops"}]`,
		`"tags":["x"],"tag_details":[{"name":"x","priority":3,"token":"3:x","exact":"3:x"}]`,
	} {
		if !strings.Contains(r, want) {
			t.Errorf("with numbers: %s, want %s", r, want)
		}
	}
	if r := g.Post("/del/numbers", "", ""); r.Status != http.StatusOK {
		t.Error(r.Body)
	}
	if r := getAccepting(g, "/cfg", "application/json"); r.Body != `["Home"]`+"\n" {
		t.Errorf("the keys are %s", r.Body)
	}
	if r := g.Post("/del/Home", "", ""); r.Status != http.StatusOK {
		t.Errorf("deleting gets %d %s", r.Status, r.Body)
	}
	for _, r := range []gatewaytest.Reply{
		g.Post("/del/Home", "", ""), g.Post("/get/Home", "", ""),
		g.Post("/notify/Home", gatewaytest.TypeForm, "body=x"), getAccepting(g, "/json/urls/Home", "*/*"),
	} {
		if r.Status != http.StatusNotFound {
			t.Errorf("a deleted key gets %d %s", r.Status, r.Body)
		}
	}
}

// TestSaveMistakes checks that a configuration with a mistake is refused, that
// the error has the position but not the URL, and that the saved configuration
// stays.
func TestSaveMistakes(t *testing.T) {
	s := gatewaytest.NewStation(t)
	g := newSavedKeys(t, nil, gatewaytest.Everybody(), saved.Options{MaxURLs: 2, MaxSize: 1 << 10, MaxKeys: 1},
		gatewaytest.Key("fixed", s.NotifyURL("/fixed")))
	before := `{"urls": "` + s.NotifyURL("/a") + `"}`
	if r := g.Post("/add/ops", gatewaytest.TypeJSON, before); r.Status != http.StatusOK {
		t.Fatal(r.Body)
	}
	for name, c := range map[string]struct {
		target, body string
		status       int
		want         string
	}{
		"a wrong URL":    {"/add/ops", `{"urls": ["` + s.NotifyURL("/a") + `", "nope://t0ken/"]}`, 400, "URL 2, line 2"},
		"egress":         {"/add/ops", `{"urls": "json://10.1.2.3/t0ken"}`, 400, "10.1.2.3 is private"},
		"a line of text": {"/add/ops", `{"format": "text", "config": "# x\n\nt0ken t0ken\n"}`, 400, "line 3"},
		"YAML":           {"/add/ops", `{"format": "yaml", "config": "urls:\n - [t0ken\n"}`, 400, "line "},
		"an include": {
			"/add/ops", `{"format": "text", "config": "include http://127.0.0.1/t0ken"}`, 400,
			"cannot include others",
		},
		"a local include": {"/add/ops", `{"format": "text", "config": "include /etc/passwd"}`, 400, "cannot include others"},
		"too many URLs": {"/add/ops", `{"urls": ["` + s.NotifyURL("/1") + `", "` + s.NotifyURL("/2") + `", "` +
			s.NotifyURL("/3") + `"]}`, 400, "at most 2"},
		"too large": {
			"/add/ops", `{"urls": "` + s.NotifyURL("/"+strings.Repeat("x", 1100)) + `"}`, 413,
			"larger than 1.0 KiB",
		},
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
			r := g.Post(c.target, gatewaytest.TypeJSON, c.body)
			a := r.JSON(t)
			if r.Status != c.status || a.Error == nil || !strings.Contains(*a.Error, c.want) || strings.Contains(r.Body, "t0ken") {
				t.Errorf("the answer is %d %s, want %d and %q", r.Status, r.Body, c.status, c.want)
			}
			if got := g.Post("/get/ops", "", "").Body; !strings.Contains(got, s.NotifyURL("/a")) {
				t.Errorf("what was saved before is now %s", got)
			}
		})
	}
	r := httptest.NewRequest(http.MethodGet, "/add/ops", nil)
	if got := g.Do(r); got.Status != http.StatusMethodNotAllowed || got.Header.Get("Allow") != http.MethodPost {
		t.Errorf("GET /add/ops gets %d, Allow: %s", got.Status, got.Header.Get("Allow"))
	}
}

// TestManage checks who may read and change saved configurations.
func TestManage(t *testing.T) {
	t.Parallel()
	for manage, allowed := range map[string]struct {
		managers       *site.Managers
		stranger, user bool
	}{
		"":               {nil, false, false},
		"manage":         {&site.Managers{}, false, true},
		"manage bob ann": {&site.Managers{Named: []string{"bob", "ann"}}, false, true},
		"manage Ann":     {&site.Managers{Named: []string{"Ann"}}, false, false},
		"manage open":    {gatewaytest.Everybody(), true, true},
	} {
		g := newSavedKeys(t, nil, allowed.managers, saved.Options{})
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
				r.Header.Set("Content-Type", gatewaytest.TypeForm)
				r.Header.Set("Accept", "text/html")
				want := allowed.stranger
				if user {
					r, want = gatewaytest.As(r, "ann"), allowed.user
				}
				if got := g.Do(r); (got.Status != http.StatusForbidden) != want {
					t.Errorf("%q, %s %s, user %v: %d", manage, c.method, c.target, user, got.Status)
				}
			}
		}
		for _, target := range []string{"/status", "/details"} {
			if got := getAccepting(g, target, "*/*"); got.Status != http.StatusOK {
				t.Errorf("%q, %s: %d %s", manage, target, got.Status, got.Body)
			}
		}
	}
}

// TestManageFromOtherSites checks that pages of other sites cannot change keys through the browser
// of a manager.
func TestManageFromOtherSites(t *testing.T) {
	t.Parallel()
	g := newSavedKeys(t, nil, gatewaytest.Everybody(), saved.Options{})
	for _, target := range []string{"/add/ops", "/del/ops", "/get/ops"} {
		r := httptest.NewRequest(http.MethodPost, target, strings.NewReader("urls=json://127.0.0.1"))
		r.Header.Set("Content-Type", gatewaytest.TypeForm)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		if got := g.Do(r); got.Status != http.StatusForbidden {
			t.Errorf("%s: %d %s", target, got.Status, got.Body)
		}
	}
}

// TestConfigsOff checks that the routes do not exist without the setting.
func TestConfigsOff(t *testing.T) {
	t.Parallel()
	g := newSite(t, site.Options{})
	for _, target := range []string{"/add/ops", "/cfg", "/status", "/details", "/json/urls/ops"} {
		if got := getAccepting(g, target, "*/*"); got.Status != gatewaytest.NotServed {
			t.Errorf("%s: %d", target, got.Status)
		}
	}
}

// TestConfigPages checks that the page of a key of the Caddyfile shows no
// secrets and no editor, and that a saved key has an editor.
func TestConfigPages(t *testing.T) {
	t.Parallel()
	g := newSavedKeys(t, nil, gatewaytest.Everybody(), saved.Options{}, gatewaytest.Key("fixed", "gotify://push.example.com/s3cret-t0ken-x"))
	page := getAccepting(g, "/notify/console/keys/fixed", "text/html")
	if page.Status != http.StatusOK || strings.Contains(page.Body, "s3cret") || strings.Contains(page.Body, "<textarea") ||
		!strings.Contains(page.Body, "Gotify") {
		t.Errorf("the page of a key of the Caddyfile: %d %s", page.Status, page.Body)
	}
	if r := g.Post("/add/mine", gatewaytest.TypeForm, "urls=gotify://127.0.0.1/s3cret-t0ken-x"); r.Status != http.StatusOK {
		t.Fatal(r.Body)
	}
	page = getAccepting(g, "/notify/console/keys/mine?tab=settings", "text/html")
	if !strings.Contains(page.Body, `action="../../../add/mine"`) || !strings.Contains(page.Body, "<textarea") {
		t.Errorf("the page of a saved key has no editor: %s", page.Body)
	}
	list := getAccepting(g, "/notify/console/keys", "text/html")
	if !strings.Contains(list.Body, `href="../../notify/console/keys/mine"`) ||
		!strings.Contains(list.Body, `href="../../notify/console/keys/fixed"`) {
		t.Errorf("the list of keys: %s", list.Body)
	}
	if r := getAccepting(g, "/notify/console/keys?key=new", "text/html"); r.Status != http.StatusSeeOther ||
		r.Header.Get("Location") != "../../notify/console/keys/new" {
		t.Errorf("a new key: %d, Location: %s", r.Status, r.Header.Get("Location"))
	}
}
