package routing_test

import (
	"fmt"
	"strings"
	"testing"
)

// warningsOfSites returns the warnings about the sites of a Caddyfile. It does
// not start them.
func warningsOfSites(t *testing.T, text string) (warnings []string) {
	t.Helper()
	_, routes := provision(t, text)
	return warningsIn(routes, routes.WarnUnguarded)
}

// siteWarning is the Caddyfile of a site and a part of the only warning about it,
// or "" if there is none.
type siteWarning struct{ text, want string }

// checkWarnings checks the warnings about sites. format is the format of the wanted part, with %s
// for want.
func checkWarnings(t *testing.T, format string, tests map[string]siteWarning) {
	t.Helper()
	for name, tt := range tests {
		got, want := warningsOfSites(t, tt.text), fmt.Sprintf(format, tt.want)
		switch {
		case tt.want == "" && len(got) > 0:
			t.Errorf("%s: %q", name, got)
		case tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], want) || !strings.HasPrefix(got[0], "Caddyfile:")):
			t.Errorf("%s: %q, want a warning with %s", name, got, want)
		}
	}
}

const (
	notifyBlock = "notify {\nkey ops {\nurl json://127.0.0.1:1\n}\n}\n"
	// The hash of "hiccup".
	account = " {\nops $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG\n}\n"
)

// TestWarnOpenSite checks that a site gets a warning if it has keys and anyone
// can send to it. It gets none if stateless is set or the case is unclear.
func TestWarnOpenSite(t *testing.T) {
	const notify = notifyBlock
	certificate := "tls internal {\nclient_auth {\nmode require\n}\n}\n"
	checkWarnings(t, "with POST %s,", map[string]siteWarning{
		"a port":          {":9470 {\n" + notify + "}", "/notify"},
		"a domain":        {"alerts.example.com {\n" + notify + "}", "/notify"},
		"several domains": {"a.example.com, *.example.org {\n" + notify + "}", "/notify"},
		"a prefix":        {":9470 {\nhandle_path /alerts/* {\n" + notify + "}\n}", "/alerts/notify"},
		"two prefixes":    {":9470 {\nhandle_path /a/* {\nhandle_path /b/* {\n" + notify + "}\n}\n}", "/a/b/notify"},
		"behind other handlers": {
			":9470 {\nencode gzip\nheader X-A b\nvars a b\nmap {path} {x} {\ndefault y\n}\nlog_append a b\n" +
				"request_body {\nmax_size 1MB\n}\nrespond /up up\n" + notify + "reverse_proxy 127.0.0.1:1\n}",
			"/notify",
		},
		"some clients excluded":       {":9470 {\n@bad remote_ip 198.51.100.0/24\nerror @bad no 403\n" + notify + "}", "/notify"},
		"another path has a password": {":9470 {\nbasic_auth /admin/*" + account + notify + "}", "/notify"},
		"a key has a password":        {":9470 {\nbasic_auth /notify/ops*" + account + notify + "}", "/notify"},
		"a key of the global option":  {"{\n" + notify + "}\n:9470 {\nnotify\n}", "/notify"},
		"an optional certificate": {
			"alerts.example.com {\n" + strings.Replace(certificate, "require", "request", 1) + notify + "}",
			"/notify",
		},
		"a loopback address":           {":9470 {\nbind 127.0.0.1 [::1]\n" + notify + "}", ""},
		"a loopback and another":       {":9470 {\nbind 127.0.0.1 192.0.2.1\n" + notify + "}", "/notify"},
		"localhost":                    {":9470 {\nbind localhost\n" + notify + "}", ""},
		"a Unix socket":                {":9470 {\nbind unix//run/x.sock\n" + notify + "}", ""},
		"no keys":                      {":9470 {\nnotify\n}", ""},
		"stateless on":                 {":9470 {\n" + strings.Replace(notify, "key", "stateless on\nkey", 1) + "}", ""},
		"stateless off":                {":9470 {\n" + strings.Replace(notify, "key", "stateless off\nkey", 1) + "}", ""},
		"stateless off in all":         {"{\nnotify {\nstateless off\n}\n}\n:9470 {\n" + notify + "}", ""},
		"a password":                   {":9470 {\nbasic_auth" + account + notify + "}", ""},
		"a password for the path":      {":9470 {\nbasic_auth /notify*" + account + notify + "}", ""},
		"a password before the prefix": {":9470 {\nbasic_auth /alerts/*" + account + "handle_path /alerts/* {\n" + notify + "}\n}", ""},
		"a password within the prefix": {":9470 {\nhandle_path /alerts/* {\nbasic_auth" + account + notify + "}\n}", ""},
		"a password in a route":        {":9470 {\nroute {\nbasic_auth" + account + notify + "}\n}", ""},
		"a password too late":          {":9470 {\nroute {\n" + notify + "basic_auth" + account + "}\n}", "/notify"},
		"forward_auth":                 {":9470 {\nforward_auth 127.0.0.1:1 {\nuri /auth\n}\n" + notify + "}", ""},
		"a certificate":                {"alerts.example.com {\n" + certificate + notify + "}", ""},
		"private addresses only":       {":9470 {\n@in remote_ip private_ranges\nhandle @in {\n" + notify + "}\n}", ""},
		"other addresses are refused":  {":9470 {\n@out not remote_ip private_ranges\nabort @out\n" + notify + "}", ""},
		"other client addresses":       {":9470 {\n@out not client_ip private_ranges\nerror @out no 403\n" + notify + "}", ""},
		"a secret in a header":         {":9470 {\n@in header X-Secret x\nhandle @in {\n" + notify + "}\n}", ""},
		"only paths of keys reach it":  {":9470 {\nhandle /notify/* {\n" + notify + "}\n}", ""},
		"a response before it":         {":9470 {\nroute {\nrespond no 403\n" + notify + "}\n}", ""},
		"a rewrite to a key":           {":9470 {\nrewrite * /notify/ops\n" + notify + "}", ""},
		"a header instead of a login": {
			":9470 {\n@login not header X-Apprise-Config-ID *\nbasic_auth @login" + account + notify + "}",
			"/notify",
		},
	})
}

