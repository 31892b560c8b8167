package caddyhttp

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// attr returns an attribute of an element.
func attr(n *html.Node, name string) (value string, ok bool) {
	i := slices.IndexFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
	if i < 0 {
		return "", false
	}
	return n.Attr[i].Val, true
}

// formOf returns the fields of the form in a page whose method is POST and whose
// address ends in action, as a browser would submit it without a button.
func formOf(t *testing.T, page, action string) url.Values {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for form := range root.Descendants() {
		method, _ := attr(form, "method")
		to, _ := attr(form, "action")
		to, _, _ = strings.Cut(to, "#")
		if form.DataAtom != atom.Form || method != "post" || !strings.HasSuffix(to, action) {
			continue
		}
		out := url.Values{}
		for n := range form.Descendants() {
			name, ok := attr(n, "name")
			if !ok {
				continue
			}
			value, _ := attr(n, "value")
			switch n.DataAtom {
			case atom.Input:
				_, checked := attr(n, "checked")
				if kind, _ := attr(n, "type"); kind != "checkbox" && kind != "radio" || checked {
					out.Add(name, value)
				}
			case atom.Textarea:
				text := ""
				if n.FirstChild != nil {
					text = n.FirstChild.Data
				}
				out.Add(name, text)
			case atom.Select:
				for o := range n.Descendants() {
					if _, selected := attr(o, "selected"); o.DataAtom == atom.Option && selected {
						value, _ := attr(o, "value")
						out.Add(name, value)
					}
				}
			}
		}
		return out
	}
	t.Errorf("no form posts to %s; the problems are %q", action, regexp.MustCompile(`class="problem.*`).FindAllString(page, -1))
	return url.Values{}
}

// TestBuilderOfAllServices fills in the form of each service from a URL, submits it
// and checks that the same URL comes out.
func TestBuilderOfAllServices(t *testing.T) {
	t.Parallel()
	h, _ := newConfigGateway(t, t.TempDir(), "manage open", "")
	for _, s := range notifier.Services() {
		for _, example := range s.Examples {
			d, err := notifier.Parse(example+map[bool]string{true: "&", false: "?"}[strings.Contains(example, "?")]+"retry=3&emojis=yes&verify=no&rto=1.5", nil)
			if err != nil {
				t.Fatal(err)
			}
			page := submit(t, h, "/cfg/ops?build", url.Values{"do": {"read"}, "url": {d.URL()}, "tags": {"a b"}})
			if page.status != http.StatusOK {
				t.Fatalf("%s: %d %s", s.Name, page.status, page.body)
			}
			form := formOf(t, page.body, "?build="+s.Schemes[0])
			got := submit(t, h, "/cfg/ops?build="+s.Schemes[0], form)
			if made := formOf(t, got.body, "?draft"); made.Get("url") != d.URL() || made.Get("tags") != "a, b" {
				t.Errorf("%s: %s becomes %s", s.Name, d.URL(), made.Get("url"))
			}
		}
		for i := range s.URLs {
			page := get(t, h, "/cfg/ops?build="+s.Schemes[len(s.Schemes)-1]+"&form="+string(rune('1'+i)), browser)
			form := formOf(t, page.body, "?build="+s.Schemes[0])
			for _, f := range notifier.URLForms(s.Schemes[0])[i].Fields {
				name := map[bool]string{true: "v.", false: "p."}[f.Kind == notifier.KindMap] + f.Name
				if !form.Has(name) && !f.Elsewhere {
					t.Errorf("%s, form %d, has no field %s", s.Name, i+1, name)
				}
				if f.Secret && !strings.Contains(page.body, `type="password" name="`+name+`"`) && !f.Elsewhere {
					t.Errorf("%s, form %d: %s is readable", s.Name, i+1, name)
				}
			}
		}
	}
}

// TestBuilderKeepsValues checks that the URL has each value as it was filled
// in, with every character that has a meaning in URLs.
func TestBuilderKeepsValues(t *testing.T) {
	h, _ := newConfigGateway(t, t.TempDir(), "manage open", "")
	form := url.Values{
		"form": {"1"}, "scheme": {"jsons"}, "p.host": {"example.com"}, "p.port": {"8443"}, "p.user": {"a/b?c#d@e:f"}, "p.password": {" x%2F y&z "},
		"p.path": {"/hooks/ü%2Fx/a b/"}, "k.header": {"X-Key", "", "X-Other"}, "v.header": {"a=b;c", "unused", "1"}, "p.method": {"PUT"}, "p.verify": {"no"},
	}
	got := submit(t, h, "/cfg/ops?build=json", form)
	made := formOf(t, got.body, "?draft").Get("url")
	d, err := notifier.Parse(made, nil)
	if err != nil {
		t.Fatal(err, got.body)
	}
	const want = "jsons://a%2Fb%3Fc%23d%40e%3Af:x%252F%20y%26z@example.com:8443/hooks/%C3%BC%2Fx/a%20b/?method=PUT&+X-Key=a%3Db%3Bc&+X-Other=1&verify=no"
	if d.URL() != want {
		t.Errorf("%s\nis not %s", d.URL(), want)
	}
}

