package caddyhttp

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestImportTemplate checks the templates of imported files: values of the request, of the
// file and of the operator, in this order, and never in the host.
func TestImportTemplate(t *testing.T) {
	s := gatewaytest.NewStation(t)
	t.Setenv("NOTIFY_TEST_ROOM", "of/operator")
	t.Setenv("NOTIFY_TEST_BASE", strings.TrimSuffix(s.NotifyURL("/"), "/"))
	file := configuration(t, "f.yml",
		"version: 2\ntemplate:\n- room\n- level: low\n- none\nurls:\n- ${BASE}/whole\n"+
			"- json://${HOST}/${ROOM}/${level}?tag=part\n- json://${HOST}/${none}?tag=none\n")
	h := newGateway(t, "key k {\nimport_apprise "+file+"\nvariables ROOM={env.NOTIFY_TEST_ROOM} "+
		"LEVEL=x BASE={env.NOTIFY_TEST_BASE} HOST="+strings.TrimPrefix(s.URL, "http://")+"\n}", "")
	for _, c := range []struct {
		form   string
		status int
		paths  string
	}{
		{"body=x&tag=part", 200, "of/operator/low"},
		{"body=x&tag=part&template[Room]=mine&template[level]=${BASE}", 200, "mine/${BASE}"},
		{"body=x&tag=part&template[Room]={env.NOTIFY_TEST_ROOM}&template[level]=%252f", 200, "{env.NOTIFY_TEST_ROOM}/%2f"},
		{"body=x&tag=part&template[Room]=mine&template[level]=%252e%252e", 424, ""},
		{"body=x&tag=none", 424, ""},
		{"body=x&tag=none&template[BASE]=y&template[none]=z", 200, "z"},
	} {
		if r := post(t, h, "/notify/k", typeForm, c.form); r.status != c.status {
			t.Errorf("%s: %d %s", c.form, r.status, r.body)
		}
		if got := s.Paths(); got != c.paths {
			t.Errorf("%s: arrived at %q, want %q", c.form, got, c.paths)
		}
	}
	for text, want := range map[string]string{
		"template: [a]\nurls: ['json://${a}/']":                           "f.yml:2: a variable of the template decides which server",
		"template: {a: h.example}\nurls: ['json://u:p@${a}/']":            "f.yml:2: a variable of the template decides which server",
		"template: [a]\nurls:\n- mailto://u:p@h.example:\n    smtp: ${a}": "f.yml:3: a variable of the template decides which server",
		"template: [a]\nurls: ['discord://id/token?template=${a}']":       "f.yml:2: a variable of the template decides which file",
		"template: [a]\nurls: ['nope://${a}']":                            "f.yml:2: the URL begins with nope://",
		"template: [a]\nurls: ['json://h/${a}']\nversion: 3":              "f.yml:3: version must be 1 or 2",
	} {
		if _, err := provision(t, "key k {\nimport_apprise "+configuration(t, "f.yml", text)+"\n}", ""); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

// TestSavedTemplateVariables checks that a client cannot get a variable of the operator as a
// value of its own template.
func TestSavedTemplateVariables(t *testing.T) {
	s := gatewaytest.NewStation(t)
	t.Setenv("NOTIFY_TEST_URL", s.NotifyURL("/secretsecret"))
	h, _ := newConfigGateway(t, t.TempDir(), "manage open\nvariables OPS={env.NOTIFY_TEST_URL}", "")
	yaml := "template: [OPS]\nurls: ['${OPS}', '" + strings.TrimSuffix(s.NotifyURL("/"), "/") + "/${ops}']"
	if r := post(t, h, "/add/k", typeForm, "format=yaml&config="+yaml); r.status != http.StatusOK {
		t.Fatal(r.body)
	}
	if r := post(t, h, "/notify/k", typeForm, "body=x"); r.status != http.StatusFailedDependency || s.Paths() != "secretsecret" {
		t.Errorf("%d %s", r.status, r.body)
	}
}
