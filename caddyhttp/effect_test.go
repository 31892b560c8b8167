package caddyhttp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
)

// loadCaddyfile adapts and provisions a Caddyfile, and makes the checks of the start, whose
// errors begin with atStart. It returns the warnings of notify in the log.
func loadCaddyfile(t *testing.T, text string) (warnings []string, err error) {
	t.Helper()
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return nil, err
	}
	var c caddy.Config
	if err := json.Unmarshal(config, &c); err != nil {
		t.Fatal(err)
	}
	off, log := false, filepath.Join(t.TempDir(), "log")
	c.Admin = &caddy.AdminConfig{Disabled: true, Config: &caddy.ConfigSettings{Persist: &off}}
	c.Logging = &caddy.Logging{Logs: map[string]*caddy.CustomLog{"default": {BaseLog: caddy.BaseLog{
		Level: "WARN", WriterRaw: caddyconfig.JSON(map[string]string{"output": "file", "filename": log}, nil),
	}}}}
	provisioning.Lock()
	defer provisioning.Unlock()
	ctx, err := caddy.ProvisionContext(&c)
	if err != nil {
		return nil, err
	}
	m, err := ctx.App("notify")
	if err != nil {
		return nil, err
	}
	app := m.(*App)
	t.Cleanup(func() { _ = app.Cleanup() })
	for _, h := range app.handlers {
		t.Cleanup(func() { _ = h.Cleanup() })
	}
	if err := app.Check(); err != nil {
		return nil, fmt.Errorf("%s%w", atStart, err)
	}
	f, err := os.Open(log)
	if err != nil {
		return nil, nil // nothing was logged
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var line struct{ Logger, Msg, Warning string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line.Logger, "notify") {
			warnings = append(warnings, line.Msg+" "+line.Warning)
		}
	}
	return warnings, nil
}

// atStart is the beginning of an error that `caddy validate` does not find.
const atStart = "at the start: "

// withOptions returns a Caddyfile with the global option notify and a site.
func withOptions(options, siteID string) string {
	text := ""
	if options != "" {
		text = "{\nnotify {\n" + options + "\n}\n}\n"
	}
	if siteID != "" {
		text += "http://h {\nnotify {\n" + siteID + "\nstateless off\n}\nrespond 404\n}\n"
	}
	return text
}

const (
	opsKey   = "key ops {\nurl json://localhost/ops\n}\n"
	devKey   = "key dev {\nurl json://localhost/dev\n}\n"
	mailHash = "$2a$04$ZmFrZWZha2VmYWtlZmFrZOeTlUyXJ5GQw9x0QbrGx7RkcBhrFrrUe"
)

// keyWith returns a key with more settings.
func keyWith(name, more string) string {
	return "key " + name + " {\nurl json://localhost/" + name + "\n" + more + "\n}\n"
}

// mailWith returns smtp with accounts.
func mailWith(accounts ...string) string {
	text := "smtp 127.0.0.1:2525 {\ntls mail.example.com\nauth {\n"
	for _, a := range accounts {
		user, keys, _ := strings.Cut(a, " ")
		text += user + " " + mailHash + " " + keys + "\n"
	}
	return text + "}\n}\n"
}

