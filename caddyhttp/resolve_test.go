package caddyhttp

import (
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestGlobalSettings checks that sites use the keys and settings of the app,
// and that their own take precedence.
func TestGlobalSettings(t *testing.T) {
	s := gatewaytest.NewStation(t)
	global := "key ops {\nurl " + s.NotifyURL("/app/ops") + "\n}\nkey dev {\nurl " +
		s.NotifyURL("/app/dev") + "\n}\nstateless off\nmax_body 100B\n"
	inherits := newGateway(t, "", global)
	own := newGateway(t,
		"key ops {\nurl "+s.NotifyURL("/site/ops")+"\n}\nstateless on\nmax_body 1KiB\ndefault_urls "+s.NotifyURL("/d"),
		global)
	long := strings.Repeat("x", 200)
	for _, tt := range []struct {
		h          *Handler
		path, body string
		status     int
		arrives    string
	}{
		{inherits, "/notify/ops", "x", 200, "app/ops"},
		{inherits, "/notify/dev", "x", 200, "app/dev"},
		{inherits, "/notify/dev", long, 413, ""},
		{inherits, "/notify", "x", 403, ""},
		{own, "/notify/ops", "x", 200, "site/ops"},
		{own, "/notify/dev", "x", 200, "app/dev"},
		{own, "/notify/dev", long, 200, "app/dev"},
		{own, "/notify", "x", 200, "d"},
	} {
		if got := post(t, tt.h, tt.path, typeForm, "body="+tt.body); got.status != tt.status {
			t.Errorf("%s: status %d, want %d: %s", tt.path, got.status, tt.status, got.body)
		}
		if paths := s.Paths(); paths != tt.arrives {
			t.Errorf("%s: messages at %q, want %q", tt.path, paths, tt.arrives)
		}
	}
}

// TestJSONMistakes checks that the rules of the Caddyfile also apply to JSON,
// and that errors name the setting.
func TestJSONMistakes(t *testing.T) {
	for config, text := range map[string]string{
		`{"keys":{"a.b":{"urls":[{"url":"json://h"}]}}}`: "1 to 128 letters",
		`{"keys":{"k":null}}`:                            "key k",
		`{"keys":{"k":{}}}`:                              "key k: it has no URL",
		`{"keys":{"k":{"urls":[{"url":"json://h"},{"url":"x://secretsecret"}]}}}`: "key k, URL 2: ",
		`{"keys":{"k":{"urls":[{"url":"json://h","tags":["a b"]}]}}}`:             "key k, URL 1: the tag is malformed",
		`{"keys":{"k":{"urls":[{"url":"json://h"}],"default_tag":"a"}}}`:          "key k: default_tag",
		`{"default_urls":["json://h","secretsecret"]}`:                            "default_urls, URL 2: ",
		`{"services":{"allow":["nonsense"]}}`:                                     `services: unknown scheme "nonsense"`,
		`{"egress":{"allow":["nonsense"]}}`:                                       "nonsense",
		`{"attachments":{"max_size":-1}}`:                                         "max_size",
		`{"attachments":{"max_count":-1}}`:                                        "max_count",
		`{"max_body":-1}`:                                                         "max_body",
		`{"timeout":-1}`:                                                          "timeout",
		`{"identity":{"logo":"nonsense"}}`:                                        "identity: logo",
		`{"identity":{"name":"{env.HOME}"}}`:                                      "identity: name: it has braces",
		`{"services":{"allow":["json"],"deny":["jsons"]}}`: "services: " +
			"no service is left, because deny names every service in allow",
		`{"keys":{"k":{"urls":[{"url":"json://h,json://secretsecret"}]}}}`: "key k, URL 1: this holds several URLs",
		`{"keys":{"k":{"urls":[{"url":"json://h","tags":["ALL"]}]}}}`:      "key k, URL 1: all cannot be a tag",
		`{"default_urls":["bogus://secretsecret"]}`:                        "caddy notify services lists",
		`{"bogus":1}`: "bogus",
	} {
		for _, id := range []string{"notify", "http.handlers.notify"} {
			ctx, err := provisionContext(t, &caddy.Config{Admin: &caddy.AdminConfig{Disabled: true}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = ctx.LoadModuleByID(id, []byte(config))
			if err == nil || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "secretsecret") {
				t.Errorf("%s: %s: %v, want %q", id, config, err, text)
			}
		}
	}
}
