package caddyhttp

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// newGuarded is a site with a password in front of the addresses that a matcher selects,
// with keys that devices subscribe to and one that is read.
func newGuarded(t *testing.T, matcher, block string) string {
	t.Helper()
	return fmt.Sprintf("{\nnotify {\nqueue {\npath %s\n}\npublic_url https://alerts.example.com\npush\n}\n}\n:9470 {\n@login %s\nbasic_auth @login%snotify {\nstateless off\nkey ops {\ninbox 7d\nreader %s\n}\n%s\n}\n}", t.TempDir(), matcher, account, testReader, block)
}

// TestWarnLinks checks that a site gets a warning if what phones use in the background
// needs a login, and none with the matcher that the warning and the documentation have.
func TestWarnLinks(t *testing.T) {
	console := "console {\nmanage ops\n}"
	checkWarnings(t, "the authentication applies to %s, which phones", map[string]siteWarning{
		"everything needs the login":    {newGuarded(t, "path *", console), "/notify/KEY/devices/ID/receipts"},
		"a star is one segment":         {newGuarded(t, "not path "+strings.Replace(devicePaths, "/notify/*/devices /notify/*/devices/* /notify/*/devices/*/*", "/notify/*/devices*", 1), console), "/notify/KEY/devices/ID/receipts"},
		"the worker needs the login":    {newGuarded(t, "not path "+strings.Replace(devicePaths, routeWorker, "", 1), console), routeWorker},
		"the badge needs the login":     {newGuarded(t, "not path "+strings.Replace(devicePaths, routeBadge, "", 1), console), routeBadge},
		"the matcher":                   {newGuarded(t, "not path "+devicePaths, console), ""},
		"the matcher, and the console":  {newGuarded(t, "path /notify/console*", console), ""},
		"the matcher, with escalations": {newGuarded(t, "not path "+devicePaths+" /notify/incidents/*", console+"\nkey oncall {\nurl json://127.0.0.1:1 1:x\nescalate after 1h\n}"), ""},
	})
	for _, page := range []string{"phone.md", "security.md"} {
		b, err := os.ReadFile("../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), "@login not path "+devicePaths+" /notify/incidents/*\n") {
			t.Errorf("docs/%s lacks the matcher @login not path %s /notify/incidents/*", page, devicePaths)
		}
	}
}

// TestWarnOpenExceptions checks that who may manage is not everybody at the addresses that
// a matcher leaves out for phones and for readers.
func TestWarnOpenExceptions(t *testing.T) {
	const manage = "console {\nmanage open\n}"
	checkWarnings(t, "anyone who can reach this site can %s, because it requires no authentication and console or configs has manage open", map[string]siteWarning{
		"phones":                 {newGuarded(t, "not path "+devicePaths, manage), "list and revoke devices at /notify/KEY/devices"},
		"phones, and named ones": {newGuarded(t, "not path "+devicePaths, "console {\nmanage ops\n}"), ""},
	})
	readers := "not path /notify/*/messages " + devicePaths
	checkWarnings(t, "anyone who can reach this site can %s", map[string]siteWarning{
		"readers": {newGuarded(t, readers, manage), "read the messages of keys with GET /notify/KEY/messages"},
	})
}
