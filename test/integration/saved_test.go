package integration

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
)

// TestAppriseConfig saves keys as the clients of an Apprise API do, and lets the
// Apprise command load them from the gateway with --config.
func TestAppriseConfig(t *testing.T) {
	hook := newWebhook(t)
	// The storage is in the folder of the test.
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	gateway := newGateway(t, "egress {\nallow 127.0.0.1\n}\nconfigs shared {\nmanage open\n}")
	call := func(method, path, contentType, body string) (int, string) {
		t.Helper()
		r := request(t, method, "http://"+gateway+path, body)
		if contentType != "" {
			r.Header.Set("Content-Type", contentType)
		}
		return ask(t, r)
	}
	yaml := fmt.Sprintf("urls:\n  - %s:\n      tag: ops\n  - %s:\n      tag: dev\n", hook.to("/ops"), hook.to("/dev"))
	for _, c := range []struct{ name, path, contentType, body string }{
		{"text", "/add/text", "application/json", `{"urls": "` + hook.to("/text") + `"}`},
		{
			"yaml", "/sub/add/yaml/", "application/x-www-form-urlencoded",
			"format=yaml&config=" + strings.NewReplacer("\n", "%0A", " ", "+", ":", "%3A").Replace(yaml),
		},
	} {
		if status, answer := call(http.MethodPost, c.path, c.contentType, c.body); status != http.StatusOK {
			t.Fatalf("saving the key %s: %d %s", c.name, status, answer)
		}
	}
	for _, c := range []struct{ key, tag, arrives string }{{"text", "", "text"}, {"yaml", "ops", "ops"}, {"yaml", "all", "dev ops"}} {
		args := []string{"-b", "x", "--config", "http://" + gateway + "/get/" + c.key}
		if c.tag != "" {
			args = append(args, "--tag", c.tag)
		}
		ok, said := apprise(t, args...)
		if got := hook.paths(); !ok || got != c.arrives {
			t.Errorf("key %s, tag %q: success %t, messages at %q, want %q\n%s", c.key, c.tag, ok, got, c.arrives, said)
		}
	}
	// Home Assistant gives Apprise's library the address of a key as its config.
	const homeAssistant = `import apprise, sys
config = apprise.AppriseConfig()
assert config.add(sys.argv[1])
a = apprise.Apprise()
assert a.add(config)
assert a.notify(body="The garage is open", title="Home Assistant", tag=sys.argv[2:] or None)
`
	for tag, arrives := range map[string]string{"ops": "ops", "dev": "dev"} {
		out, err := exec.Command("/usr/bin/python3", "-c", homeAssistant, "http://"+gateway+"/get/yaml", tag).CombinedOutput()
		if got := hook.paths(); err != nil || got != arrives {
			t.Errorf("Home Assistant, tag %s: messages at %q, want %q: %v\n%s", tag, got, arrives, err, out)
		}
	}
	// The bodies are those that the programs send if no tags and URLs are set.
	for name, body := range map[string]string{
		"Diun":            `{"body": "new image", "title": "Diun", "tags": null, "urls": null}`,
		"multi-scrobbler": `{"title": "ms - Test", "body": "scrobbled", "tags": "", "type": "info"}`,
	} {
		status, answer := call(http.MethodPost, "/notify/yaml", "application/json", body)
		if got := hook.paths(); status != http.StatusOK || got != "dev ops" {
			t.Errorf("%s: %d %s, messages at %q", name, status, answer, got)
		}
	}
	// multi-scrobbler asks first whether a key exists; health checks ask for the
	// status.
	if status, answer := call(http.MethodGet, "/json/urls/yaml", "", ""); status != http.StatusOK ||
		!strings.Contains(answer, `"tags":["dev","ops"]`) {
		t.Errorf("/json/urls: %d %s", status, answer)
	}
	if status, answer := call(http.MethodGet, "/status", "", ""); status != http.StatusOK || answer != "OK" {
		t.Errorf("/status: %d %s", status, answer)
	}
	if ok, said := apprise(t, "-b", "x", "apprise://"+gateway+"/yaml"); !ok || hook.paths() != "dev ops" {
		t.Errorf("apprise:// to a saved key: %s", said)
	}
}
