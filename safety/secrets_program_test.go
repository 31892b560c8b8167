package safety

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// conversational are the services that speak something other than HTTP. They
// go past a proxy.
var conversational = []string{"mqtt", "irc", "xmpp", "smpp", "syslog", "rsyslog", "growl", "aprs", "mailto"}

// web are URLs of all services that speak HTTP, some for each, and of no
// server on this machine.
func web(t *testing.T) (out []marked) {
	per := map[string]int{}
	for _, m := range catalogue(t) {
		scheme, _, _ := strings.Cut(m.url, "://")
		aside := slices.ContainsFunc(conversational, func(c string) bool { return slices.Contains(notifier.SchemesOf(c), strings.ToLower(scheme)) })
		local := strings.Contains(m.url, "localhost") || strings.Contains(m.url, "127.0.0.") || strings.Contains(m.url, "::1")
		d, err := notifier.Parse(m.url, nil)
		idle := err != nil || len(d.Warnings()) > 0 // which the operator's configuration may not be
		if aside || local || idle || per[m.service] == 2 {
			continue
		}
		per[m.service]++
		out = append(out, m)
	}
	return out
}

// everything is all that one can read of a gateway from outside: its log, its
// metrics, its configuration, its pages and what its admin API tells.
func (g *gateway) everything() string {
	var b strings.Builder
	for _, path := range []string{"/metrics", "/config/", "/notify/keys", "/notify/keys/all", "/notify/recent", "/debug/vars"} {
		_, text := g.get(g.adminURL+path, "*/*")
		b.WriteString(text)
	}
	for _, path := range []string{"/notify", "/notify/all", "/notify/openapi.json"} {
		_, text := g.get(g.url+path, "text/html")
		b.WriteString(text)
	}
	return b.String() + g.log()
}

const tracing = "debug\nmetrics\nservers {\ntrace\n}"

