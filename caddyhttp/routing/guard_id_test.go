package routing_test

import (
	"strings"
	"testing"
)

// TestWarnConfigID checks that a site gets a warning if what protects the address of a key
// does not apply to the header that names it.
func TestWarnConfigID(t *testing.T) {
	const free = "key free {\nurl json://127.0.0.1:1\n}\n"
	notify := func(settings string) string { return "notify {\nstateless off\n" + free + settings + "\n}\n" }
	on := notify("config_id on")
	saved := func(manage string) string { return notify("config_id on\nconfigs {\n" + manage + "\n}") }
	header := "@header header X-Apprise-Config-ID *\nbasic_auth @header" + account
	outside := "@outside {\npath /notify/free*\nnot remote_ip private_ranges\n}\nerror @outside no 403\n"
	tests := map[string]siteWarning{
		"a login for the key": {
			"basic_auth /notify/free*" + account + on,
			"/notify/free does not apply to /notify with the header X-Apprise-Config-ID: free",
		},
		"a loopback address": {"bind 127.0.0.1\nbasic_auth /notify/free*" + account + on, "/notify/free does"},
		"a prefix": {
			"basic_auth /a/notify/free*" + account + "handle_path /a/* {\n" + on + "}\n",
			"/a/notify/free does not apply to /a/notify with",
		},
		"only your network": {outside + on, "/notify/free does"},
		"another header": {
			"@header header X-Apprise-Config-ID other\nbasic_auth @header" + account + "basic_auth /notify/free*" + account + on,
			"/notify/free does",
		},
		"off": {"basic_auth /notify/free*" + account + notify("config_id off"), ""},
		"a token": {
			"basic_auth /notify/free*" + account + strings.Replace(on, "key free {", "key free {\ntoken 0psT0ken-0psT0ken", 1),
			"",
		},
		"a login for all":              {"basic_auth" + account + on, ""},
		"a login for /notify":          {"basic_auth /notify*" + account + on, ""},
		"a login for the header":       {header + "basic_auth /notify/free*" + account + on, ""},
		"a login for the key's header": {strings.Replace(header, "*", "free", 1) + "basic_auth /notify/free*" + account + on, ""},
		"the header is removed":        {"request_header -X-Apprise-Config-ID\nbasic_auth /notify/free*" + account + on, ""},
		"nothing":                      {on, ""},
		"only the header":              {"handle /notify {\n" + on + "}\n", ""},
		"saved keys, a login for keys": {
			"@k path_regexp ^/notify/.\nbasic_auth @k" + account + saved(""),
			"/notify/KEY does not apply to /notify with the header X-Apprise-Config-ID: KEY",
		},
		"saved keys, a login to save": {
			"@m path /add/* /get/* /del/* /cfg /cfg/* /notify/console*\nbasic_auth @m" + account + saved("manage open"),
			"/add/KEY does not apply to /add with",
		},
		"saved keys, the same for a user": {
			"@m path /add/* /get/* /del/* /cfg /cfg/* /notify/console*\nbasic_auth @m" + account + saved("manage ops"),
			"",
		},
		"saved keys, a login to list URLs": {"basic_auth /json/urls/*" + account + saved(""), "/json/urls/KEY does not apply to /json/urls with"},
		"saved keys, a login for all":      {"basic_auth" + account + saved("manage open"), ""},
	}
	for name, tt := range tests {
		tests[name] = siteWarning{":9470 {\n" + tt.text + "\n}", tt.want}
	}
	checkWarnings(t, "%s", tests)
}
