package console_test

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

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
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

// urlLine returns the line for a Caddyfile that a form makes.
func urlLine(t *testing.T, g *gatewaytest.Gateway, scheme string, form url.Values) string {
	t.Helper()
	form.Set("do", "line")
	page := submit(g, "/notify/console/keys/ops?build="+scheme, form).Body
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if id, _ := attr(n, "id"); id == "line" {
			return n.FirstChild.Data
		}
	}
	t.Errorf("%s: no line; the problems are %q", scheme, regexp.MustCompile(`class="problem.*`).FindAllString(page, -1))
	return ""
}

// TestBuilderOfAllServices fills in the form of each service from a URL, submits it
// and checks that the same URL comes out.
func TestBuilderOfAllServices(t *testing.T) {
	racetest.SkipIfSlow(t)
	t.Parallel()
	g := gatewaytest.New(t, openConfigs())
	for _, s := range notifier.Services() {
		for _, example := range s.Examples {
			d, err := notifier.Parse(example+map[bool]string{true: "&", false: "?"}[strings.Contains(example, "?")]+
				"retry=3&emojis=yes&verify=no&rto=1.5", nil)
			if err != nil {
				t.Fatal(err)
			}
			page := submit(g, "/notify/console/keys/ops?build", url.Values{"text": {d.URL()}, "tags": {"a b"}})
			if page.Status != http.StatusOK {
				t.Fatalf("%s: %d %s", s.Name, page.Status, page.Body)
			}
			form := formOf(t, page.Body, "?build="+s.Schemes[0])
			if made := urlLine(t, g, s.Schemes[0], form); made != "url "+d.URL()+" a b" {
				t.Errorf("%s: %s becomes %s", s.Name, d.URL(), made)
			}
		}
		for i := range s.URLs {
			page := get(g, "/notify/console/keys/ops?build="+s.Schemes[len(s.Schemes)-1]+"&form="+string(rune('1'+i)), browser)
			form := formOf(t, page.Body, "?build="+s.Schemes[0])
			for _, f := range notifier.URLForms(s.Schemes[0])[i].Fields {
				name := map[bool]string{true: "v.", false: "p."}[f.Kind == notifier.KindMap] + f.Name
				if !form.Has(name) && !f.Elsewhere {
					t.Errorf("%s, form %d, has no field %s", s.Name, i+1, name)
				}
				if f.Secret && !strings.Contains(page.Body, `type="password" name="`+name+`"`) && !f.Elsewhere {
					t.Errorf("%s, form %d: %s is readable", s.Name, i+1, name)
				}
			}
		}
	}
}

// TestBuilderKeepsValues checks that the URL has each value as it was filled
// in, with every character that has a meaning in URLs.
func TestBuilderKeepsValues(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, openConfigs())
	form := url.Values{
		"form": {"1"}, "scheme": {"jsons"}, "p.host": {"example.com"}, "p.port": {"8443"}, "p.user": {"a/b?c#d@e:f"},
		"p.password": {" x%2F y&z "},
		"p.path":     {"/hooks/ü%2Fx/a b/"}, "k.headers": {"X-Key", "", "X-Other"}, "v.headers": {"a=b;c", "unused", "1"}, "p.method": {"PUT"},
		"p.verify": {"no"},
	}
	made := strings.TrimPrefix(urlLine(t, g, "json", form), "url ")
	d, err := notifier.Parse(made, nil)
	if err != nil {
		t.Fatal(err, made)
	}
	const want = "jsons://a%2Fb%3Fc%23d%40e%3Af:x%252F%20y%26z@example.com:8443/hooks/%C3%BC%2Fx/a%20b/?method=PUT&+X-Key=a%3Db%3Bc&" +
		"+X-Other=1&verify=no"
	if d.URL() != want {
		t.Errorf("%s\nis not %s", d.URL(), want)
	}
}