// The program shows no secret of a URL, neither of the operator's nor of a
// client's, whatever the service and whatever goes wrong.
func TestSecretsOfTheProgram(t *testing.T) {
	p := newProxy(t)
	all := web(t)
	var block strings.Builder
	env := p.environment()
	urls := make([]string, len(all))
	for i, m := range all {
		urls[i] = m.url
		env = append(env, fmt.Sprintf("URL%d=%s", i, m.url))
		fmt.Fprintf(&block, "url {env.URL%d}\n", i)
	}
	g := start(t, tracing, "timeout 2s\nkey all {\n"+block.String()+"}", env...)
	var said strings.Builder
	for _, way := range []string{"400", "500", "no such host", "TLS", "silence", "reset", "not HTTP"} {
		p.is(way)
		for path, m := range map[string]message{
			"/notify":     {"body": "a body", "title": "a title", "type": "failure", "urls": urls},
			"/notify/all": {"body": "a body", "title": "a title", "type": "failure"},
		} {
			got := g.post(path, m)
			if got.Status != 424 || len(got.Results) != len(all) {
				t.Fatalf("%s, %s: status %d, %d results: %.300s", way, path, got.Status, len(got.Results), got.Error)
			}
			said.WriteString(got.Body)
			for i, r := range got.Results {
				if r.Status == "delivered" {
					t.Errorf("%s: %s was delivered", way, all[i].url)
				}
			}
		}
	}
	p.is("400")
	for _, accept := range []string{"text/plain", "text/html"} {
		form := url.Values{"body": {"a body"}, "urls": urls}
		r, err := http.NewRequest(http.MethodPost, g.url+"/notify", strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Accept", accept)
		said.WriteString(g.ask(r).Body)
	}
	// What is refused before it is sent.
	for _, m := range all {
		scheme, rest, _ := strings.Cut(m.url, "://")
		for _, u := range []string{"no" + scheme + "://" + rest, scheme + ":/" + rest} {
			said.WriteString(g.post("/notify", message{"body": "x", "type": "bogus", "urls": u}).Body)
			said.WriteString(g.post("/notify", message{"body": "x", "urls": u}).Body)
		}
	}
	eventually(t, "the log tells of the deliveries", func() bool { return strings.Contains(g.log(), "delivery failed") })
	for where, text := range map[string]string{"an answer": said.String(), "the gateway": g.everything()} {
		for _, m := range all {
			if s := m.shows(text); s != "" {
				t.Errorf("%s: %s shows %s", m.service, where, s)
			}
		}
	}
}

// A configuration that does not load because of a URL is refused without
// showing it, as a Caddyfile and as JSON.
func TestSecretsOfBrokenConfigurations(t *testing.T) {
	g := start(t, tracing, "key k {\nurl json://127.0.0.1:1/\n}")
	var all []marked
	for i, m := range web(t) {
		if i%8 == 0 {
			all = append(all, m)
		}
	}
	var said strings.Builder
	load := func(contentType, config string) {
		var resp *http.Response
		eventually(t, "the admin API answers", func() (ok bool) { // it begins anew with each configuration
			var err error
			resp, err = http.Post(g.adminURL+"/load", contentType, strings.NewReader(config))
			return err == nil
		})
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode == 200 {
			t.Errorf("a broken configuration was loaded: %s %v\n%s", resp.Status, err, config)
		}
		said.Write(text)
	}
	for _, m := range all {
		scheme, rest, _ := strings.Cut(m.url, "://")
		for i, u := range []string{"no" + scheme + "://" + rest, m.url + "?&format=" + m.marks[0] + "&rto=" + m.marks[0], m.url + "%zz{env.NONE}"} {
			quoted := "`" + u + "`"
			load("text/caddyfile", g.caddyfile("", "key k {\nurl "+quoted+"\n}"))
			if i > 0 {
				continue
			}
			load("text/caddyfile", g.caddyfile("", "key k {\nurl "+quoted+" {\n}\n}"))
			load("text/caddyfile", g.caddyfile("", "default_urls "+quoted+" "+quoted))
			load("application/json", fmt.Sprintf(`{"admin":{"listen":%q},"apps":{"notify":{"keys":{"k":{"urls":[{"url":%q,"tags":["a b"]}]}}}}}`, g.admin, u))
		}
	}
	for where, text := range map[string]string{"an answer": said.String(), "the gateway": g.everything()} {
		for _, m := range all {
			if s := m.shows(text); s != "" {
				t.Errorf("%s: %s shows %s", m.service, where, s)
			}
		}
	}
}

// Nor does it of services that speak something other than HTTP, with servers
// that say back what they hear.
func TestSecretsOfConversations(t *testing.T) {
	echo := listen(t, "127.0.0.1:0", func(c net.Conn) { _, _ = io.Copy(c, io.LimitReader(c, 64<<10)) })
	closed := "127.0.0.1:" + freePort(t)
	var all []marked
	number := 100000
	for _, s := range notifier.Services() {
		if !slices.ContainsFunc(conversational, func(c string) bool { return slices.Contains(s.Schemes, c) }) {
			continue
		}
		for _, address := range []string{echo, closed} {
			for _, u := range onServer(s, address) {
				if m := mark(s.Name, u, &number); m.marks != nil {
					all = append(all, m)
				}
			}
		}
	}
	if len(all) == 0 {
		t.Fatal("no URLs with secrets")
	}
	g := start(t, tracing, "timeout 2s\negress {\nallow 127.0.0.1\n}")
	var said strings.Builder
	for _, m := range all {
		said.WriteString(g.post("/notify", message{"body": "a body", "title": "a title", "type": "failure", "urls": m.url}).Body)
	}
	for where, text := range map[string]string{"an answer": said.String(), "the gateway": g.everything()} {
		for _, m := range all {
			if s := m.shows(text); s != "" {
				t.Errorf("%s: %s shows %s", m.service, where, s)
			}
		}
	}
}
