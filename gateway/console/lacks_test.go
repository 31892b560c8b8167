package console_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestLacks checks that a page that lacks something shows the line of the Caddyfile that brings it, with a button that
// copies it, and that a page with it does not. Some pages only said that something was missing.
func TestLacks(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	plain := func() gatewaytest.Options { return openConsole(gatewaytest.Key("ops", s.NotifyURL("/fine"))) }
	durable := func(change func(*gatewaytest.Options)) gatewaytest.Options {
		o := queued(plain())
		change(&o)
		return o
	}
	ann := func(o *gatewaytest.Options) { o.Site.Managers = &site.Managers{Named: []string{"ann", "bob"}} }
	all := []string{"queue", "titles on", "inbox 7d", "rate 30/1m", "configs {", "manage"}
	for name, tt := range map[string]struct {
		options gatewaytest.Options
		want    map[string]string // by the page, which lines it shows, with a ; between them
	}{
		"nothing": {plain(), map[string]string{
			"/messages": "queue", "/incidents": "queue;rate 30/1m", "/keys": "queue;configs {\n\tmanage open\n}",
			"/keys/ops?tab=messages": "queue;inbox 7d", "/queue": "queue", "/silences": "queue",
			"/keys/ops?build": "queue\npush\npublic_url https://alerts.example.com",
		}},
		"a queue": {durable(func(*gatewaytest.Options) {}), map[string]string{
			"/messages": "titles on", "/incidents": "rate 30/1m", "/keys": "configs {\n\tmanage open\n}", "/keys/ops?tab=messages": "inbox 7d",
			"/queue": "", "/silences": "", "/keys/ops?build": "push\npublic_url https://alerts.example.com",
		}},
		"titles": {durable(func(o *gatewaytest.Options) { o.Site.Titles = new(true) }), map[string]string{
			"/messages": "", "/keys/ops?tab=messages": "inbox 7d",
		}},
		"an inbox": {durable(func(o *gatewaytest.Options) { o.Site.Keys[0].Inbox = time.Hour }), map[string]string{
			"/messages": "", "/keys/ops?tab=messages": "",
		}},
		"an address": {durable(func(o *gatewaytest.Options) { o.Site.PublicURL = "https://a.example" }), map[string]string{
			"/keys/ops?build": "push",
		}},
		"a rule": {durable(func(o *gatewaytest.Options) {
			o.Site.Keys[0].Rules = &rules.Rules{Dedupe: &rules.Dedupe{Window: time.Minute}}
		}), map[string]string{"/incidents": ""}},
		"saved keys": {durable(func(o *gatewaytest.Options) { o.Saved = &saved.Options{Manage: true} }), map[string]string{"/keys": ""}},
		"names":      {durable(ann), map[string]string{"/keys": "configs {\n\tmanage ann bob\n}"}},
		"names beside configs": {durable(func(o *gatewaytest.Options) {
			ann(o)
			o.Saved = &saved.Options{}
		}), map[string]string{"/keys": "manage ann bob"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gatewaytest.New(t, tt.options)
			for path, lines := range tt.want {
				r := httptest.NewRequest(http.MethodGet, "/notify/console"+path, nil)
				r.Header.Set("Accept", browser)
				body := g.Do(gatewaytest.As(r, "ann")).Body
				for line := range strings.SplitSeq(lines, ";") {
					if line != "" && !strings.Contains(body, "<code>"+line+"</code></pre>\n<button type=\"button\" class=\"copy") {
						t.Errorf("%s lacks the line %q: %s", path, line, body)
					}
				}
				for _, line := range all {
					if !strings.Contains(lines, line) && strings.Contains(body, "<code>"+line) {
						t.Errorf("%s shows the line %q", path, line)
					}
				}
			}
		})
	}
}