// TestNoEffect checks that settings that load, but can never do what they say, are
// errors. Each of these answered 200 to messages that went nowhere, or refused all.
func TestNoEffect(t *testing.T) {
	for name, tt := range map[string]struct{ options, site, want string }{
		"format that does not exist": {
			"", opsKey + "from backup {\ntitle x\nformat md\n}",
			`"md" is not a format; write text, markdown or html, at Caddyfile:6`,
		},
		"format in a file's source": {
			"", opsKey + "from backup {\ntitle x\ntoken {env.HOME}\nformat mrkdwn\n}",
			`Caddyfile:6: from backup: the template format: "mrkdwn" is not a format`,
		},
		"images of a source without any": {
			"", opsKey + "from alertmanager {\nimages on\n}",
			"images on has no effect, because Prometheus Alertmanager sends no images; remove it, at Caddyfile:6",
		},
		"images of an API without any": {
			"", opsKey + "from ntfy {\nimages on\n}", "images on has no effect, because ntfy sends no images",
		},
		"mail without keys": {
			"smtp :2525", opsKey,
			"Caddyfile:3: smtp: every mail would be refused, because the global option notify has no key; add key <name>",
		},
		"mail that no key accepts": {
			"smtp :2525\n" + keyWith("ops", "accept direct"), "",
			"Caddyfile:3: smtp: every mail would be refused, because no key of the global option notify accepts mails; add smtp to accept",
		},
		"accept smtp without smtp": {
			keyWith("ops", "accept direct\naccept smtp"), "",
			"Caddyfile:6: key ops: accept: no mails come in, because the global option notify has no smtp",
		},
		"accept smtp at a site": {
			"smtp :2525\n" + opsKey, keyWith("door", "accept direct smtp"),
			"Caddyfile:14: key door: accept: mails reach only the keys of the global option notify; move the key there",
		},
		"accept smtp at a site with configs": {
			"smtp :2525\nconfigs", keyWith("door", "accept smtp"),
			"mails reach only the keys of the global option notify",
		},
		"accept of an unknown source": {
			"", keyWith("ops", "accept garfana"),
			"Caddyfile:5: key ops: accept: there is no source garfana; you may mean grafana",
		},
		"accept of an unknown source by a key": {
			keyWith("ops", "accept backup"), "from other {\ntitle x\n}",
			"Caddyfile:5: key ops: accept: there is no source backup; write direct, smtp, a source of a from block, or a built-in one",
		},
		"accept of the source of no site": {keyWith("ops", "accept backup"), "", "Caddyfile:5: key ops: accept: there is no source backup"},
		"accept smtp with a token, no account": {
			"smtp :2525\n" + keyWith("ops", "token 0123456789abcdef\naccept direct smtp"), "",
			"Caddyfile:7: key ops: accept: every mail would be refused, because the key has a token and no account of smtp names the key",
		},
		"mail for keys with tokens alone": {
			"smtp :2525\n" + keyWith("ops", "token 0123456789abcdef"), "",
			"Caddyfile:3: smtp: every mail would be refused, because the keys of the " +
				"global option notify have tokens and no account of smtp names one of them",
		},
		"account for an unknown key": {
			opsKey + mailWith("printer ops", "camera door"), "",
			"Caddyfile:10: smtp: auth: the account camera names the key door, " +
				"but the global option notify has no such key; add it there, or correct the name",
		},
		"account for a key of a site": {
			opsKey + mailWith("camera door"), keyWith("door", ""),
			"the account camera names the key door, but the global option notify has no such key",
		},
		"account for a key without mails": {
			opsKey + keyWith("door", "accept grafana") + mailWith("camera ops door"), "",
			"Caddyfile:13: smtp: auth: the key door does not accept mails; add smtp to accept of the key",
		},
		"queue off without a queue": {
			keyWith("ops", "queue off"), "",
			"Caddyfile:5: key ops: queue: it has no effect, because there is no queue; add queue to the global option notify, or remove this line",
		},
		"queue on without a queue, at a site": {opsKey, keyWith("door", "queue on"), "Caddyfile:13: key door: queue: it has no effect"},
		"in_flight above max_in_flight": {
			"", opsKey + "max_in_flight 100\nclient_limits {\nin_flight 101\n}",
			"Caddyfile:7: client_limits: in_flight is 101, but max_in_flight lets only 100 messages be under way",
		},
		"in_flight above that of the app": {
			"max_in_flight 100\n" + opsKey, "client_limits {\nin_flight 200\n}",
			"Caddyfile:12: client_limits: in_flight is 200, but",
		},
		"too many for one address": {
			"", opsKey + "client_limits {\nin_flight 10\nin_flight_per_address 11\n}",
			"Caddyfile:6: client_limits: in_flight_per_address is 11, but in_flight for all addresses is 10",
		},
		"tag within quotes": {
			"", "key ops {\nurl \"json://localhost/secret chat\"\n}",
			`as in url "<url>" <tag>, or write %20 for a space that belongs to the URL, at Caddyfile:4`,
		},
		"tags within quotes": {
			"", "key ops {\nurl json://localhost\nurl \"json://localhost/secret 1:chat urgent\"\n}",
			"the URL has a space in it and then what looks like a tag",
		},
		"tag within quotes of a placeholder": {
			"", "key ops {\nurl \"{env.HOME} chat\"\n}", "the URL has a space in it and then what looks like a tag",
		},
		"tag within quotes, after a query": {
			"", "key ops {\nurl json://localhost chat\nurl \"json://localhost/secret?retry=1 chat\"\n}",
			"the URL has a space in it and then what looks like a tag",
		},
		"egress with an address in a range": {
			"", opsKey + "egress {\nallow 10.0.0.5/8\n}",
			"write 10.0.0.0/8 for the range, or 10.0.0.5 for the address alone, or all, at Caddyfile:7",
		},
		"egress deny":     {"", opsKey + "egress {\ndeny 192.0.2.7/24\n}", "write 192.0.2.0/24 for the range"},
		"trusted_clients": {opsKey + "smtp :2525 {\ntrusted_clients 192.168.1.7/24\n}", "", "write 192.168.1.0/24 for the range"},
		"stateless off without a key": {
			"", "max_body 1KiB",
			"Caddyfile:2: stateless off leaves nothing that messages could be sent to, because there is no key",
		},
		"from that no key accepts": {
			"", keyWith("ops", "accept direct") + "from backup {\ntitle x\n}",
			"Caddyfile:7: from backup: no key accepts messages from this source; add backup to accept of a key",
		},
		"from of all that no key accepts": {
			"from backup {\ntitle x\n}", keyWith("ops", "accept direct"),
			"Caddyfile:3: from backup: no key accepts messages from this source",
		},
		"from of all without a key": {"from backup {\ntitle x\n}", "", "Caddyfile:3: from backup: no key accepts messages from this source"},
		"fallback that does not exist": {
			"queue\n" + keyWith("ops", "fallback door"), "",
			"Caddyfile:6: key ops: fallback: there is no key door here",
		},
	} {
		warnings, err := loadCaddyfile(t, withOptions(tt.options, tt.site))
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.HasPrefix(err.Error(), atStart) {
			t.Errorf("%s: error %v, want %q, warnings %q", name, err, tt.want, warnings)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows the URL: %v", name, err)
		}
	}
}