// TestBuilderMistakes checks that a mistake is shown beside its field, and that
// the fields keep their values.
func TestBuilderMistakes(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, openConfigs())
	for name, c := range map[string]struct {
		service string
		form    url.Values
		want    []string
	}{
		"a missing secret": {
			"discord",
			url.Values{"form": {"1"}, "p.webhook_id": {"4174216298"}},
			[]string{`id="p-webhook_token-problem">webhook_token is missing.`, `value="4174216298"`},
		},
		"several": {"gotify", url.Values{"form": {"1"}, "p.port": {"99999"}, "p.priority": {"x"}}, []string{
			`id="p-port-problem">port must be a whole number from 1 to 65535.`, `id="p-host-problem">`, `id="p-token-problem">`, `href="#p-port"`,
		}},
		"an address that egress blocks": {
			"json",
			url.Values{"form": {"1"}, "p.host": {"10.1.2.3"}},
			[]string{`role="alert">`, "10.1.2.3 is private"},
		},
		"a local file": {"fcm", url.Values{
			"form": {"1"}, "p.apikey": {"x"}, "p.targets": {"y"}, "p.keyfile": {"/etc/passwd"},
			"p.project": {"p"},
		}, []string{`id="p-keyfile-problem"`}},
		"a wrong tag": {
			"json",
			url.Values{"form": {"1"}, "p.host": {"example.com"}, "tags": {"a,b.c"}},
			[]string{`id="own-tags-problem"`, `value="a,b.c"`},
		},
		"another service's scheme": {
			"json",
			url.Values{"form": {"1"}, "p.host": {"example.com"}, "scheme": {"xml"}},
			[]string{"does not have the scheme"},
		},
		"a header": {
			"json",
			url.Values{"form": {"1"}, "p.host": {"example.com"}, "k.headers": {"a b"}, "v.headers": {"s3cret"}},
			[]string{`id="p-headers-problem"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.form.Set("do", "save")
			got := submit(g, "/notify/console/keys/ops?build="+c.service, c.form)
			for _, want := range c.want {
				if got.Status != http.StatusOK || !strings.Contains(got.Body, want) {
					t.Errorf("the page does not have %s: %d %s", want, got.Status, got.Body)
				}
			}
			if strings.Contains(got.Body, `id="line"`) {
				t.Error("the page shows a line")
			}
		})
	}
	for _, target := range []string{"/notify/console/keys/ops?build=nobody", "/notify/console/keys/ops?build=json"} {
		if got := submit(g, target, url.Values{"form": {"9"}}); got.Status != http.StatusBadRequest {
			t.Errorf("%s: %d", target, got.Status)
		}
	}
}

// TestBuilderFindsServices checks the search and the groups, also if the site does not
// permit each service.
func TestBuilderFindsServices(t *testing.T) {
	t.Parallel()
	o := openConfigs()
	o.Global.Services = &site.ServiceRule{Deny: []string{"sns"}}
	g := gatewaytest.New(t, o)
	for query, want := range map[string][]string{
		"build": {
			`<h2 id="all">All `, `<summary><h3>SMS and calls</h3> <small>3`,
			`href="../../../notify/console/keys/ops?build=46elks"><span class="mark group-sms" aria-hidden="true">4</span><span>46elks</span></a>`,
		},
		"build=pover": {`Add Pushover to`, `<span class="mark group-phone" aria-hidden="true">P</span>`},
		"build=sns":   {`<h2 id="all">All `},
		"build=matrix": {
			`aria-current="true">With an access token</strong>`,
			`value="2" formnovalidate>With a user name and a password</button>`,
		},
		"build=matrix&form=2":  {`aria-current="true">With a user name and a password</strong>`},
		"build=matrix&form=99": {`aria-current="true">With an access token</strong>`},
		"build=&search=gmail": {
			`1 service for <q>gmail</q>`, `?build=mailto&amp;provider=Gmail">`,
			`<strong>Gmail</strong><small>E-Mail: an address and its app password</small>`,
		},
		"build=&search=nobody": {`value="nobody"`, `class="problem card" id="text-problem">No service gives out a text of this form`},
	} {
		got := get(g, "/notify/console/keys/ops?"+query, browser)
		_, body, _ := strings.Cut(got.Body, "</style>")
		for _, want := range want {
			if got.Status != http.StatusOK || !strings.Contains(body, want) || strings.Contains(body, "AWS SNS") {
				t.Errorf("%q: %d, no %s in %s", query, got.Status, want, body)
			}
		}
	}
	for text, want := range map[string]string{
		"arn:aws:sns:us-east-1:123456789012:alerts": "are not permitted here",
		"sns://x": "are not permitted here",
	} {
		if got := submit(g, "/notify/console/keys/ops?build", url.Values{"text": {text}}); !strings.Contains(got.Body, want) {
			t.Errorf("%s: %s", text, got.Body)
		}
	}
}

