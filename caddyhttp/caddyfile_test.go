package caddyhttp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	"github.com/caddy-notify/caddy-notify/caddyhttp/events"
	"github.com/caddy-notify/caddy-notify/caddyhttp/logs"
	"github.com/caddy-notify/caddy-notify/internal/golden"
	"github.com/caddy-notify/caddy-notify/internal/jsontest"
)

// TestAdapt adapts each file of testdata: a Caddyfile, a line of dashes, and
// the JSON that it becomes or a part of the error. With UPDATE_GOLDEN
// set, it writes the JSON.
func TestAdapt(t *testing.T) {
	files, err := filepath.Glob("testdata/*.caddyfiletest")
	if err != nil || len(files) == 0 {
		t.Fatal("no test files", err)
	}
	adapter := caddyconfig.GetAdapter("caddyfile")
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			source, want, ok := strings.Cut(string(text), "\n----------\n")
			if !ok {
				t.Fatal("no line of dashes")
			}
			got, warnings, err := adapter.Adapt([]byte(source+"\n"), map[string]any{"filename": "Caddyfile"})
			if !strings.HasPrefix(want, "{") {
				if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
					t.Errorf("error %v\nwant %s", err, want)
				}
				return
			}
			if err != nil || len(warnings) > 0 {
				t.Fatalf("error %v, warnings %v", err, warnings)
			}
			golden.Check(t, name, source+"\n----------\n"+indented(t, got)+"\n")
		})
	}
}

// TestFixtures checks that the fixtures of TestAdapt have every setting.
func TestFixtures(t *testing.T) {
	files, err := filepath.Glob("testdata/*.caddyfiletest")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, adapted, _ := strings.Cut(string(text), "\n----------\n")
		all.WriteString(adapted)
	}
	for _, v := range []any{App{}, events.Handler{}, logs.Writer{}} {
		for _, name := range jsontest.Fields(reflect.TypeOf(v)) {
			switch name {
			case "dir", "default_urls_dir", "certificate": // absolute paths, which differ from machine to machine
				continue
			}
			if !strings.Contains(all.String(), `"`+name+`":`) {
				t.Errorf("no fixture in testdata has the setting %s; add it to one, such as everything.caddyfiletest", name)
			}
		}
	}
}

