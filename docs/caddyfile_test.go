package docs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"go.yaml.in/yaml/v3"

	"github.com/caddy-notify/caddy-notify/caddyhttp"
	"github.com/caddy-notify/caddy-notify/internal/jsontest"
)

// environment has a value for each placeholder {env.NAME} of the pages.
var environment = map[string]string{
	"CAMERA_PASSWORD_HASH": "$2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG",
	"CONFIG_PASSWORD":      "secret",
	"DATABASE_URL":         "postgres://notify@127.0.0.1/notify",
	"CHAT_URL":             "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js",
	"ANN_URL":              "ntfys://ntfy.sh/a-name-that-nobody-guesses?priority=max", // as docs/on-call.md says
	"BOB_URL":              "ntfys://ntfy.sh/bob-77ad",
	"BOSS_URL":             "ntfys://ntfy.sh/boss-90be",
	"DISCORD_URL":          "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js",
	"GRAFANA_SECRET":       "secret",
	"MAIL_PASSWORD":        "secret",
	"MAIL_URL":             "mailtos://user:secret@example.com",
	"MAIL_USER":            "user",
	"MY_NUMBER":            "15551234567",
	"NTFY_TOPIC":           "topic",
	"OPS_TELEGRAM":         "tgram://123456789:AAaaBBbbCCccDDddEEeeFFffGGgghhhhhhh/12315544",
	"PHONE_URL":            "ntfys://ntfy.sh/topic",
	"SECOND_PHONE_URL":     "ntfys://ntfy.sh/topic2",
	"SLACK_TOKEN":          "secret",
	"OPS_TOKEN":            "1f0c5a0b7d5e4c1f9c5be1a2d4a90b11",
	"OPS_READER":           "7f0c5a0b7d5e4c1f9c5be1a2d4a90b22",
	"TELEGRAM_CHAT":        "12315544",
	"TELEGRAM_TOKEN":       "123456789:AAaaBBbbCCccDDddEEeeFFffGGgghhhhhhh",
	"TELEGRAM_URL":         "tgram://123456789:AAaaBBbbCCccDDddEEeeFFffGGgghhhhhhh/12315544",
	"TWILIO_FROM":          "15557654321",
	"TWILIO_SID":           "AC0123456789abcdef0123456789abcdef",
	"TWILIO_TOKEN":         "fedcba9876543210fedcba9876543210",
	"WATCHDOG_URL":         "https://watchdog.example.com/5d8c7ba2",
}

// secretFiles has the content of each {file./run/secrets/name} of the pages.
var secretFiles = map[string]string{
	"ops_token": "3c0c5a0b7d5e4c1f9c5be1a2d4a90b33",
	"discord":   environment["DISCORD_URL"] + "\n",
	"mail":      "secret\n",
	"queue":     "sixteen characters\n",
}

// loader loads the configurations in the pages. It provides what they refer to:
// environment variables, secrets, apprise.yml and the server
// config.example.com.
type loader struct {
	dir     string
	address string // of the replacement for config.example.com
}

func newLoader(t *testing.T) *loader {
	t.Helper()
	l := &loader{dir: t.TempDir()}
	for name, value := range environment {
		t.Setenv(name, value)
	}
	for name, content := range secretFiles {
		writeFile(t, filepath.Join(l.dir, name), content)
	}
	var apprise string
	for _, b := range readPage(t, "docs/apprise.md").blocks {
		if b.language == "yaml" && strings.HasPrefix(b.text, "version:") {
			apprise = b.text
		}
	}
	if apprise == "" {
		t.Fatal("docs/apprise.md has no example of apprise.yml")
	}
	writeFile(t, filepath.Join(l.dir, "apprise.yml"), apprise)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(apprise)) }))
	t.Cleanup(s.Close)
	l.address = strings.TrimPrefix(s.URL, "http://")
	return l
}

func writeFile(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// local replaces names that only exist on the reader's machine.
func (l *loader) local(text string) string {
	text = strings.ReplaceAll(text, "{file./run/secrets/", "{file."+l.dir+"/")
	text = strings.ReplaceAll(text, "reverse_proxy 10.0.0.7:8080", "reverse_proxy "+l.address) // Caddy checks its health
	return regexp.MustCompile(`https://((?:[^@\s]*@)?)config\.example\.com`).ReplaceAllString(text, "http://${1}"+l.address)
}

// loadCaddyfile adapts and provisions a Caddyfile or a fragment.
func (l *loader) loadCaddyfile(text string) error {
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(l.local(complete(text))),
		map[string]any{"filename": filepath.Join(l.dir, "Caddyfile")})
	if err != nil {
		return err
	}
	return l.loadJSON(string(config))
}