// TestBuilderMistakes checks that a mistake is shown beside its field, and that
// the fields keep their values.
func TestBuilderMistakes(t *testing.T) {
	h, _ := newConfigGateway(t, t.TempDir(), "manage open", "")
	for name, c := range map[string]struct {
		service string
		form    url.Values
		want    []string
	}{
		"a missing secret": {"discord", url.Values{"form": {"1"}, "p.webhook_id": {"4174216298"}}, []string{`id="p-webhook_token-problem">webhook_token is missing.`, `value="4174216298"`}},
		"several": {"gotify", url.Values{"form": {"1"}, "p.port": {"99999"}, "p.priority": {"x"}}, []string{
			`id="p-port-problem">port must be a whole number from 1 to 65535.`, `id="p-host-problem">`, `id="p-token-problem">`, `href="#p-port"`,
		}},
		"an address that egress blocks": {"json", url.Values{"form": {"1"}, "p.host": {"10.1.2.3"}}, []string{`role="alert">`, "10.1.2.3 is private"}},
		"a local file":                  {"fcm", url.Values{"form": {"1"}, "p.apikey": {"x"}, "p.targets": {"y"}, "p.keyfile": {"/etc/passwd"}, "p.project": {"p"}}, []string{`id="p-keyfile-problem"`}},
		"a wrong tag":                   {"json", url.Values{"form": {"1"}, "p.host": {"example.com"}, "tags": {"a,b.c"}}, []string{`id="own-tags-problem"`, `value="a,b.c"`}},
		"another service's scheme":      {"json", url.Values{"form": {"1"}, "p.host": {"example.com"}, "scheme": {"xml"}}, []string{"does not have the scheme"}},
		"a header":                      {"json", url.Values{"form": {"1"}, "p.host": {"example.com"}, "k.header": {"a b"}, "v.header": {"s3cret"}}, []string{`id="p-header-problem"`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := submit(t, h, "/cfg/ops?build="+c.service, c.form)
			for _, want := range c.want {
				if got.status != http.StatusOK || !strings.Contains(got.body, want) {
					t.Errorf("the page does not have %s: %d %s", want, got.status, got.body)
				}
			}
			if strings.Contains(got.body, "?draft") {
				t.Error("the page offers a URL to add")
			}
		})
	}
	for _, target := range []string{"/cfg/ops?build=nobody", "/cfg/ops?build", "/cfg/ops?build=json"} {
		if got := submit(t, h, target, url.Values{"form": {"9"}}); got.status != http.StatusBadRequest {
			t.Errorf("%s: %d", target, got.status)
		}
	}
	got := submit(t, h, "/cfg/ops?build", url.Values{"do": {"read"}, "url": {"https://nobody.example/t0ken"}})
	if !strings.Contains(got.body, `id="url-problem"`) || strings.Contains(got.body, "t0ken") {
		t.Errorf("an address of no service: %s", got.body)
	}
}

// TestBuilderFindsServices checks the search, and that the address of a webhook
// fills in a form.
func TestBuilderFindsServices(t *testing.T) {
	h, _ := newConfigGateway(t, t.TempDir(), "manage open", "services {\ndeny sns\n}")
	for query, want := range map[string]string{
		"build":                  `?build=46elks">46elks</a>`,
		"build=pover":            `<h1>Add Pushover to`,
		"build=sns":              `?build=46elks">46elks</a>`,
		"build=&search=push":     `?build=pover">Pushover</a>`,
		"build=&search=Pushover": `<h1>Add Pushover to`,
		"build=&search=pover":    `<h1>Add Pushover to`,
		"build=&search=nobody":   `No service has <q>nobody</q>`,
		"build=&search=sns":      `No service has <q>sns</q>`,
	} {
		got := get(t, h, "/cfg/ops?"+query, browser)
		_, body, _ := strings.Cut(got.body, "</style>")
		if got.status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%q: %d, no %s in %s", query, got.status, want, body)
		}
	}
	got := submit(t, h, "/cfg/ops?build", url.Values{"do": {"read"}, "url": {"https://discord.com/api/webhooks/4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js"}})
	form := formOf(t, got.body, "?build=discord")
	if form.Get("p.webhook_id") != "4174216298" || form.Get("p.webhook_token") != "JHMHI8qBe7bk2ZwO5U711o3dV_js" || !strings.Contains(got.body, `type="password" name="p.webhook_token"`) {
		t.Errorf("%v", form)
	}
	form.Set("do", "show")
	if got := submit(t, h, "/cfg/ops?build=discord", form); !strings.Contains(got.body, `type="text" name="p.webhook_token" value="JHMHI8qBe7bk2ZwO5U711o3dV_js"`) {
		t.Errorf("the secret is not shown: %s", got.body)
	}
}