// TestBuilderRecognises checks where a text in the field leads, and that the text is
// still there if it is not recognised.
func TestBuilderRecognises(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, openConfigs())
	const token = "123456789:AAabcdefghijklmnopqrstuvwxyz0123456"
	for name, c := range map[string]struct {
		fields url.Values
		want   []string
	}{
		"a token": {
			url.Values{"text": {token}},
			[]string{
				`Add Telegram to`, `What you pasted is the token of a bot. It is filled in below.`,
				`type="password" name="p.bot_token" value="` + token + `"`,
			},
		},
		"a token while one types": {
			url.Values{"text": {token}, "do": {"live"}},
			[]string{`Add a destination to`, `form="find" name="as" value="tgram"`, `<small>the token of a bot</small>`, `value="` + token + `"`},
		},
		"a webhook": {
			url.Values{"text": {"https://discord.com/api/webhooks/4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js"}},
			[]string{
				`Add Discord to`, `name="address" value="https://discord.com/api/webhooks/4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js"`,
				`name="p.webhook_id" value=""`,
			},
		},
		"a server": {
			url.Values{"text": {"https://hass.example.com:8443"}},
			[]string{
				`Add HomeAssistant to`, `name="p.host" value="hass.example.com"`, `name="p.port" value="8443"`,
				`<option value="hassios" selected>`,
			},
		},
		"a name that is not enough": {
			url.Values{"text": {"@ops_bot"}},
			[]string{`Add a destination to`, `value="@ops_bot"`, `the name of a bot: Telegram needs the token of the bot, which @BotFather shows`},
		},
		"and its form": {
			url.Values{"text": {"@ops_bot"}, "as": {"tgram"}},
			[]string{`Add Telegram to`, `role="alert">`, `What you pasted is the name of a bot`},
		},
		"several": {
			url.Values{"text": {"alice@gmail.com"}},
			[]string{`Add a destination to`, `name="as" value="mailto"`, `name="as" value="brevo"`, `value="alice@gmail.com"`},
		},
		"one of several": {
			url.Values{"text": {"alice@gmail.com"}, "as": {"mailto"}},
			[]string{`Add Gmail to`, `name="account" value="alice@gmail.com"`, "Please note: the password is that of the mail account"},
		},
		"of an unknown provider": {
			url.Values{"text": {"alice@example.org"}, "as": {"mailto"}},
			[]string{`Add E-Mail to`, `name="p.user" value="alice"`, `name="p.host" value="example.org"`},
		},
		"of a closed provider": {
			url.Values{"text": {"alice@hotmail.com"}, "as": {"mailto"}},
			[]string{`Please note: Outlook.com and Hotmail accept no password of a program; send with Office 365`},
		},
		"a provider": {url.Values{"text": {"gmail"}}, []string{`Add Gmail to`}},
		"a word":     {url.Values{"text": {"exchange"}}, []string{`services for <q>exchange</q>`, `build=mailto`}},
		"a scheme that is a group": {
			url.Values{"text": {"push"}},
			[]string{`services for <q>push</q>`, `build=ntfy`, `build=push"`, `<h2 id="own-device">This phone or browser</h2>`},
		},
		"a password with a slash": {
			url.Values{"text": {"mailtos://me:pa/ss@example.org"}},
			[]string{
				`Add E-Mail to`, `name="p.password" value="pa/ss"`, `name="p.host" value="example.org"`,
				`Please note: its password has characters that a URL has encoded`,
			},
		},
		"a telephone number": {
			url.Values{"text": {"+4915112345678"}},
			[]string{
				`<ul class="tiles wide-tiles">` + "\n" + `<li><button class="tile" form="find" name="as" value="twilio">`,
				` more services</summary>`,
			},
		},
		"a name":   {url.Values{"text": {"pushover"}}, []string{`Add Pushover to`}},
		"a scheme": {url.Values{"text": {"pover://"}}, []string{`Add Pushover to`}},
		"nothing known": {
			url.Values{"text": {"t0ken hello"}},
			[]string{
				`id="text-problem">No service gives out a text of this form; search for the name`,
				`value="t0ken hello"`,
			},
		},
		"an unknown address": {
			url.Values{"text": {"https://nobody.example/#t0ken"}},
			[]string{`id="text-problem">The URL is a web address that belongs to none of the services`, `value="https://nobody.example/#t0ken"`},
		},
		"a webhook of one's own": {
			url.Values{"text": {"http://nobody.example/a?t0ken=1"}, "as": {"json"}},
			[]string{`Add JSON to`, `name="p.path" value="a"`, `name="k.params" value="t0ken"`, `<option value="json" selected>`},
		},
		"a retired service": {
			url.Values{"text": {"msteams://t0ken"}},
			[]string{`Microsoft has switched off the connectors`, `value="msteams://t0ken"`},
		},
		"not of the service": {
			url.Values{"text": {"t0ken hello"}, "as": {"discord"}},
			[]string{
				`Add Discord to`, `What you pasted is not recognised as something of Discord; write it into its field below.`,
				`name="text" type="text" value="t0ken hello"`,
			},
		},
		"of another service": {
			url.Values{"text": {token}, "as": {"discord"}},
			[]string{`Add Discord to`, `not recognised as something of Discord`, `value="` + token + `"`},
		},
		"nothing": {url.Values{"text": {" "}}, []string{`<h2 id="all">All `}},
	} {
		got := submit(g, "/notify/console/keys/ops?build", c.fields)
		_, body, _ := strings.Cut(got.Body, "</style>")
		for _, want := range c.want {
			if got.Status != http.StatusOK || !strings.Contains(body, want) {
				t.Errorf("%s: %d, no %s in %s", name, got.Status, want, body)
			}
		}
	}
}