func (l *loader) loadJSON(text string) error {
	var config *caddy.Config
	if err := json.Unmarshal([]byte(l.local(text)), &config); err != nil {
		return err
	}
	// Logs of the default logger would be mixed with the test's output.
	if config.Logging == nil {
		config.Logging = &caddy.Logging{}
	}
	if config.Logging.Logs["default"] == nil {
		if config.Logging.Logs == nil {
			config.Logging.Logs = map[string]*caddy.CustomLog{}
		}
		config.Logging.Logs["default"] = &caddy.CustomLog{BaseLog: caddy.BaseLog{WriterRaw: json.RawMessage(`{"output": "discard"}`)}}
	}
	return caddy.Validate(config)
}

// checkCaddyfile provisions a whole Caddyfile and makes the checks of its start. It
// returns the warnings.
func (l *loader) checkCaddyfile(t *testing.T, text string) (warnings []string, err error) {
	t.Helper()
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(l.local(text)),
		map[string]any{"filename": filepath.Join(l.dir, "Caddyfile")})
	if err != nil {
		return nil, err
	}
	var config caddy.Config
	if err := json.Unmarshal(adapted, &config); err != nil {
		return nil, err
	}
	off, log := false, filepath.Join(t.TempDir(), "log")
	config.Admin = &caddy.AdminConfig{Disabled: true, Config: &caddy.ConfigSettings{Persist: &off}}
	config.Logging = &caddy.Logging{Logs: map[string]*caddy.CustomLog{"default": {BaseLog: caddy.BaseLog{
		Level: "WARN", WriterRaw: caddyconfig.JSON(map[string]string{"output": "file", "filename": log}, nil),
	}}}}
	ctx, err := caddy.ProvisionContext(&config)
	if err != nil {
		return nil, err
	}
	app, err := ctx.App("notify")
	if err != nil {
		return nil, err
	}
	notify := app.(*caddyhttp.App)
	defer func() {
		if err := notify.Cleanup(); err != nil {
			t.Error(err)
		}
	}()
	if err := notify.Check(); err != nil {
		return nil, err
	}
	content, err := os.ReadFile(log)
	if err != nil {
		return nil, nil // nothing was logged
	}
	for line := range strings.Lines(string(content)) {
		var entry struct{ Logger, Msg, Warning string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			return nil, err
		}
		if strings.Contains(entry.Logger, "notify") {
			warnings = append(warnings, entry.Msg+" "+entry.Warning)
		}
	}
	return warnings, nil
}

