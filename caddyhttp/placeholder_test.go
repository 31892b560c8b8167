package caddyhttp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestPlaceholders checks that an error about a placeholder's value names the
// key, the number of the URL and the placeholder.
func TestPlaceholders(t *testing.T) {
	s := gatewaytest.NewStation(t)
	t.Setenv("NOTIFY_TEST_URL", s.NotifyURL("/env"))
	t.Setenv("NOTIFY_TEST_TOKEN", "secretsecret")
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte("file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	two := filepath.Join(t.TempDir(), "two")
	if err := os.WriteFile(two, []byte("json://h/1\njson://h/2\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("a\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOTIFY_TEST_TWO", "json://h/1, form://h/2")
	t.Setenv("NOTIFY_TEST_EMPTY", "")
	h := newGateway(t,
		"key k {\nurl {env.NOTIFY_TEST_URL}\nurl "+s.NotifyURL("/{file."+file+"}")+"\n}\ndefault_urls {env.NOTIFY_TEST_URL}",
		"")
	if got := post(t, h, "/notify/k", typeForm, "body=x"); got.status != 200 {
		t.Fatal(got.body)
	}
	if paths := s.Paths(); paths != "env file" {
		t.Errorf("messages at %q", paths)
	}
	// Other braces are not placeholders. Unknown {system.*} and {time.*} have
	// no effect.
	for _, u := range []string{
		"json://h/{system.os}", "json://h/{time.now.year}",
		"json://h/%7Bx%7D", "json://h/?-x={{x}}", `json://h/?-x={"a":1}`,
	} {
		if err := checkURL(u, nil); err != nil {
			t.Errorf("%s: %v", u, err)
		}
	}
	for block, text := range map[string]string{
		"key k {\nurl json://h\nurl {env.NOTIFY_TEST_UNSET}\n}": "key k, URL 2: " +
			"{env.NOTIFY_TEST_UNSET} has no value: there is no such environment variable",
		"key k {\nurl json://h/{env.NOTIFY_TEST_EMPTY}\n}": "key k, URL 1: .*{env.NOTIFY_TEST_EMPTY} is empty",
		"key k {\nurl json://{file./no/such/file}\n}":      "key k, URL 1: {file./no/such/file} has no value: there is no such file",
		"default_urls json://h {env.NOTIFY_TEST_UNSET}": "default_urls, URL 2: " +
			"{env.NOTIFY_TEST_UNSET} has no value: there is no such environment variable",
		"key k {\nurl {env.NOTIFY_TEST_TWO}\n}":             "key k, URL 1: this holds several URLs",
		"default_urls {file." + two + "}":                   "default_urls, URL 1: this holds several URLs",
		"key k {\nurl json://h/{file." + broken + "}\n}":    "key k, URL 1: the URL has a line break",
		"key k {\nurl discord://{env.NOTIFY_TEST_TOKEN}\n}": "key k, URL 1: Discord",
	} {
		_, err := provision(t, block, "")
		if err == nil || !regexp.MustCompile(text).MatchString(err.Error()) || strings.Contains(err.Error(), "secretsecret") {
			t.Errorf("%s: %v, want %q", block, err, text)
		}
	}
}

// TestTextPlaceholders checks that a text with a placeholder that never has a
// value is refused.
func TestTextPlaceholders(t *testing.T) {
	caddyhttptest.ReplaceShared(t) // Caddy keeps its log open
	t.Setenv("NOTIFY_TEST_PLACE", "Berlin")
	file := filepath.Join(t.TempDir(), "place")
	if err := os.WriteFile(file, []byte("Berlin"), 0o600); err != nil {
		t.Fatal(err)
	}
	const notify = "notify {\nkey k {\nurl json://h\n}\n}\n"
	for _, tt := range []struct{ text, event, log string }{ // "" is no error
		{"91% of {this", "", ""},
		{"<style>p{color:red}</style>", "", ""},
		{`{{x}} and \{nosuch}`, "", ""},
		{"{system.hostname} {time.now.year} {env.NOTIFY_TEST_PLACE} {file." + file + "}", "", ""},
		{"{event.name} {event.data.anything} {event.time_unix}", "", "the placeholder {event.name} has no value in a message about log entries"},
		{"{event.nosuch}", "the placeholder {event.nosuch} has no value in a message about an event; use {event.name}", "{event.nosuch}"},
		{"{nosuch}", "{nosuch} has no value", "{nosuch} has no value"},
		{"{http.request.host}", "{http.request.host} has no value", "{http.request.host} has no value"},
		{"{env.NOTIFY_TEST_UNSET}", "on x notify: title: {env.NOTIFY_TEST_UNSET} has no value", "title: {env.NOTIFY_TEST_UNSET} has no value"},
		{"{file./no/such/file}", "title: {file./no/such/file} has no value", "title: {file./no/such/file} has no value"},
	} {
		for _, of := range []struct{ options, want string }{
			{"events {\non x notify k {\ntitle `" + tt.text + "`\n}\n}", tt.event},
			{"log x {\noutput notify k {\ntitle `" + tt.text + "`\n}\n}", tt.log},
		} {
			text := "{\nadmin off\npersist_config off\n" + notify + of.options + "\n}\n"
			config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
			if err != nil && !strings.Contains(err.Error(), "at Caddyfile:11") {
				t.Errorf("%s: no line in %v", tt.text, err)
			}
			var c caddy.Config
			if err == nil {
				err = json.Unmarshal(config, &c)
			}
			if err == nil {
				err = caddy.Validate(&c)
			}
			if of.want == "" && err != nil || of.want != "" && (err == nil || !strings.Contains(err.Error(), of.want)) {
				t.Errorf("%s: error %v, want %q", of.options, err, of.want)
			}
		}
	}
}