// TestEffect checks that what looks similar, but can work, loads.
func TestEffect(t *testing.T) {
	const from = "from backup {\ntitle x\n}"
	for name, tt := range map[string]struct{ options, site string }{
		"saved keys":                            {"", "configs\n" + from},
		"saved keys beside one":                 {"", "configs\n" + keyWith("ops", "accept direct") + from},
		"saved keys of all":                     {"configs\n" + from, keyWith("ops", "accept direct")},
		"a key of all sites":                    {opsKey, "max_body 1KiB"},
		"a key of all sites that accepts all":   {opsKey, from},
		"one of several keys":                   {keyWith("ops", "accept direct") + from, keyWith("dev", "accept backup")},
		"from of all, and a key of the site":    {from, devKey},
		"a source that replaces a built-in one": {"", keyWith("ops", "accept direct grafana") + "from grafana {\ntoken 0123456789abcdef\n}"},
	} {
		if _, err := loadCaddyfile(t, withOptions(tt.options, tt.site)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMatcherOfKeys checks that a matcher must take an address that the site can answer.
func TestMatcherOfKeys(t *testing.T) {
	for _, tt := range []struct{ matcher, options, site, want string }{
		{"/notify/opps", "", opsKey, "takes only addresses of the key opps, and there is no such key; you may mean ops"},
		{"/notify/opps*", "", opsKey, "there is no such key"},
		{"/notify/opps/*", "", opsKey, "there is no such key"},
		{"/notify/opps/grafana", opsKey, devKey, "you may mean ops"},
		{"@m", "", opsKey, "takes only addresses of the key opps"},
		{"/notify/ops", "", opsKey, ""},
		{"/notify/OPS/", "", opsKey, ""},
		{"/notify/ops", opsKey, devKey, ""},
		{"/notify/op*", "", opsKey, ""},
		{"/notify/ops*", "", opsKey, ""},
		{"/notify/ops/*", "", opsKey, ""},
		{"/notify/*", "", opsKey, ""},
		{"/notify*", "", opsKey, ""},
		{"/notify", "", opsKey, ""},
		{"*", "", opsKey, ""},
		{"/notify/status", "", opsKey, ""},
		{"/notify/stat*", "", opsKey, ""},
		{"/notify/*/grafana", "", opsKey, ""},
		{"/notify/saved", "", "configs\n" + opsKey, ""},
		{"/notify/saved", "configs", opsKey, ""},
	} {
		text := "http://h {\n@m path /notify/opps /notify/opps/*\nnotify " + tt.matcher + " {\n" + tt.site + "}\n}\n"
		if tt.options != "" {
			text = "{\nnotify {\n" + tt.options + "\n}\n}\n" + text
		}
		_, err := loadCaddyfile(t, text)
		if tt.want == "" && err != nil || tt.want != "" &&
			(err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), ", at Caddyfile:")) {
			t.Errorf("%s: %v, want %q", tt.matcher, err, tt.want)
		}
	}
}

// TestNoEffectWithSeveralSites checks that what depends on the sites is checked with all of
// them, wherever they are and in whichever order Caddy provisions them and the app.
func TestNoEffectWithSeveralSites(t *testing.T) {
	const (
		plain  = "notify {\nstateless off\n}\nrespond 404\n"
		backup = "notify {\nstateless off\nfrom backup {\ntitle x\n}\n}\nrespond 404\n"
		nested = "handle_path /a/* {\nroute {\n" + backup + "}\n}\n"
	)
	sites := func(blocks ...string) string {
		text := "{\nnotify {\n" + keyWith("ops", "accept backup") + "}\n}\n"
		for i, block := range blocks {
			text += fmt.Sprintf("http://h:%d {\n%s}\n", 9470+i, block)
		}
		return text
	}
	for name, tt := range map[string]struct {
		text string
		ok   bool
	}{
		"the last site has the source":   {sites(plain, plain, backup), true},
		"the first site has the source":  {sites(backup, plain, plain), true},
		"a nested block has the source":  {sites(plain, nested, plain), true},
		"a page of errors has it":        {sites(plain, "handle_errors {\n"+backup+"}\n"+plain), true},
		"no site has the source":         {sites(plain, plain, strings.ReplaceAll(nested, "backup", "other")), false},
		"a site of something else alone": {sites("respond ok\n"), false},
	} {
		for range 4 { // the order is random
			_, err := loadCaddyfile(t, tt.text)
			const want = "Caddyfile:5: key ops: accept: there is no source backup"
			if tt.ok && err != nil || !tt.ok && (err == nil || !strings.Contains(err.Error(), want) || strings.HasPrefix(err.Error(), atStart)) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestRepeatedURL checks the warning about a URL that a key has twice.
func TestRepeatedURL(t *testing.T) {
	t.Setenv("NOTIFY_TEST_HOST", "localhost")
	imported := filepath.Join(t.TempDir(), "apprise.cfg")
	if err := os.WriteFile(imported, []byte("json://localhost/secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ site, want string }{
		"as it is": {
			"key ops {\nurl json://localhost/secret\nurl json://other\nurl json://localhost/secret\n}",
			"Caddyfile:6: the key ops has this URL already in Caddyfile:4, " +
				"so each message is sent there twice; remove one, or give them different tags",
		},
		"spelt differently": {
			"key ops {\nurl JSON://localhost/secret\nurl json://{env.NOTIFY_TEST_HOST}/secret\n}",
			"Caddyfile:5: the key ops has this URL already in Caddyfile:4",
		},
		"tags in any order": {
			"key ops {\nurl json://localhost/secret a B\nurl json://localhost/secret b a\n}",
			"Caddyfile:5: the key ops has this URL already in Caddyfile:4",
		},
		"in a file": {
			"key ops {\nurl json://localhost/secret\nimport_apprise " + imported + "\n}",
			"an imported file: the key ops has this URL already in Caddyfile:4",
		},
	} {
		warnings, err := loadCaddyfile(t, withOptions("", tt.site))
		if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], tt.want) || strings.Contains(warnings[0], "secret") {
			t.Errorf("%s: %v, %q; want %s", name, err, warnings, tt.want)
		}
	}
}

// TestLegitimate checks that configurations that do what they say load without a warning.
// Each looks like a mistake, but is none.
func TestLegitimate(t *testing.T) {
	t.Setenv("NOTIFY_TEST_HOST", "localhost")
	queue := "queue {\npath " + t.TempDir() + "\n}\n"
	from := func(name, more string) string { return "from " + name + " {\n" + more + "\n}\n" }
	for name, tt := range map[string]struct{ options, site string }{
		"format text":                              {"", opsKey + from("backup", "title x\nformat text")},
		"format in capitals":                       {"", opsKey + from("backup", "title x\nformat Markdown")},
		"format html":                              {"", opsKey + from("backup", "title x\nformat html")},
		"format by a template":                     {"", opsKey + from("backup", "title x\nformat \"{{.format}}\"")},
		"format by a choice":                       {"", opsKey + from("backup", "title x\nformat \"{{if .md}}markdown{{else}}text{{end}}\"")},
		"images of Grafana":                        {"", opsKey + from("grafana", "images on")},
		"images of Sonarr and Radarr":              {"", opsKey + from("sonarr", "images on") + from("radarr", "images on")},
		"images of Plex, as files of a form":       {"", opsKey + from("plex", "images on")},
		"images of Slack":                          {"", opsKey + from("slack", "images on")},
		"images of Discord and Gotify":             {"", opsKey + from("discord", "images on") + from("gotify", "images on")},
		"images off where there are none":          {"", opsKey + from("alertmanager", "token secret\nimages off")},
		"files of a form of one's own":             {"", opsKey + from("camera", "title {{.event}}\nimages on")},
		"mail for a key":                           {"smtp 127.0.0.1:2525\n" + opsKey, ""},
		"mail for one of the keys":                 {"smtp 127.0.0.1:2525\n" + opsKey + keyWith("door", "accept grafana"), ""},
		"mail for saved keys alone":                {"smtp 127.0.0.1:2525\nconfigs", ""},
		"mail for saved keys, and no other":        {"smtp 127.0.0.1:2525\nconfigs\n" + keyWith("door", "accept direct"), ""},
		"mail, and keys of a site":                 {"smtp 127.0.0.1:2525\n" + opsKey, keyWith("door", "")},
		"accept smtp":                              {"smtp 127.0.0.1:2525\n" + keyWith("ops", "accept smtp"), ""},
		"accept smtp and others":                   {"smtp 127.0.0.1:2525\n" + keyWith("ops", "accept direct smtp grafana"), ""},
		"accept direct":                            {"", keyWith("ops", "accept direct")},
		"accept built-in sources":                  {"", keyWith("ops", "accept grafana alertmanager ntfy")},
		"accept a source of the site":              {"", keyWith("ops", "accept backup") + from("backup", "title x")},
		"accept a source of the global option":     {from("backup", "title x"), keyWith("ops", "accept backup")},
		"accept, in the global option":             {from("backup", "title x") + keyWith("ops", "accept backup"), ""},
		"accept the source of a site in all sites": {keyWith("ops", "accept backup"), from("backup", "title x")},
		"account for every key":                    {opsKey + mailWith("printer"), ""},
		"account for a key":                        {opsKey + mailWith("printer ops"), ""},
		"account for keys that accept mail":        {keyWith("ops", "accept smtp") + devKey + mailWith("printer ops dev", "camera dev"), ""},
		"account for a saved key":                  {"configs\n" + opsKey + mailWith("printer ops door"), ""},
		"account for a saved key alone":            {"configs\n" + mailWith("printer door"), ""},
		"queue off with a queue":                   {queue + keyWith("ops", "queue off"), ""},
		"queue off at a site":                      {queue, keyWith("ops", "queue off")},
		"queue on with a queue":                    {queue + keyWith("ops", "queue on"), ""},
		"fallback":                                 {queue + devKey + keyWith("ops", "fallback dev"), ""},
		"fallback of the global option":            {queue + devKey, keyWith("ops", "fallback dev")},
		"in_flight as max_in_flight":               {"", opsKey + "max_in_flight 100\nclient_limits {\nin_flight 100\n}"},
		"in_flight of one address as in_flight":    {"", opsKey + "client_limits {\nin_flight 10\nin_flight_per_address 10\n}"},
		"in_flight of one address, by the default": {"", opsKey + "client_limits {\nin_flight_per_address 500\n}"},
		"limits of the global option, a small site": {
			"client_limits {\nin_flight 500\nin_flight_per_address 100\n}", opsKey + "max_in_flight 50",
		},
		"in_flight of a site, max_in_flight of all": {"max_in_flight 5000", opsKey + "client_limits {\nin_flight 4000\n}"},
		"a URL with different tags":                 {"", "key ops {\nurl json://localhost chat\nurl json://localhost urgent\n}"},
		"a URL with and without a tag":              {"", "key ops {\nurl json://localhost\nurl json://localhost urgent\n}"},
		"a URL twice in a chain":                    {"", "key ops {\nurl json://localhost 1:ops\nurl json://localhost 2:ops\n}"},
		"a URL in two keys":                         {opsKey, "key dev {\nurl json://localhost/ops\n}\nkey test {\nurl json://localhost/ops\n}"},
		"a key of the site that replaces another":   {opsKey, opsKey},
		"URLs that differ in a parameter":           {"", "key ops {\nurl json://localhost\nurl json://localhost?retry=2\n}"},
		"URLs that differ in a path":                {"", "key ops {\nurl json://{env.NOTIFY_TEST_HOST}/a\nurl json://localhost/b\n}"},
		"quotes around a URL with a tag":            {"", "key ops {\nurl \"json://localhost/x\" chat\n}"},
		"a space in a parameter":                    {"", "key ops {\nurl \"json://localhost/x?+X-From=Disk alarm\" chat\n}"},
		"a space in a path":                         {"", "key ops {\nurl \"json://localhost/my folder/x\" chat\n}"},
		"a space in a password":                     {"", "key ops {\nurl \"json://user:abcd efgh ijkl@localhost/x\" chat\n}"},
		"telephone numbers with a space":            {"", "key ops {\nurl \"json://localhost/15551234567 15551234568\" chat\n}"},
		"a space at the end of a URL":               {"", "key ops {\nurl \"json://localhost/x \" chat\n}"},
		"egress as Caddy writes private_ranges": {
			"", opsKey + "egress {\nallow 192.168.0.0/16 172.16.0.0/12 10.0.0.0/8 127.0.0.1/8 fd00::/8 ::1\n}",
		},
		"egress with addresses": {
			"",
			opsKey + "egress {\nallow 10.0.0.5 10.0.0.6/32 fd00::5 fd00::6/128 192.168.7.0/24\ndeny private_ranges 192.0.2.7\n}",
		},
		"egress all":                           {"", opsKey + "egress {\nallow all\n}"},
		"trusted_clients as Caddy writes them": {"smtp 127.0.0.1:2525 {\ntrusted_clients 127.0.0.1/8 192.168.1.0/24 10.0.0.7\n}\n" + opsKey, ""},
	} {
		warnings, err := loadCaddyfile(t, withOptions(tt.options, tt.site))
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v %q", name, err, warnings)
		}
	}
}
