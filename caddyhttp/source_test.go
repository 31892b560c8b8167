package caddyhttp

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestCustomSources checks new sources and built-in sources with changed templates.
func TestCustomSources(t *testing.T) {
	s := gatewaytest.NewStation(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "body.tmpl")
	if err := os.WriteFile(file, []byte("{{range .hosts}}{{.}}\n{{end}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newGateway(t, "key ops {\nurl "+s.NotifyURL("/ops")+"\n}\nfrom backup {\n"+
		"title \"{{.job}} on {{.host}}\"\nbody_file "+file+"\ntype \"{{.state}}\"\n"+
		"types broken=failure Partial=warning\nskip `{{eq .state \"started\"}}`\n}\n"+
		"from proxmox {\ntitle \"{{range 99999}}{{end}}\"\nbody `PVE: {{.message}}`\n"+
		"}\nfrom bad {\nbody `line 1\n {{range 99999}}{{end}}`\n}", "")
	for _, tt := range []struct {
		source, body        string
		want                int
		title, message, typ string
	}{
		{"backup", `{"job":"j","host":"h","state":"broken","hosts":["a","b"]}`, 200, "j on h", "a\nb", "failure"},
		{"backup", `{"job":"j","host":"h","state":"partial","hosts":[]}`, 200, "", "j on h", "warning"},
		{"backup", `{"job":"j","host":"h","state":"resolved","hosts":["{{.job}}"]}`, 200, "j on h", "{{.job}}", "success"},
		{"backup", `{"state":"started"}`, 200, "", "", ""},
		// the built-in title replaces one that fails
		{"proxmox", `{"title":"T","message":"M","severity":"error"}`, 200, "T", "PVE: M", "failure"},
		{"bad", `{}`, 400, "", "the template body, line 2, column", ""},
	} {
		got := post(t, h, "/notify/ops/"+tt.source, typeJSON, tt.body)
		if got.status != tt.want {
			t.Errorf("%s: status %d: %s", tt.body, got.status, got.body)
		}
		all := s.Take()
		if tt.typ == "" {
			if len(all) != 0 || !strings.Contains(got.body, tt.message) {
				t.Errorf("%s: %d messages: %s", tt.body, len(all), got.body)
			}
			continue
		}
		if len(all) != 1 || all[0].Title != tt.title || all[0].Message != tt.message || all[0].Type != tt.typ {
			t.Errorf("%s: got %+v", tt.body, all)
		}
		if tt.source == "proxmox" && !strings.Contains(got.body, "The built-in text is used in place of a template that fails") {
			t.Errorf("no warning: %s", got.body)
		}
	}
}

// TestSourceConfigErrors checks the errors of from blocks and of accept.
func TestSourceConfigErrors(t *testing.T) {
	const key = "key ops {\nurl json://localhost\n}\n"
	for block, want := range map[string]string{
		"from mine {\ntype info\n}":                                  "there is no built-in source mine; give it a title or a body",
		"from grafana {\nsign grafana\n}":                            "sign: the secret is missing; write sign grafana {env.NAME}",
		"from mine {\ntitle x\nsign standard whsec_\n}":              "the secret is empty",
		"from mine {\ntitle x\nsign standard whsec_QUJD\n}":          "the secret of the scheme standard is 3 bytes long and must be at least 16",
		"from grafana {\nsign sns x\n}":                              "sns takes no secret",
		"from grafana {\nsign md5 x\n}":                              "there is no such signature scheme; use flux, github",
		"from mine {\ntitle {{.a\n}":                                 "the template title, line 1: unclosed action",
		"from mine {\ntitle `{= .x}}`\n}":                            "Caddy takes {$x} for an environment variable",
		"from mine {\ntitle {{nope}}\n}":                             `function "nope" not defined`,
		"from mine {\ntitle x\ntypes a=bad\n}":                       "use info, success, warning or failure",
		"from mine {\ntitle x\ntypes a\n}":                           "word=type",
		"from mine {\ntitle x\ntitle_file /nonexistent/t\n}":         "title_file: there is a template in the configuration as well",
		"from mine {\nbody_file /nonexistent/t\n}":                   "body_file: no such file",
		"from mine {\ntitle x\ntoken {env.SOURCE_NOT_SET}\n}":        "no such environment variable",
		"from slack {\ntitle x\n}":                                   "slack is an API, whose messages need no templates",
		"from direct {\ntitle x\n}":                                  "direct cannot be the name of a source",
		"from a.b {\ntitle x\n}":                                     "the name of a source must be",
		"from grafana {\nimages on\n}\nfrom grafana {\nimages on\n}": "the source grafana occurs twice",
		"from grafana {\n}":                                          "from needs a block with at least one of",
		"key k {\nurl json://localhost\naccept nobody\n}":            "accept: there is no source nobody",
	} {
		if _, err := provision(t, key+block, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", block, err, want)
		}
	}
}

// TestNoSource checks that the error for a misspelt source suggests one of the configuration, unless
// the keys have tokens: then a stranger learns no name.
func TestNoSource(t *testing.T) {
	const block = "key ops {\nurl json://127.0.0.1:1\n%s\n}\nfrom backup {\ntitle x\n}"
	for token, want := range map[string]string{
		"":                       "there is no such source: bakup; you may mean backup; ",
		"token 0123456789abcdef": "there is no such source: bakup; the address",
	} {
		h := newGateway(t, fmt.Sprintf(block, token), "")
		if err := h.api.Sources.Missing("bakup", h.api.Resolved.Protected(t.Context())); !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", token, err)
		}
	}
}
