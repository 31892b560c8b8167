package safety

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// several matches a comma that a configuration reads as the start of a
// second URL.
var several = regexp.MustCompile(`,\w+://`)

// web returns up to two URLs of each service that uses HTTP, or one if full is
// not set. Each leads to another machine and is valid in a configuration.
func web(t *testing.T) (out []secretURL) {
	per := map[string]int{}
	for _, m := range catalogue(t) {
		scheme, _, _ := strings.Cut(m.url, "://")
		aside := isNonHTTP(notifier.SchemesOf(scheme))
		local := strings.Contains(m.url, "localhost") || strings.Contains(m.url, "127.0.0.") || strings.Contains(m.url, "::1")
		d, err := notifier.Parse(m.url, nil)
		refused := err != nil || len(d.Warnings()) > 0 || several.MatchString(m.url)
		if aside || local || refused || per[m.service] == amount(full, 2, 1) {
			continue
		}
		per[m.service]++
		out = append(out, m)
	}
	for _, s := range notifier.Services() {
		if per[s.Name] == 0 && !isNonHTTP(s.Schemes) {
			t.Errorf("%s has no URL that the operator could use here", s.Name)
		}
	}
	return out
}

// exposed returns everything that can be read from a gateway: log, metrics,
// configuration, pages and admin API, also for key. It fails the test if one of
// them is missing or lacks the expected content.
func (g *gateway) exposed(key string) string {
	g.t.Helper()
	var b strings.Builder
	for _, read := range []struct{ address, accept, sign string }{
		{g.adminURL + "/metrics", "*/*", `caddy_notify_messages_total{outcome="failed"}`},
		{g.adminURL + "/config/", "*/*", `"handler":"notify"`},
		{g.adminURL + "/notify/keys", "*/*", `"name":"` + key + `"`},
		{g.adminURL + "/notify/keys/" + key, "*/*", `"destinations":[{"service":`},
		{g.adminURL + "/notify/recent", "*/*", `"outcome":"failed"`},
		{g.adminURL + "/debug/vars", "*/*", `"memstats"`},
		{g.adminURL + "/debug/pprof/goroutine?debug=2", "*/*", "goroutine 1 ["},
		{g.url + "/notify", "text/html", `name="urls"`},
		{g.url + "/notify/" + key, "text/html", `<span class="key">` + key + `</span>`},
		{g.url + "/notify/openapi.json", "*/*", `"openapi":`},
	} {
		code, text := g.get(read.address, read.accept)
		if code != http.StatusOK || !strings.Contains(text, read.sign) {
			g.t.Errorf("GET %s: status %d, without %s: %.300s", read.address, code, read.sign, text)
		}
		b.WriteString(text)
	}
	log := g.log()
	for _, logger := range []string{"http.log.access", "http.log.trace", "http.handlers.notify", "events"} {
		if !strings.Contains(log, `"logger":"`+logger) {
			g.t.Errorf("the log has nothing of %s", logger)
		}
	}
	return b.String() + log
}

const tracing = "debug\nmetrics\nservers {\ntrace\n}"

// test sends a test message to a key with the admin API.
func (g *gateway) test(key, tag string) reply {
	g.t.Helper()
	r, err := http.NewRequest(http.MethodPost, g.adminURL+"/notify/keys/"+key+"/test",
		strings.NewReader(fmt.Sprintf(`{"type":"failure","tag":%q}`, tag)))
	if err != nil {
		g.t.Fatal(err)
	}
	return g.ask(r)
}