// TestBuilderWays checks that the values stay if one changes to another way to write
// the URL.
func TestBuilderWays(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, openConfigs())
	got := submit(g, "/notify/console/keys/ops?build=matrix",
		url.Values{"form": {"1"}, "way": {"2"}, "do": {"save"}, "p.host": {"matrix.example.com"}, "p.token": {"s3cret"}, "tags": {"ops"}})
	for _, want := range []string{
		`aria-current="true">With a user name and a password`, `name="p.host" value="matrix.example.com"`,
		`name="p.token" value="s3cret"`, `name="p.user" value=""`, `name="tags" value="ops"`,
	} {
		if !strings.Contains(got.Body, want) {
			t.Errorf("no %s in %s", want, got.Body)
		}
	}
	if strings.Index(got.Body, `id="p-host"`) > strings.Index(got.Body, `id="p-port"`) {
		t.Error("a field that can stay empty is before one that cannot")
	}
	if strings.Contains(got.Body, `class="problem`) {
		t.Error("the page shows mistakes before it is saved")
	}
}

// TestBuilderSaves checks that a destination is added to the text of a key in its
// format and is used at once, that the browser gets the page of the key, and that
// nothing is lost if it cannot be added.
func TestBuilderSaves(t *testing.T) { //nolint:tparallel // the end needs the keys that the subtests save
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, openConfigs())
	at, err := url.Parse(strings.Replace(s.NotifyURL("/a"), "json://", "http://", 1))
	if err != nil {
		t.Fatal(err)
	}
	added := "json://" + at.Host + "/a"
	for name, c := range map[string]struct {
		format, before, want, number string
	}{
		"a new key": {"", "", "a,b=" + added + "\n", "1"},
		"text":      {"text", "# mine\nxml://example.com", "# mine\nxml://example.com\na,b=" + added + "\n", "2"},
		"yaml":      {"yaml", "urls:\n  - xml://example.com\n", "urls:\n  - xml://example.com\n  - " + added + ":\n      tag: a, b\n", "2"},
		"flow":      {"yaml", "urls: [xml://example.com]\n", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			key := strings.ReplaceAll(name, " ", "-")
			if c.before != "" {
				if r := g.PostForm("/add/"+key, url.Values{"config": {c.before}, "format": {c.format}}.Encode()); r.Status != http.StatusOK {
					t.Fatal(r.Body)
				}
			}
			form := url.Values{
				"form": {"1"}, "do": {"save"}, "scheme": {"json"}, "p.host": {at.Hostname()}, "p.port": {at.Port()}, "p.path": {"/a"},
				"tags": {"a, b"},
			}
			got := submit(g, "/notify/console/keys/"+key+"?build=json", form)
			r := httptest.NewRequest(http.MethodPost, "/get/"+key, nil)
			r.Header.Set("Accept", "text/plain")
			saved := g.Do(r)
			if c.want == "" {
				if !strings.Contains(got.Body, "The destination cannot be added to the key automatically") ||
					!strings.Contains(got.Body, `<code id="url">`+added+`</code>`) || saved.Body != c.before {
					t.Errorf("%d %s", got.Status, got.Body)
				}
				return
			}
			if got.Status != http.StatusSeeOther || got.Header.Get("Location") != "../../../notify/console/keys/"+key+"?added=json#destination-"+
				c.number || saved.Body != c.want {
				t.Errorf("%d %s, saved %q, want %q", got.Status, got.Header.Get("Location"), saved.Body, c.want)
			}
			page := get(g, "/notify/console/keys/"+key+"?added=json", browser)
			if !strings.Contains(page.Body, `role="status">The destination is saved: JSON.</p>`) ||
				!strings.Contains(page.Body, `id="destination-`+c.number+`"`) {
				t.Error(page.Body)
			}
		})
	}
	if got := g.Post("/notify/a-new-key?tag=a", "text/plain", "hello"); got.Status != http.StatusOK || s.Paths() != "a" {
		t.Errorf("%d %s", got.Status, got.Body)
	}
}