func indented(t *testing.T, text []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestCaddyfileMistakes checks that the error for each mistake has its line and
// what was expected, and no secret.
func TestCaddyfileMistakes(t *testing.T) {
	const url = "url json://user:secretsecret@h"
	for name, tt := range map[string]struct {
		block string // begins on line 2
		line  string
		text  string
	}{
		"unknown subdirective": {
			"bogus ops", "2",
			`unknown subdirective "bogus" in notify; is a } missing above? notify has the subdirectives ask_callback, attachments, `,
		},
		"a URL out of place": {"json://secretsecret", "2", "unknown subdirective in notify; is a } missing above?"},
		"a URL out of place in key": {
			"key k {\njson://secretsecret\n}", "3",
			"unknown subdirective in key; write url before a notification URL",
		},
		"a key without a name": {"key {\n" + url + "\n}", "2", "expected key <name> { … }"},
		"a key with two names": {"key a b {\n" + url + "\n}", "2", "expected key <name> { … }"},
		"a key's name":         {"key a.b {\n" + url + "\n}", "2", "1 to 128 letters, digits, _ and -"},
		"a key's name is too long": {
			"key " + strings.Repeat("k", 129) + " {\n" + url + "\n}", "2", "1 to 128 letters, digits, _ and -",
		},
		"a default tag of configs":        {"configs {\ndefault_tag a.b\n}", "3", "default_tag: "},
		"an empty default tag of configs": {"configs {\ndefault_tag \"\"\n}", "3", "it names no tag"},
		"an unknown parameter": {
			"key k {\n" + url + "?methd=put\n}", "3", "JSON: the parameter methd is unknown and has no effect",
		},
		"an invalid value": {
			"key k {\n" + url + "?retry=60\n}", "3", "JSON: retry must be a whole number from 0 to 10",
		},
		"an unknown region": {
			"key k {\nurl jira://apikey/?region=mars\n}", "3", "Jira: the parameter region has no effect",
		},
		"only invalid items":        {"key k {\nurl onesignal://app-id-1@secretsecret/x/y\n}", "3", "item 1 of targets"},
		"a key twice":               {"key k {\n" + url + "\n}\nkey k {\n" + url + "\n}", "5", "the key k occurs twice"},
		"a key without a block":     {"key k", "2", "needs a block"},
		"a key with an empty block": {"key k {\n}", "2", "needs a block"},
		"a key without a URL": {
			"key k {\ndefault_tag untagged\n}", "2", "the key k has no URL; add url <url> [<tags...>]",
		},
		"an empty url":                {"key k {\nurl\n}", "3", "expected url <url> [<tags...>]"},
		"a URL of an unknown service": {"key k {\nurl nonsense://secretsecret\n}", "3", "not a scheme of any service"},
		"a URL that lacks a part":     {"key k {\n" + url + "\nurl discord://secretsecret\n}", "4", "Discord"},
		"a tag":                       {"key k {\n" + url + " a,b\n}", "3", "a tag is a letter or digit followed by"},
		"the tag untagged":            {"key k {\n" + url + " a Untagged\n}", "3", "untagged cannot be a tag"},
		"a url with a block":          {"key k {\n" + url + " {\n}\n}", "3", "url takes no block"},
		"two default tags": {
			"key k {\n" + url + " a\ndefault_tag a\ndefault_tag a\n}", "5", "default_tag occurs twice in key",
		},
		"inbox without a time":           {"key k {\ninbox\n}", "3", "expected inbox <duration>"},
		"inbox for too long":             {"key k {\ninbox 91d\n}", "3", "it must be a duration from 1m to 90d, such as 7d"},
		"inbox for no time":              {"key k {\ninbox 0\n}", "3", "it must be a duration from 1m to 90d, such as 7d"},
		"inbox of configs for too short": {"configs {\ninbox 1s\n}", "3", "it must be a duration from 1m to 90d, such as 7d"},
		"default_tag of two": {
			"key k {\n" + url + " a\ndefault_tag a b\n}", "4", "expected default_tag <expression>|untagged",
		},
		"default_tag of none": {
			"key k {\n" + url + " a\ndefault_tag \"\"\n}", "4", "write a tag expression, such as ops,dev",
		},
		"default_tag of a comma":             {"key k {\n" + url + " a\ndefault_tag ,\n}", "4", "default_tag"},
		"default_tag is malformed":           {"key k {\n" + url + " a\ndefault_tag $\n}", "4", "default_tag"},
		"default_tag that fits none":         {"key k {\n" + url + " a\ndefault_tag b\n}", "4", "would be sent nowhere"},
		"stateless":                          {"stateless", "2", "expected stateless on|off"},
		"stateless of another value":         {"stateless yes", "2", "it must be on or off"},
		"config_id":                          {"config_id", "2", "expected config_id on|off"},
		"config_id of another value":         {"config_id ops", "2", "it must be on or off"},
		"stateless twice":                    {"stateless on\nstateless off", "3", "occurs twice in"},
		"default_urls of none":               {"default_urls", "2", "expected default_urls <url...>"},
		"default_urls of an unknown service": {"default_urls json://h nonsense://secretsecret", "2", "not a scheme of any service"},
		"a placeholder of a request":         {"default_urls json://{http.request.host}/x", "2", "{http.request.host} has no value"},
		"services without a block":           {"services", "2", "services needs a block"},
		"services with arguments":            {"services json", "2", "expected services { … }"},
		"services of none":                   {"services {\nallow\n}", "3", "expected allow <scheme...>"},
		"an unknown service":                 {"services {\ndeny json nonsense\n}", "3", `unknown scheme "nonsense"`},
		"a URL for a service": {
			"services {\ndeny json://secretsecret\n}", "3", "unknown scheme; write what precedes ://",
		},
		"a key's URL that is denied":  {"key k {\n" + url + "\n}\nservices {\ndeny jsons\n}", "3", "may not be used"},
		"egress without a block":      {"egress", "2", "egress needs a block"},
		"egress of none":              {"egress {\nallow\n}", "3", "expected allow"},
		"egress of a name":            {"egress {\nallow example.com\n}", "3", "example.com"},
		"egress deny all":             {"egress {\nallow all\ndeny all\n}", "4", "all"},
		"egress of another word":      {"egress {\npermit all\n}", "3", `unknown subdirective "permit" in egress`},
		"attachments empty":           {"attachments {\n}", "2", "attachments needs a block"},
		"max_size that is not a size": {"attachments {\nmax_size big\n}", "3", "it must be a size above 0"},
		"max_size of 0":               {"attachments {\nmax_size 0\n}", "3", "it must be a size above 0"},
		"max_count below 0":           {"attachments {\nmax_count -1\n}", "3", "it must be a whole number from 0 to 65535"},
		"no placeholder":              {"key k {\nurl json://h/{evn.X}\n}", "3", "the text in braces is not a placeholder"},
		"braces without a placeholder, the second": {
			"key k {\nurl json://{env.X}{secretsecret}/x\n}", "3", "use {env.NAME} or {file./path}",
		},
		"a secret in braces":      {"key k {\nurl tgram://{123456789:secretsecret}/1\n}", "3", "the text in braces"},
		"no default placeholder":  {"default_urls json://h/{system.nothing}", "2", "the text in braces"},
		"remote of another value": {"attachments {\nremote true\n}", "3", "it must be on or off"},
		"max_body of two":         {"max_body 1 2", "2", "expected max_body <size>"},
		"max_body that overflows": {"max_body 16EiB", "2", "it must be a size above 0"},
		"max_in_flight of 0":      {"max_in_flight 0", "2", "it must be a whole number from 1 to"},
		"max_in_flight of a word": {"max_in_flight all", "2", "it must be a whole number from 1 to"},
		"client_limits of none": {
			"client_limits {\n}", "2",
			"client_limits needs a block with at least one of bytes, deliveries, in_flight, in_flight_per_address, memory, requests, retry, wait",
		},
		"client_limits of 0":             {"client_limits {\ndeliveries 0\n}", "3", "it must be a whole number from 1 to"},
		"client_limits of a word":        {"client_limits {\nmemory much\n}", "3", "it must be a size above 0"},
		"client_limits without a wait":   {"client_limits {\nretry 0\nwait 0s\n}", "4", "it must be a duration above 0"},
		"propagate_trace of a word":      {"propagate_trace b3", "2", "it must be on or off"},
		"page of another value":          {"page yes", "2", "it must be on or off"},
		"trusted_origins of none":        {"trusted_origins", "2", "expected trusted_origins <origin...>|*"},
		"trusted_origins of a host":      {"trusted_origins example.com", "2", "it is not an origin; write a scheme and a host"},
		"timeout that is not a duration": {"timeout soon", "2", "it must be a duration above 0"},
		"timeout of 0":                   {"timeout 0s", "2", "it must be a duration above 0"},
		"timeout with a block":           {"timeout 3s {\n}", "2", "timeout takes no block"},
		"timeout twice":                  {"timeout 3s\ntimeout 3s", "3", "occurs twice in"},
		"identity without a block":       {"identity Caddy", "2", "expected identity { … }"},
		"identity of two words":          {"identity {\nname a b\n}", "3", "expected name <text>"},
		"identity of nothing":            {"identity {\nname \"\"\n}", "3", "must not be empty"},
		"identity's icon":                {"identity {\nicon file:///x\n}", "3", "icon: it is not an address; write one"},
		"identity's placeholder":         {"identity {\nname {env.HOME}\n}", "3", "name: it has braces"},
		"identity's logo":                {"identity {\nlogo https://h/{type}.png\n}", "3", "logo: it has braces"},
		"another size of an icon": {
			"identity {\nicon https://h/{type}{sizes}.png\n}", "3",
			"only the placeholders {type} and {size} are replaced",
		},
		"two URLs with a comma":       {"key k {\n" + url + ",form://secretsecret/y\n}", "3", "one URL per url line"},
		"two URLs with a space":       {"key k {\n" + url + " form://secretsecret/y\n}", "3", "one URL per url line"},
		"two URLs, one of them later": {"key k {\nurl {env.X},form://secretsecret/y\n}", "3", "one URL per url line"},
		"two default URLs in one":     {"default_urls json://a,json://secretsecret", "2", "one URL per url line or argument"},
		"a line break within a URL":   {"key k {\nurl \"json://h/a\nb\"\n}", "3", "the URL has a line break"},
		"the tag all":                 {"key k {\n" + url + " a All\n}", "3", "all cannot be a tag"},
		"services without any":        {"services {\nallow json\ndeny json xml\n}", "2", "no service is left"},
		"default_urls without effect": {
			"stateless off\ndefault_urls json://h", "3", "default_urls has no effect with stateless off",
		},
		"default_urls without effect, before stateless": {
			"default_urls json://h\nstateless off", "2", "default_urls has no effect with stateless off",
		},
		"a suggestion":          {"key k {\nurl dicord://secretsecret\n}", "3", "you may mean discord://"},
		"identity's name twice": {"identity {\nname a\nname b\n}", "4", "occurs twice in"},
	} {
		for kind, to := range map[string]caddyfile.Unmarshaler{"directive": new(Handler), "global option": new(App)} {
			err := to.UnmarshalCaddyfile(caddyfile.NewTestDispenser("notify {\n" + tt.block + "\n}"))
			if err == nil {
				t.Errorf("%s of the %s: no error", name, kind)
				continue
			}
			if !strings.Contains(err.Error(), tt.text) || !strings.HasSuffix(err.Error(), ", at Testfile:"+tt.line) {
				t.Errorf("%s of the %s: %v\nwant %q and line %s", name, kind, err, tt.text, tt.line)
			}
			if strings.Contains(err.Error(), "secretsecret") {
				t.Errorf("%s of the %s: the error shows the URL: %v", name, kind, err)
			}
		}
	}
	err := new(Handler).UnmarshalCaddyfile(caddyfile.NewTestDispenser("notify json://secretsecret"))
	if err == nil || !strings.Contains(err.Error(), "no arguments") || strings.Contains(err.Error(), "secretsecret") {
		t.Errorf("an argument: %v", err)
	}
}

// TestExample checks that Caddyfile.example runs.
func TestExample(t *testing.T) {
	text, err := os.ReadFile("../Caddyfile.example")
	if err != nil {
		t.Fatal(err)
	}
	if formatted := caddyfile.Format(text); string(formatted) != string(text) {
		t.Error("it is not as caddy fmt would have it")
	}
	config, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt(text, map[string]any{"filename": "Caddyfile.example"})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	var c caddy.Config
	if err := json.Unmarshal(config, &c); err != nil {
		t.Fatal(err)
	}
	if err := caddy.Validate(&c); err != nil {
		t.Error(err)
	}
	// The commented destinations must be valid, too.
	for _, m := range regexp.MustCompile(`# url (\S+)`).FindAllStringSubmatch(string(text), -1) {
		u := regexp.MustCompile(`\{[^}]*\}`).ReplaceAllStringFunc(m[1], func(p string) string {
			return map[string]string{
				"{env.DISCORD_URL}":    "https://discord.com/api/webhooks/1234567890/" + strings.Repeat("a", 68),
				"{env.TELEGRAM_TOKEN}": "123456789:" + strings.Repeat("a", 35),
				"{env.TELEGRAM_CHAT}":  "1234567", "{env.NTFY_TOPIC}": "topic", "{env.MAIL_USER}": "me", "{file./run/secrets/mail}": "password",
			}[p]
		})
		if err := checkURL(u, nil); err != nil {
			t.Errorf("%s: %v", m[0], err)
		}
	}
}