// TestSecretsOfTheProgram checks, for every service and many faults, or three if CI
// is not set, that no secret of an operator's or client's URL is visible in
// responses, in events, or in what can be read from the program.
func TestSecretsOfTheProgram(t *testing.T) {
	racetest.LeaveToCI(t)
	racetest.SkipIfSlow(t)
	t.Parallel()
	p, w := newProxy(t), newWatcher(t)
	all := web(t)
	const part = 20 // the maximum of destinations in an event
	var block strings.Builder
	env := p.environment()
	urls := make([]string, len(all))
	for i, m := range all {
		urls[i] = m.url
		env = append(env, fmt.Sprintf("URL%d=%s", i, m.url))
		fmt.Fprintf(&block, "url {env.URL%d} part%d one%d\n", i, i/part, i)
	}
	g := start(t, w.options()+tracing, "timeout 2s\nkey all {\n"+block.String()+"}", env...)

	var mu sync.Mutex
	var said strings.Builder
	var events []event
	// hear records a response that belongs to an event.
	hear := func(r reply, key, source string) {
		mu.Lock()
		defer mu.Unlock()
		said.WriteString(r.Body)
		events = append(events, eventOf(r, key, source))
	}
	for _, way := range racetest.Part([]string{"400", "500", "no such host", "TLS", "silence", "reset", "not HTTP", "refused"}, 3) {
		p.is(way)
		if way == "refused" {
			_ = p.close()
		}
		var wg sync.WaitGroup
		n := 0
		for some := range slices.Chunk(urls, part) {
			tag := fmt.Sprintf("part%d", n)
			n++
			failed := func(r reply, key, source string) {
				if r.Status != 424 || len(r.Results) != len(some) {
					t.Errorf("%s, %s: status %d, %d results: %.300s", way, source, r.Status, len(r.Results), r.Error)
				}
				for i, x := range r.Results {
					if x.Status == "delivered" {
						t.Errorf("%s: %s was delivered", way, some[i])
					}
				}
				hear(r, key, source)
			}
			m := message{"body": "a body", "title": "a title", "type": "failure"}
			wg.Go(func() { failed(g.post("/notify/all?tag="+tag, m), "all", "http") })
			wg.Go(func() {
				failed(g.post("/notify", message{"body": "a body", "title": "a title", "type": "failure", "urls": some}), "", "http")
			})
			if way == "400" {
				wg.Go(func() { failed(g.test("all", tag), "all", "test") })
			}
		}
		wg.Wait()
		_, recent := g.get(g.adminURL+"/notify/recent", "*/*") // the last hundred messages
		said.WriteString(recent)
		if way != "400" {
			continue
		}
		// The other formats of a response.
		for _, accept := range []string{"text/plain", "text/html", "application/x-ndjson"} {
			form := url.Values{"body": {"a body"}, "urls": urls[:part]}
			r, err := http.NewRequest(http.MethodPost, g.url+"/notify", strings.NewReader(form.Encode()))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Accept", accept)
			said.WriteString(g.ask(r).Body)
			events = append(events, eventOf(g.post("/notify", message{"body": "a body", "urls": urls[:part]}), "", "http"))
			events = append(events, events[len(events)-1])
		}
		// Deliveries that succeed.
		p.is("200")
		for i := range all {
			hear(g.post(fmt.Sprintf("/notify/all?tag=one%d", i), message{"body": "a body", "title": "a title"}), "all", "http")
		}
	}
	// Messages that are refused before they are sent.
	for _, m := range all {
		scheme, rest, _ := strings.Cut(m.url, "://")
		for _, u := range []string{"no" + scheme + "://" + rest, scheme + ":/" + rest} {
			for _, kind := range []string{"bogus", "info"} {
				r := g.post("/notify", message{"body": "x", "type": kind, "urls": u})
				if r.Status != 400 {
					t.Errorf("%s: status %d: %s", u, r.Status, r.Body)
				}
				said.WriteString(r.Body)
			}
		}
	}
	delivered := 0
	for _, n := range events {
		if strings.HasPrefix(n.title, "notify_delivered") {
			delivered++
		}
	}
	if delivered < 50 {
		t.Errorf("only %d services accept every response as success", delivered)
	}
	heard := w.checkEvents(t, events)
	eventually(t, "the log has the deliveries", func() bool { return strings.Contains(g.log(), "delivery failed") })
	checkNoSecrets(t, "an answer", said.String(), all)
	checkNoSecrets(t, "an event", heard, all)
	checkNoSecrets(t, "the gateway", g.exposed("all"), all)
}

// TestSecretsAfterAnAnswer checks that the log does not show what a destination
// sends after its answer, which net/http writes to the standard log, before and
// after a reload.
func TestSecretsAfterAnAnswer(t *testing.T) {
	t.Parallel()
	address := listen(t, "127.0.0.1:0", answering("HTTP/1.1 204 No Content\r\n\r\nno such path: /s3cret-path"))
	block := "key k {\nurl json://" + address + "/s3cret-path\n}"
	g := start(t, "", block)
	for n := range 2 {
		if r := g.post("/notify/k", message{"body": "x"}); r.Status != 200 {
			t.Fatalf("status %d: %s", r.Status, r.Error)
		}
		eventually(t, "the log has the fault", func() bool { return strings.Count(g.log(), "Unsolicited response") > n })
		g.reload("", block+"\ntimeout 10s")
	}
	if strings.Contains(g.log(), "s3cret-path") {
		t.Errorf("the log shows a secret:\n%s", g.log())
	}
}

// TestSecretsOfBrokenConfigurations checks that the error for a configuration
// with an invalid URL does not show the URL, in a Caddyfile and in JSON.
func TestSecretsOfBrokenConfigurations(t *testing.T) {
	racetest.SkipIfSlow(t)
	t.Parallel()
	g := start(t, tracing, "key k {\nurl json://127.0.0.1:1/\n}")
	g.post("/notify/k", message{"body": "x"}) // so that there is a message to read about
	var all []secretURL
	for i, m := range web(t) {
		if i%8 == 0 {
			all = append(all, m)
		}
	}
	var said strings.Builder
	load := func(contentType, config string) {
		var resp *http.Response
		eventually(t, "the admin API answers", func() (ok bool) { // it restarts with each configuration
			var err error
			resp, err = g.client.Post(g.adminURL+"/load", contentType, strings.NewReader(config))
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
		for i, u := range []string{
			"no" + scheme + "://" + rest,
			m.url + "?&format=" + m.secrets[0] + "&rto=" + m.secrets[0], m.url + "%zz{env.NONE}",
		} {
			quoted := "`" + u + "`"
			load("text/caddyfile", g.caddyfile("", "key k {\nurl "+quoted+"\n}"))
			if i > 0 {
				continue
			}
			load("text/caddyfile", g.caddyfile("", "key k {\nurl "+quoted+" {\n}\n}"))
			load("text/caddyfile", g.caddyfile("", "default_urls "+quoted+" "+quoted))
			load("application/json",
				fmt.Sprintf(`{"admin":{"listen":%q},"apps":{"notify":{"keys":{"k":{"urls":[{"url":%q,"tags":["a b"]}]}}}}}`, g.admin, u))
		}
	}
	checkNoSecrets(t, "an answer", said.String(), all)
	checkNoSecrets(t, "the gateway", g.exposed("k"), all)
}