// TestBuilderTests tests a destination that is not saved, under the rules of saved
// keys.
func TestBuilderTests(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, openConfigs())
	at, err := url.Parse(strings.Replace(s.NotifyURL("/a"), "json://", "http://", 1))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"a":      `<p class="result delivered">Delivered in `,
		"refuse": `<p class="result failed">Failed: the service answered 500`,
	} {
		form := url.Values{
			"form": {"1"}, "do": {"test"}, "scheme": {"json"}, "p.host": {at.Hostname()}, "p.port": {at.Port()}, "p.path": {path},
			"p.password": {"s3cret"}, "p.user": {"me"},
		}
		got := submit(g, "/notify/console/keys/new?build=json", form)
		if got.Status != http.StatusOK || !strings.Contains(got.Body, want) || s.Paths() != path ||
			!strings.Contains(got.Body, `name="p.password" value="s3cret"`) {
			t.Errorf("%d %s", got.Status, got.Body)
		}
	}
	form := url.Values{"form": {"1"}, "do": {"test"}, "p.host": {"10.1.2.3"}}
	if got := submit(g, "/notify/console/keys/new?build=json", form); !strings.Contains(got.Body, `role="alert">`) ||
		!strings.Contains(got.Body, "10.1.2.3 is private") {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	// Programs test a URL, too.
	if got := g.PostForm("/cfg/new?test", url.Values{"url": {s.NotifyURL("/a")}}.Encode()); got.Status != http.StatusOK || s.Paths() != "a" {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	for _, to := range []string{"json://10.1.2.3/", "nope://x", ""} {
		if got := g.PostForm("/cfg/new?test", url.Values{"url": {to}}.Encode()); got.Status != http.StatusBadRequest {
			t.Errorf("%q: %d %s", to, got.Status, got.Body)
		}
	}
	if got := g.Post("/get/new", "", ""); got.Status != http.StatusNotFound {
		t.Errorf("a test saves: %s", got.Body)
	}
}

// TestBuilderWithoutSavedKeys checks that for a key of the Caddyfile, and without
// saved keys, the form makes the line of a Caddyfile and saves nothing. It tests the
// destination under the rules of messages with URLs, unless these are turned off.
func TestBuilderWithoutSavedKeys(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	at, err := url.Parse(strings.Replace(s.NotifyURL("/a"), "json://", "http://", 1))
	if err != nil {
		t.Fatal(err)
	}
	key := gatewaytest.Key("fixed", "json://example.com")
	saving := gatewaytest.New(t, openConfigs(key))
	loopback, keysOnly := openConsole(key), openConsole(key)
	loopback.Site.Egress, keysOnly.Site.Stateless = gatewaytest.Loopback(), new(false)
	for _, c := range []struct {
		g       *gatewaytest.Gateway
		address string
		result  string // of a test
	}{
		{saving, "/notify/console/keys/fixed", "Delivered in "},
		{gatewaytest.New(t, openConsole(key)), "/notify/console/keys/fixed/", "127.0.0.1 is "},
		{gatewaytest.New(t, loopback), "/notify/console/keys/new", "Delivered in "},
		{gatewaytest.New(t, keysOnly), "/notify/console/keys/fixed", ""},
	} {
		page := get(c.g, c.address+"?build=discord", browser)
		if page.Status != http.StatusOK || strings.Contains(page.Body, `value="save"`) ||
			strings.Contains(page.Body, `value="test"`) != (c.result != "") || !strings.Contains(page.Body, "cannot be changed here") {
			t.Errorf("%s: %d %s", c.address, page.Status, page.Body)
		}
		for _, do := range []string{"save", "line", ""} {
			form := url.Values{"form": {"1"}, "do": {do}, "p.webhook_id": {"123"}, "p.webhook_token": {"s3cret<b>"}, "tags": {"ops 2:night"}}
			got := submit(c.g, c.address+"?build=discord", form)
			if got.Status != http.StatusOK || !strings.Contains(got.Body, `<code id="line">url discord://123/s3cret%3Cb%3E ops 2:night</code>`) {
				t.Errorf("%s, %s: %d %s", c.address, do, got.Status, got.Body)
			}
		}
		form := url.Values{"form": {"1"}, "do": {"test"}, "scheme": {"json"}, "p.host": {at.Hostname()}, "p.port": {at.Port()}, "p.path": {"a"}}
		got := submit(c.g, c.address+"?build=json", form)
		if !strings.Contains(got.Body, c.result) || (s.Paths() == "a") != strings.HasPrefix(c.result, "Delivered") {
			t.Errorf("%s: %d %s", c.address, got.Status, got.Body)
		}
		if got := submit(c.g, c.address+"?build", url.Values{"text": {"xoxb-1234-1234-abc124"}}); !strings.Contains(got.Body, "Add Slack to") {
			t.Errorf("%s: %d %s", c.address, got.Status, got.Body)
		}
	}
}

// TestBuilderIsGuarded checks that only those who may manage can use the pages,
// only for keys that can be changed, and not from pages of other sites.
func TestBuilderIsGuarded(t *testing.T) {
	t.Parallel()
	key := gatewaytest.Key("fixed", "json://example.com")
	var nobody *site.Managers
	users, everybody := &site.Managers{}, gatewaytest.Everybody()
	for _, c := range []struct {
		managers     *site.Managers
		target, from string
		form         url.Values // nil for GET
		status       int
	}{
		{nobody, "/cfg/ops?build", "", nil, 403},
		{users, "/notify/console/keys/ops?build", "", nil, 403},
		{users, "/notify/console/keys/ops?build=json", "", url.Values{"form": {"1"}}, 403},
		{everybody, "/notify/console/keys/ops?build=json", "cross-site", url.Values{"form": {"1"}}, 403},
		{everybody, "/cfg/ops?test", "cross-site", url.Values{"url": {"json://example.com"}}, 403},
		{everybody, "/cfg/fixed?test", "", url.Values{"url": {"json://example.com"}}, 403},
		{everybody, "/notify/console/keys/ops?build=json", "cross-site", url.Values{"form": {"1"}}, 403},
		{users, "/notify/console/keys/ops?build=json", "", nil, 403},
		{users, "/notify/console/keys/ops?build=json", "", url.Values{"form": {"1"}}, 403},
		{everybody, "/notify/console/keys/ops?build=json", "same-origin", url.Values{"form": {"1"}}, 200},
		{everybody, "/notify/console/keys/messages?build", "", nil, 404},
	} {
		o := openConfigs(key)
		o.Site.Managers, o.Saved.Manage = c.managers, c.managers != nil
		g := gatewaytest.New(t, o)
		r := httptest.NewRequest(http.MethodGet, c.target, nil)
		if c.form != nil {
			r = httptest.NewRequest(http.MethodPost, c.target, strings.NewReader(c.form.Encode()))
			r.Header.Set("Content-Type", gatewaytest.TypeForm)
		}
		r.Header.Set("Accept", browser)
		if c.from != "" {
			r.Header.Set("Sec-Fetch-Site", c.from)
		}
		if got := g.Do(r); got.Status != c.status || got.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v, %s, %s: %d %s", c.managers, c.target, c.from, got.Status, got.Body)
		}
	}
	g := gatewaytest.New(t, openConfigs(key))
	if got := g.PostForm("/notify/console/keys/ops?build=json", "form=1"); got.Status != http.StatusNotAcceptable {
		t.Errorf("a program gets %d", got.Status)
	}
}

