package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// browser is what browsers accept.
const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// openConsole returns the options of a site with keys, whose console everybody may use.
func openConsole(keys ...site.KeyOptions) gatewaytest.Options {
	return gatewaytest.Options{Site: site.Options{Keys: keys, Managers: gatewaytest.Everybody()}}
}

// openConfigs returns the options of a gateway with keys of all sites, and with saved keys
// that everybody may change. Their URLs may lead to this machine.
func openConfigs(keys ...site.KeyOptions) gatewaytest.Options {
	return gatewaytest.Options{
		Global: site.Options{Keys: keys},
		Site:   site.Options{Egress: gatewaytest.Loopback(), Managers: gatewaytest.Everybody()},
		Saved:  &saved.Options{Manage: true},
	}
}

// queued returns o with a queue in a folder of its own.
func queued(o gatewaytest.Options) gatewaytest.Options {
	o.Queue = &outbox.Settings{}
	return o
}

// browse sends a request without a body.
func browse(g *gatewaytest.Gateway, method, target, accept string) gatewaytest.Reply {
	r := httptest.NewRequest(method, target, nil)
	r.Header.Set("Accept", accept)
	return g.Do(r)
}

func get(g *gatewaytest.Gateway, target, accept string) gatewaytest.Reply {
	return browse(g, http.MethodGet, target, accept)
}

// submit posts a form as a browser does.
func submit(g *gatewaytest.Gateway, target string, form url.Values) gatewaytest.Reply {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", gatewaytest.TypeForm)
	r.Header.Set("Accept", browser)
	return g.Do(r)
}

func jsonPost(target, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	r.Header = http.Header{"Content-Type": {gatewaytest.TypeJSON}, "Prefer": {"respond-async"}, "Accept": {gatewaytest.TypeJSON}}
	return r
}

// troubled returns the options of a gateway with the keys ops, whose first destination
// fails, and fine, and with a queue in dir.
func troubled(dir string, s *gatewaytest.Station) gatewaytest.Options {
	o := openConsole(gatewaytest.Key("ops", s.NotifyURL("/refuse"), s.NotifyURL("/ok")), gatewaytest.Key("fine", s.NotifyURL("/fine")))
	o.Queue = &outbox.Settings{Path: dir}
	return o
}

// listed returns the outcome and key of each message of a page.
func listed(body string) (out []string) {
	for _, m := range regexp.MustCompile(`(?s)<summary><span class="dot is-(\w+)".*?</summary>`).FindAllStringSubmatch(body, -1) {
		key := regexp.MustCompile(`class="key"[^>]*>(\w+)<`).FindStringSubmatch(m[0])
		if key == nil {
			key = []string{"", ""}
		}
		out = append(out, m[1]+" "+key[1])
	}
	return out
}