// TestBuilderAdds checks that a URL comes into the editor in the format of the
// key, and is not saved.
func TestBuilderAdds(t *testing.T) {
	h, _ := newConfigGateway(t, t.TempDir(), "manage open", "")
	for name, c := range map[string]struct{ format, before, want string }{
		"a new key": {"", "", "a,b=json://example.com\n"},
		"text":      {"text", "# mine\nxml://example.com", "# mine\nxml://example.com\na,b=json://example.com\n"},
		"yaml":      {"yaml", "urls:\n  - xml://example.com\n", "urls:\n  - xml://example.com\n  - json://example.com:\n      tag: a, b\n"},
		"flow":      {"yaml", "urls: [xml://example.com]\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			key := strings.ReplaceAll(name, " ", "-")
			if c.before != "" {
				if r := post(t, h, "/add/"+key, typeForm, url.Values{"config": {c.before}, "format": {c.format}}.Encode()); r.status != http.StatusOK {
					t.Fatal(r.body)
				}
			}
			got := submit(t, h, "/cfg/"+key+"?draft", url.Values{"url": {"json://example.com"}, "tags": {"a, b"}})
			if c.want == "" {
				if !strings.Contains(got.body, "It cannot be added") || !strings.Contains(got.body, ">json://example.com</textarea>") {
					t.Errorf("%d %s", got.status, got.body)
				}
				return
			}
			if form := formOf(t, got.body, "add/"+key); form.Get("config") != c.want || !strings.Contains(got.body, "Not saved yet.") {
				t.Errorf("the editor has %q, want %q", form.Get("config"), c.want)
			}
			if saved := post(t, h, "/get/"+key, "", ""); c.before == "" && saved.status != http.StatusNotFound {
				t.Errorf("it is saved already: %s", saved.body)
			}
		})
	}
}

// TestBuilderTests tests a URL that is not saved, under the rules of saved URLs.
func TestBuilderTests(t *testing.T) {
	s := newStation(t)
	h, _ := newConfigGateway(t, t.TempDir(), "manage open", "")
	got := submit(t, h, "/cfg/new?test", url.Values{"url": {s.url("/a")}})
	if got.status != http.StatusOK || !strings.Contains(got.body, `class="delivered"`) || !strings.Contains(got.body, "Delivered in ") || s.paths() != "a" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := submit(t, h, "/cfg/new?test", url.Values{"url": {s.url("/refuse")}}); !strings.Contains(got.body, "answered 500") || s.paths() != "refuse" {
		t.Errorf("%d %s", got.status, got.body)
	}
	for _, to := range []string{"json://10.1.2.3/", "nope://x", ""} {
		if got := submit(t, h, "/cfg/new?test", url.Values{"url": {to}}); got.status != http.StatusBadRequest {
			t.Errorf("%q: %d %s", to, got.status, got.body)
		}
	}
}

// TestBuilderIsGuarded checks that only those who may manage can use the pages,
// only for keys that can be changed, and not from pages of other sites.
func TestBuilderIsGuarded(t *testing.T) {
	key := "key fixed {\nurl json://example.com\n}"
	for _, c := range []struct {
		manage, target, site string
		form                 url.Values // nil for GET
		status               int
	}{
		{"", "/cfg/ops?build", "", nil, 403},
		{"manage", "/cfg/ops?build", "", nil, 403},
		{"manage", "/cfg/ops?build=json", "", url.Values{"form": {"1"}}, 403},
		{"manage", "/cfg/ops?draft", "", url.Values{"url": {"json://example.com"}}, 403},
		{"manage open", "/cfg/ops?build=json", "cross-site", url.Values{"form": {"1"}}, 403},
		{"manage open", "/cfg/ops?draft", "cross-site", url.Values{"url": {"json://example.com"}}, 403},
		{"manage open", "/cfg/ops?test", "cross-site", url.Values{"url": {"json://example.com"}}, 403},
		{"manage open", "/cfg/fixed?build", "", nil, 403},
		{"manage open", "/cfg/fixed?build=json", "", url.Values{"form": {"1"}}, 403},
		{"manage open", "/cfg/fixed?draft", "", url.Values{"url": {"json://example.com"}}, 403},
		{"manage open", "/cfg/fixed?test", "", url.Values{"url": {"json://example.com"}}, 403},
		{"manage open", "/cfg/ops?build=json", "same-origin", url.Values{"form": {"1"}}, 200},
		{"manage open", "/cfg/ops?draft", "", url.Values{"url": {"json://10.1.2.3"}}, 400},
		{"manage open", "/cfg/messages?build", "", nil, 404},
	} {
		h, _ := newConfigGateway(t, t.TempDir(), c.manage, key)
		r := httptest.NewRequest(http.MethodGet, c.target, nil)
		if c.form != nil {
			r = httptest.NewRequest(http.MethodPost, c.target, strings.NewReader(c.form.Encode()))
			r.Header.Set("Content-Type", typeForm)
		}
		r.Header.Set("Accept", browser)
		if c.site != "" {
			r.Header.Set("Sec-Fetch-Site", c.site)
		}
		if got := do(t, h, r); got.status != c.status || got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%q, %s, %s: %d %s", c.manage, c.target, c.site, got.status, got.body)
		}
	}
	h, _ := newConfigGateway(t, t.TempDir(), "manage open", key)
	if got := post(t, h, "/cfg/ops?build=json", typeForm, "form=1"); got.status != http.StatusNotAcceptable {
		t.Errorf("a program gets %d", got.status)
	}
}