// TestBuilderAddress checks that the address that a service shows is one field in place of its
// parts, and that the error of that field describes the address.
func TestBuilderAddress(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, openConfigs())
	const address = "https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"
	page := get(g, "/notify/console/keys/ops?build=slack", browser)
	if !strings.Contains(page.Body, `name="address" value="" placeholder="for example https://hooks.slack.com/services/…/…/…"`) ||
		strings.Contains(page.Body, `id="native"`) {
		t.Error(page.Body)
	}
	for name, c := range map[string]struct {
		scheme string
		form   url.Values
		want   string
	}{
		"Slack": {
			"slack",
			url.Values{"form": {"1"}, "address": {address}, "p.targets": {"ops"}},
			"url slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/ops",
		},
		"its parts": {"slack", url.Values{
			"form": {"1"}, "p.token_a": {"T1JJ3T3L2"}, "p.token_b": {"A1BRTD4JD"},
			"p.token_c": {"TIiajkdnlazkcOXrIdevi7FQ"},
		}, "url slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"},
		"a token of a bot": {
			"slack",
			url.Values{"form": {"1"}, "address": {"xoxb-1234-1234-abc124"}, "p.targets": {"ops"}},
			"url slack://xoxb-1234-1234-abc124/ops",
		},
		"a server's webhook": {
			"mmost",
			url.Values{"form": {"1"}, "address": {"https://chat.example.com/hooks/abcdefghijklmnopqrstuvwxyz"}},
			"url mmosts://chat.example.com/abcdefghijklmnopqrstuvwxyz",
		},
	} {
		if made := urlLine(t, g, c.scheme, c.form); made != c.want {
			t.Errorf("%s: %s, want %s", name, made, c.want)
		}
	}
	for text, want := range map[string]string{
		"": `id="address-problem">the address is missing; Slack shows it, such as ` +
			`https://hooks.slack.com/services/…/…/….`,
		"https://hooks.slack.com/s3cre": `id="address-problem">it is no address that Slack gives out; they look like ` +
			`https://hooks.slack.com/services/…/…/….`,
		"xapp-1-A012-345-abc": `id="address-problem">`,
	} {
		got := submit(g, "/notify/console/keys/ops?build=slack", url.Values{"form": {"1"}, "address": {text}, "do": {"save"}})
		if got.Status != http.StatusOK || !strings.Contains(got.Body, want) || !strings.Contains(got.Body, `name="address" value="`+text+`"`) {
			t.Errorf("%q: %d, no %s in %s", text, got.Status, want, got.Body)
		}
	}
	got := submit(g, "/notify/console/keys/ops?build=slack", url.Values{"form": {"1"}, "address": {address}, "way": {"2"}})
	if !strings.Contains(got.Body, `aria-current="true">With the token of a bot`) || strings.Contains(got.Body, `class="problem`) {
		t.Error(got.Body)
	}
}