// TestWarnSpellings checks that authentication for only one of
// /notify/KEY and /notify/KEY/ gets a warning.
func TestWarnSpellings(t *testing.T) {
	const notify = "notify {\nstateless off\nkey secret {\nurl json://127.0.0.1:1\n}\nkey public {\nurl json://127.0.0.1:1\n}\n}\n"
	tests := map[string]siteWarning{
		"an exact path": {
			"basic_auth /notify/secret" + account + notify,
			"the authentication for /notify/secret does not apply to /notify/secret/,",
		},
		"a path with a slash": {
			"basic_auth /notify/secret/" + account + notify,
			"the authentication for /notify/secret/ does not apply to /notify/secret,",
		},
		"a loopback address":      {"bind 127.0.0.1\nbasic_auth /notify/secret" + account + notify, "/notify/secret/,"},
		"the address without key": {"basic_auth /notify" + account + notify, "the authentication for /notify does not apply to /notify/,"},
		"below an address": {
			"basic_auth /notify/secret/*" + account + notify,
			"the authentication for /notify/secret/ does not apply to /notify/secret,",
		},
		"within a prefix": {
			"handle_path /a/* {\nbasic_auth /notify/secret" + account + notify + "}",
			"the authentication for /a/notify/secret does not apply to /a/notify/secret/,",
		},
		"before a prefix": {
			"basic_auth /a/notify/secret" + account + "handle_path /a/* {\n" + notify + "}",
			"the authentication for /a/notify/secret does not apply to /a/notify/secret/,",
		},
		"a regular expression": {"@s path_regexp ^/notify/secret$\nbasic_auth @s" + account + notify, "/notify/secret/,"},
		"forward_auth":         {"forward_auth /notify/secret 127.0.0.1:1 {\nuri /auth\n}\n" + notify, "/notify/secret/,"},
		"a key with a token": {
			"basic_auth /notify/secret" + account + strings.Replace(notify, "secret {\n", "secret {\ntoken 0123456789abcdef\n", 1),
			"",
		},
		"a list without sources": {
			"@s path /notify/secret /notify/secret/\nbasic_auth @s" + account + notify,
			"the authentication for /notify/secret does not apply to /notify/secret/source,",
		},
		"a list":              {"@s path /notify/secret /notify/secret/*\nbasic_auth @s" + account + notify, ""},
		"a star":              {"basic_auth /notify/secret*" + account + notify, ""},
		"all keys":            {"basic_auth /notify*" + account + notify, ""},
		"everything":          {"basic_auth" + account + notify, ""},
		"nothing":             {notify, ""},
		"another path":        {"basic_auth /admin" + account + notify, ""},
		"another handler":     {"respond /notify/secret no\n" + notify, ""},
		"the rest is refused": {"basic_auth /notify/secret" + account + "@rest not path /notify/secret\nerror @rest no 403\n" + notify, ""},
	}
	for name, tt := range tests {
		tests[name] = siteWarning{":9470 {\n" + tt.text + "\n}", tt.want}
	}
	checkWarnings(t, "%s", tests)
}

// TestWarnOpenManagement checks that a site gets a warning if anyone can read and
// change its saved keys.
func TestWarnOpenManagement(t *testing.T) {
	notify := func(manage string) string {
		return "notify {\nstateless on\nconfigs {\n" + manage + "\n}\n}\n"
	}
	checkWarnings(t, "read and change saved keys, as with POST %s,", map[string]siteWarning{
		"a port":                   {":9470 {\n" + notify("manage open") + "}", "/add/KEY"},
		"a prefix":                 {":9470 {\nhandle_path /alerts/* {\n" + notify("manage open") + "}\n}", "/alerts/add/KEY"},
		"a password for /add only": {":9470 {\n@add path /add/*\nbasic_auth @add" + account + notify("manage open") + "}", "/get/KEY"},
		"a user is needed":         {":9470 {\n" + notify("manage") + "}", ""},
		"nobody":                   {":9470 {\n" + notify("") + "}", ""},
		"a password":               {":9470 {\nbasic_auth" + account + notify("manage open") + "}", ""},
		"this machine":             {"http://localhost:9470 {\nbind 127.0.0.1\n" + notify("manage open") + "}", ""},
		"no saved keys":            {":9470 {\nnotify {\nstateless on\n}\n}", ""},
		"a client of a proxy":      {":9470 {\n@in remote_ip 10.0.0.0/8\nhandle @in {\n" + notify("manage open") + "}\n}", ""},
	})
}
