package caddyhttp

import (
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// readTestConfig reads a Caddyfile with a global block and sites.
func readTestConfig(t *testing.T, text string) *Config {
	t.Helper()
	c, err := ReadConfig(strings.NewReader(text), "-", "caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestConfigKey checks that a key has the settings of the place that defines it,
// and that the mistakes of other keys do not matter.
func TestConfigKey(t *testing.T) {
	c := readTestConfig(t, `{
	notify {
		timeout 7s
		key ops {
			url json://127.0.0.1/a chat
			url json://127.0.0.1/b
			default_tag untagged
		}
		key broken {
			url {env.NOTIFY_TEST_UNSET}
		}
	}
}
:8080 {
	notify {
		timeout 3s
		identity {
			name Site
		}
		key site {
			url json://127.0.0.1/c
		}
	}
}
`)
	ops, err := c.Key("ops")
	if err != nil {
		t.Fatal(err)
	}
	if targets, err := ops.Choose(notifier.TagExpr{}); err != nil ||
		len(targets) != 1 || len(ops.Targets) != 2 || ops.Timeout.String() != "7s" {
		t.Errorf("ops has %v of %v, %s, %v", targets, ops.Targets, ops.Timeout, err)
	}
	x, err := c.Key("site")
	if err != nil {
		t.Fatal(err)
	}
	if x.Timeout.String() != "3s" || x.Identity.Name != "Site" || ops.Identity.Name == "Site" {
		t.Errorf("site has %s and %+v, ops %+v", x.Timeout, x.Identity, ops.Identity)
	}
	if _, err := c.Key("broken"); err == nil {
		t.Error("the key broken is loaded")
	}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "NOTIFY_TEST_UNSET") {
		t.Errorf("the configuration is valid: %v", err)
	}
}

// TestConfigSource checks the precedence of sources, and that the value of a
// signature's secret need not be there.
func TestConfigSource(t *testing.T) {
	c := readTestConfig(t, `{
	notify {
		from grafana {
			body app
			sign grafana {env.NOTIFY_TEST_UNSET}
		}
		from own {
			body app
		}
	}
}
:8080 {
	notify {
		from own {
			body first
		}
		from local {
			body local
		}
	}
}
:8081 {
	notify {
		key ops {
			url json://127.0.0.1
		}
		from own {
			body second
		}
	}
}
`)
	for _, tt := range []struct {
		config            *Config
		source, key, want string
	}{
		{c, "grafana", "", "app"},
		{c, "local", "", "local"},
		{c, "own", "", "app"},
		{c, "own", "ops", "second"},
		{new(Config), "slack", "", "hello"},
	} {
		s, err := tt.config.Source(tt.source, tt.key)
		if err != nil {
			t.Errorf("%s with the key %q: %v", tt.source, tt.key, err)
			continue
		}
		payload := `{"text": "hello"}`
		if tt.source == "grafana" {
			payload = `{"title": "hello", "alerts": [{"labels": {}}]}`
		}
		m, err := s.Read(t.Context(), &source.Request{Body: []byte(payload), Header: map[string][]string{"Content-Type": {typeJSON}}})
		if err != nil || m.Body != tt.want {
			t.Errorf("%s with the key %q: %+v, %v; want %s", tt.source, tt.key, m, err, tt.want)
		}
	}
	if _, err := new(Config).Source("nobody", ""); err == nil {
		t.Error("there is a source nobody")
	}
}

// TestConfigKeyOfDevices checks that a key can be read if only devices have the tags of its steps.
// Only the running gateway knows the devices.
func TestConfigKeyOfDevices(t *testing.T) {
	c := readTestConfig(t, `{
	notify {
		public_url https://alerts.example.com
		queue
		push
		key oncall {
			token secretsecretsecret
			url json://127.0.0.1/a 2:oncall
			default_tag oncall
			escalate after 5m {
				tag oncall
			}
		}
		key phones {
			token secretsecretsecret
		}
	}
}
:8080 {
	notify {
		mcp on
		key site {
			token secretsecretsecret
			url json://127.0.0.1/c
			default_tag phone
		}
	}
}
`)
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{
		"oncall": "", "site": "default_tag matches none", "phones": "get messages only from the running gateway",
	} {
		k, err := c.Key(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := k.Choose(notifier.TagExpr{}); want == "" && err != nil ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestMissingBrace checks that the error of a configuration that lacks a } names the block
// without an end, and not only the last line.
func TestMissingBrace(t *testing.T) {
	const key = "\t\tkey ops {\n\t\t\turl json://127.0.0.1/a\n"
	for name, tt := range map[string]struct{ text, want string }{
		"of a key": {
			"{\n\tnotify {\n" + key + "\t}\n}\n:8080 {\n\tnotify\n}\n",
			"a } is missing for the block that begins in line 3",
		},
		"of a key at a site": {
			":8080 {\n\tnotify {\n" + key + "\t}\n\trespond 404\n}\n",
			"a } is missing for the block that begins in line 3",
		},
		"of notify": {
			"{\n\tnotify {\n" + key + "\t\t}\n}\n:8080 {\n\tnotify\n}\n",
			"a } is missing for the block that begins in line 2",
		},
		"of the options": {
			"{\n\tnotify {\n" + key + "\t\t}\n\t}\n\n:8080 {\n\tnotify\n}\n",
			"a } is missing for the block that begins in line 1",
		},
		"of a site": {
			":8080 {\n\tnotify {\n" + key + "\t\t}\n\t}\n\n:8081 {\n\trespond 404\n}\n",
			"a } is missing for the block that begins in line 1",
		},
		"without indentation": {
			"{\nnotify {\nkey ops {\nurl json://127.0.0.1/a\n}\n:8080 {\nrespond 404\n}\n",
			"a } is missing for the block that begins in line 2",
		},
		"none":                   {":8080 {\n\tnotify {\n\t\tnonsense\n\t}\n}\n", ""},
		"a brace in quotes":      {":8080 {\n\trespond \"{\"\n\tnonsense\n}\n", ""},
		"a placeholder":          {":8080 {\n\trespond {env.HOME}\n\tnonsense\n}\n", ""},
		"another brace too many": {":8080 {\n\tnotify\n}\n}\n", ""},
	} {
		_, err := ReadConfig(strings.NewReader(tt.text), "-", "caddyfile")
		if err == nil || !strings.Contains(err.Error(), tt.want) || tt.want == "" && strings.Contains(err.Error(), "is missing for") {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