// TestBuilderProvider checks that a provider of mailboxes asks for an address and a password
// alone, that these make its URL, and that the whole form has their values.
func TestBuilderProvider(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, openConfigs())
	page := get(g, "/notify/console/keys/ops?build=mailto&provider=Gmail", browser)
	if got := regexp.MustCompile(`<label for="([^"]+)"`).FindAllStringSubmatch(page.Body, -1); len(got) != 3 || got[0][1] != "account" ||
		got[1][1] != "password" || got[2][1] != "own-tags" {
		t.Errorf("the form asks for %q", got)
	}
	form := url.Values{
		"form": {"1"}, "provider": {"Gmail"}, "account": {"you@gmail.com"}, "password": {"abcd efgh ijkl mnop"},
		"tags": {"mail"},
	}
	if made := urlLine(t, g, "mailto", form); made != "url mailtos://you:abcdefghijklmnop@gmail.com mail" {
		t.Error(made)
	}
	form.Del("do")
	form.Set("way", "1")
	if got := submit(g, "/notify/console/keys/ops?build=mailto", form); !strings.Contains(got.Body, "Add E-Mail to") ||
		!strings.Contains(got.Body, `name="p.password" value="abcdefghijklmnop"`) ||
		!strings.Contains(got.Body, `name="p.host" value="gmail.com"`) {
		t.Error(got.Body)
	}
	for account, want := range map[string]string{
		"":              `id="account-problem">it is no e-mail address; write it as you@gmx.com.`,
		"you@gmail.com": `it is no address of GMX; these end with @gmx.com, @gmx.net`,
		"you@gmx.de":    `id="password-problem">the password is missing.`,
	} {
		got := submit(g, "/notify/console/keys/ops?build=mailto",
			url.Values{"form": {"1"}, "provider": {"GMX"}, "account": {account}, "do": {"save"}})
		if !strings.Contains(got.Body, want) || !strings.Contains(got.Body, "Add GMX to") {
			t.Errorf("%q: no %s in %s", account, want, got.Body)
		}
	}
}