// TestExamplesAreSafe checks that the Caddyfiles that people copy first load without
// a warning: whole files in the README and docs, Caddyfile.example and the Caddyfile of deploy.
// Fragments are parts of a site that may have a password.
func TestExamplesAreSafe(t *testing.T) {
	l := newLoader(t)
	writeFile(t, filepath.Join(l.dir, "ops"), environment["DISCORD_URL"]+"\n")
	t.Setenv("NOTIFY_SECRETS", l.dir)
	t.Setenv("NOTIFY_PASSWORD_HASH", hash)
	t.Setenv("NOTIFY_SITE", "alerts.example.com")
	examples := map[string]string{
		"Caddyfile.example":      readFile(t, "Caddyfile.example"),
		"deploy/caddy/Caddyfile": readFile(t, "deploy/caddy/Caddyfile"),
	}
	for _, p := range userPages(t) {
		for _, b := range p.blocks {
			if b.language == "caddyfile" && complete(b.text) == b.text && strings.Contains(b.text, "notify") {
				examples[b.String()] = b.text
			}
		}
	}
	for name, text := range examples {
		warnings, err := l.checkCaddyfile(t, text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, w := range warnings {
			t.Errorf("%s: %s", name, w)
		}
	}
	if len(examples) < 15 {
		t.Errorf("there are only %d examples", len(examples))
	}
}

// directive matches the first word after comments.
var directive = regexp.MustCompile(`^(?:\s*#.*\n|\s)*(\S+)`)

// rule matches a line of a key with a rule.
var rule = regexp.MustCompile(`(?m)^\t(silence|dedupe|hold|escalate|quiet|digest|rate|expect) `)

// complete completes a fragment of a Caddyfile, by its first word.
func complete(text string) string {
	const keys = "notify {\nkey ops {\nurl {env.DISCORD_URL} urgent\n}\nkey phone {\nurl {env.PHONE_URL} urgent\n}\n}\n"
	word := ""
	if m := directive.FindStringSubmatch(text); m != nil {
		word = m[1]
	}
	switch word {
	case "{": // global options
	case "events", "log", "servers":
		text = "{\n" + keys + text + "}\n"
	case "key":
		if rule.MatchString(text) { // it needs the queue
			return "{\nnotify {\nqueue\npublic_url https://alerts.example.com\n" + text + "}\n}\n" + complete("notify\n")
		}
		return complete("notify {\n" + text + "}\n")
	case "egress", "services", "attachments", "identity":
		return complete("notify {\n" + text + "}\n")
	case "notify":
		text = "alerts.example.com {\n" + text + "respond 404\n}\n"
	}
	return text
}

// TestCaddyfiles loads every Caddyfile in the pages.
func TestCaddyfiles(t *testing.T) {
	l := newLoader(t)
	n := 0
	for _, p := range userPages(t) {
		for _, b := range p.blocks {
			for _, m := range regexp.MustCompile(`\{env\.(\w+)\}`).FindAllStringSubmatch(b.text, -1) {
				if _, ok := environment[m[1]]; !ok && m[1] != "NAME" {
					t.Errorf("%s: the test has no value for %s", b, m[0])
				}
			}
			if b.language != "caddyfile" {
				continue
			}
			n++
			if err := l.loadCaddyfile(b.text); err != nil {
				t.Errorf("%s: %v", b, err)
			}
		}
	}
	if n < 20 {
		t.Errorf("there are only %d Caddyfiles", n)
	}
}

// TestExample loads Caddyfile.example, as it is and with its commented
// destinations.
func TestExample(t *testing.T) {
	l := newLoader(t)
	content, err := os.ReadFile(filepath.Join(root, "Caddyfile.example"))
	if err != nil {
		t.Fatal(err)
	}
	comments := regexp.MustCompile(`(?m)^(\s*)# (url |queue$|dedupe )`)
	if !comments.Match(content) {
		t.Error("no destination is commented out")
	}
	for _, text := range []string{string(content), comments.ReplaceAllString(string(content), "$1$2")} {
		if err := l.loadCaddyfile(text); err != nil {
			t.Error(err)
		}
	}
}

// TestSettings reports settings that are missing from their pages.
func TestSettings(t *testing.T) {
	inCaddyfile := map[string]string{"keys": "key", "urls": "url", "tags": "url"}
	for module, names := range map[string][]string{
		"notify":                       {"docs/caddyfile.md", "docs/limits.md", "docs/sources.md", "docs/prometheus.md", "docs/json.md"},
		"http.handlers.notify":         {"docs/caddyfile.md", "docs/limits.md", "docs/sources.md", "docs/prometheus.md", "docs/json.md"},
		"events.handlers.notify":       {"docs/events-and-logs.md"},
		"caddy.logging.writers.notify": {"docs/events-and-logs.md"},
	} {
		info, err := caddy.GetModule(module)
		if err != nil {
			t.Fatal(err)
		}
		var prose string
		for _, name := range names {
			prose += readPage(t, name).prose
		}
		for _, field := range jsontest.Fields(reflect.TypeOf(info.New())) {
			if short := inCaddyfile[field]; short != "" {
				field = short
			}
			if !regexp.MustCompile("`" + field + "[ `]").MatchString(prose) {
				t.Errorf("the setting %s of %s is not in %s", field, module, strings.Join(names, ", "))
			}
		}
	}
}

// TestData parses the YAML and JSON in the pages and loads those that are
// configurations. TestCommands checks requests and responses.
func TestData(t *testing.T) {
	l := newLoader(t)
	for _, p := range userPages(t) {
		for _, b := range p.blocks {
			if err := l.checkData(b); err != nil {
				t.Errorf("%s: %v", b, err)
			}
		}
	}
}

func (l *loader) checkData(b block) error {
	switch b.language {
	case "yaml":
		return yaml.Unmarshal([]byte(b.text), new(any))
	case "json":
		if !json.Valid([]byte(b.text)) {
			return fmt.Errorf("this is not JSON")
		}
		if hasField(b.text, "apps") {
			return l.loadJSON(b.text)
		}
	case "caddyfile", "sh", "text", "go", "ini":
	default:
		return fmt.Errorf("unknown language %q; add it to the test", b.language)
	}
	return nil
}

// hasField reports whether a text is a JSON object with a field.
func hasField(text, name string) bool {
	var object map[string]json.RawMessage
	_ = json.Unmarshal([]byte(text), &object)
	return object[name] != nil
}