// TestBuilderOffersDevice checks that the phone or browser of the person is the first choice, that
// its button makes an invitation, and that otherwise the page says what is missing.
func TestBuilderOffersDevice(t *testing.T) {
	t.Parallel()
	g := newDevicePages(t, gatewaytest.Everybody(), "invited")
	for query, offered := range map[string]bool{
		"build": true, "build=&search=phone": true, "build=&search=iPhones": true,
		"build=&search=teams": false,
	} {
		got := get(g, "/notify/console/keys/home?"+query, browser)
		at, first := strings.Index(got.Body, `id="own-device"`), strings.Index(got.Body, `<ul class="tiles`)
		if (at >= 0) != offered || offered && at > first {
			t.Errorf("%s: offered at %d, the first service is at %d", query, at, first)
		}
		if offered {
			_, action, _ := strings.Cut(got.Body[at:], `action="`)
			action, _, _ = strings.Cut(action, "#")
			if action != "../../../notify/console/keys/home?invite" {
				t.Errorf("the button leads to %q", action)
			}
		}
	}
	for _, x := range []struct {
		g                *gatewaytest.Gateway
		address, problem string
	}{
		{g, "/notify/console/keys/none?build", "The key does not exist yet"},
		{
			gatewaytest.New(t, openConsole(gatewaytest.Key("ops", "json://h"))), "/notify/console/keys/ops?build",
			"<code>queue\npush\npublic_url https://alerts.example.com</code>",
		},
	} {
		if got := get(x.g, x.address, browser); !strings.Contains(got.Body, x.problem) || strings.Contains(got.Body, "?invite") {
			t.Errorf("%s does not say %q: %s", x.address, x.problem, got.Body)
		}
	}
}

// TestBuilderInto checks that a destination that somebody adds at a key of the configuration can be saved into
// a key that is managed here, and is used there.
func TestBuilderInto(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, openConfigs(gatewaytest.Key("ops", "json://example.com")))
	at, err := url.Parse(strings.Replace(s.NotifyURL("/a"), "json://", "http://", 1))
	if err != nil {
		t.Fatal(err)
	}
	const address = "/notify/console/keys/ops"
	form := formOf(t, get(g, address+"?build=json", browser).Body, "?build=json")
	for name, value := range map[string]string{
		"do": "into", "scheme": "json", "p.host": at.Hostname(), "p.port": at.Port(), "p.path": "/a",
	} {
		form.Set(name, value)
	}
	for into, want := range map[string]string{
		"": "the name of a key", "ops": "The configuration has this key", "a b": "the name of a key", "status": "cannot have the name",
	} {
		form.Set("into", into)
		r := submit(g, address+"?build=json", form)
		if r.Status != http.StatusOK || !strings.Contains(strings.ToLower(r.Body), strings.ToLower(want)) {
			t.Errorf("into %q: %d %s", into, r.Status, plain(r.Body))
		}
	}
	form.Set("into", "team")
	r := submit(g, address+"?build=json", form)
	if to := r.Header.Get("Location"); r.Status != http.StatusSeeOther || to != "../../../notify/console/keys/team?added=json#destination-1" {
		t.Fatalf("%d, %s: %s", r.Status, to, plain(r.Body))
	}
	if got := g.Post("/notify/team", "text/plain", "hello"); got.Status != http.StatusOK || s.Paths() != "a" {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	if body := get(g, address+"?build=json", browser).Body; !strings.Contains(body, `<option value="team">`) {
		t.Errorf("the form does not offer the saved key: %s", plain(body))
	}
	for name, other := range map[string]*gatewaytest.Gateway{
		"no saved keys": gatewaytest.New(t, openConsole(gatewaytest.Key("ops", "json://example.com"))), "a saved key": g,
	} {
		key := map[bool]string{true: "team", false: "ops"}[other == g]
		if body := get(other, "/notify/console/keys/"+key+"?build=json", browser).Body; strings.Contains(body, `name="into"`) {
			t.Errorf("%s: the form offers another key", name)
		}
	}
}
