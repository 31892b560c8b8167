package routing_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
)

// documentedMatchers returns the matchers @login of the documentation, without their name
// and word for word, by page.
func documentedMatchers(t *testing.T) map[string]string {
	t.Helper()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, page := range append(pages, "../../README.md") {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		inCode, depth, text := false, 0, ""
		for line := range strings.Lines(string(b)) {
			trimmed := strings.TrimSpace(line)
			rest, begins := strings.CutPrefix(trimmed, "@login ")
			switch {
			case strings.HasPrefix(trimmed, "```"):
				inCode = !inCode
				continue
			case !inCode || depth == 0 && !begins:
				continue
			case depth == 0:
				if text != "" {
					t.Errorf("%s has two matchers @login", page)
				}
				text = rest + "\n"
			default:
				text += trimmed + "\n"
			}
			depth += strings.Count(trimmed, "{") - strings.Count(trimmed, "}")
		}
		if text != "" {
			out[filepath.Base(page)] = text
		}
	}
	for _, page := range []string{"inbox.md", "modules.md", "on-call.md", "phone.md"} {
		if out[page] == "" {
			t.Errorf("docs/%s has no matcher @login", page)
		}
	}
	return out
}

// newGuarded is a site with a password in front of the addresses that a matcher selects,
// with keys that devices subscribe to and one that is read.
func newGuarded(t *testing.T, matcher, block string) string {
	t.Helper()
	return fmt.Sprintf("{\nnotify {\nqueue {\npath %s\n}\npublic_url https://alerts.example.com\n"+
		"push\n}\n}\n:9470 {\n@login %s\nbasic_auth @login%snotify {\n"+
		"stateless off\nkey ops {\ninbox 7d\nreader %s\n}\n%s\n}\n}",
		t.TempDir(), matcher, account, testReader, block)
}

// without returns a matcher without some paths.
func without(matcher string, paths ...string) string {
	words := strings.Split(matcher, " ")
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return slices.Contains(paths, w) }), " ")
}

// TestWarnLinks checks that a site gets a warning if what phones use needs a login, and
// none with the matcher that the documentation has.
func TestWarnLinks(t *testing.T) {
	const console = "console {\nmanage ops\n}"
	matchers := documentedMatchers(t)
	matcher := matchers["phone.md"]
	if matchers["modules.md"] != matcher {
		t.Error("the matchers of docs/phone.md and docs/modules.md differ")
	}
	uninvited, _, _ := strings.Cut(strings.TrimPrefix(matcher, "{\n"), "\n") // its first line
	checkWarnings(t, "the authentication applies to %s, which phones", map[string]siteWarning{
		"everything needs the login": {newGuarded(t, "path *", console), "/notify/KEY/devices/ID/receipts"},
		"a star is one segment": {
			newGuarded(t, strings.Replace(matcher, "/notify/*/devices /notify/*/devices/* /notify/*/devices/*/*", "/notify/*/devices*", 1), console),
			"/notify/KEY/devices/ID/receipts",
		},
		"the worker needs the login":    {newGuarded(t, without(matcher, httpapi.RouteWorker), console), httpapi.RouteWorker},
		"the badge needs the login":     {newGuarded(t, without(matcher, httpapi.RouteBadge), console), httpapi.RouteBadge},
		"an invitation needs the login": {newGuarded(t, uninvited, console), "/notify/KEY?invite=ID"},
		"a post needs the login": {
			newGuarded(t, "{\nnot path /notify*\nmethod GET\n}\n@x {\nmethod POST\npath /notify/*/devices\n}\nbasic_auth @x"+account, console),
			"/notify/KEY/devices",
		},
		"a question needs the login":    {newGuarded(t, strings.Replace(matcher, " /notify/asks/*", "", 1), console), "/notify/asks/ID"},
		"the matcher":                   {newGuarded(t, matcher, console), ""},
		"the matcher, and the console":  {newGuarded(t, "path /notify/console*", console), ""},
		"the matcher, with escalations": {newGuarded(t, matcher, console+"\nkey oncall {\nurl json://127.0.0.1:1 1:x\nescalate after 1h\n}"), ""},
	})
}

// TestWarnOpenExceptions checks that who may manage is not everybody at the addresses that
// the matchers of the documentation leave out for phones, for readers and for links.
func TestWarnOpenExceptions(t *testing.T) {
	const open, named = "console {\nmanage open\n}", "console {\nmanage ops\n}"
	matchers := documentedMatchers(t)
	x := func(matcher, manage string) string { // without push, which warns of its own
		return strings.Replace(newGuarded(t, matcher, manage), "\npush\n", "\n", 1)
	}
	checkWarnings(t, "anyone who can reach this site can %s, "+
		"because it requires no authentication and console or configs has manage open",
		map[string]siteWarning{
			"phones":                  {newGuarded(t, matchers["phone.md"], open), "list and revoke devices at /notify/KEY/devices"},
			"phones, and named ones":  {newGuarded(t, matchers["phone.md"], named), ""},
			"readers":                 {x(matchers["inbox.md"], open), "read the messages of keys with GET /notify/KEY/messages"},
			"readers, and named ones": {x(matchers["inbox.md"], named), ""},
			"links": {
				x(matchers["on-call.md"], open),
				"silence each incident whose link they have with POST /notify/incidents/ID",
			},
			"clients": {
				x("not path /notify/-/*", open),
				"silence each incident whose ID they have with POST /notify/-/incidents/ID",
			},
			"links, and named ones":    {x(matchers["on-call.md"], named), ""},
			"the list of incidents":    {x("not path /notify/incidents*", open), "list all incidents with GET /notify/incidents"},
			"silences":                 {x("not path /notify/*/silences", open), "silence keys with POST /notify/KEY/silences"},
			"silences, with a slash":   {x("not path /notify/*/silences/", open), "silence keys with POST /notify/KEY/silences"},
			"silences of a key":        {x("not path /notify/ops/silences", open), "silence keys with POST /notify/ops/silences"},
			"silences that are shown":  {x("not {\nmethod GET\npath /notify/*/silences\n}", open), "silence keys with POST /notify/KEY/silences"},
			"silences, and named ones": {x("not path /notify/*/silences", named), ""},
			"incidents, with invitations": {
				x("not {\nquery invite=*\npath /notify/incidents\n}", open),
				"list all incidents with GET /notify/incidents",
			},
		})
	checkWarnings(t, "anyone who can reach this site can %s, "+
		"because it requires no authentication and console has manage open",
		map[string]siteWarning{
			"the console, with invitations": {x("not {\nmethod GET\nquery invite=*\n}", open), "use the console at /notify/console"},
		})
}

// TestWarnReading checks that a site gets a warning if what it leaves out for readers, or
// for invitations, takes messages of everybody, too.
func TestWarnReading(t *testing.T) {
	const spelled = "does not apply to %s, so a request can avoid it; leave out only what is read"
	x := func(matcher, block string) string {
		return strings.Replace(newGuarded(t, matcher, block), "\npush\n", "\n", 1)
	}
	const ntfy = "not path /notify/*/ntfy/*/*"
	const plain = "key plain {\nurl json://127.0.0.1:1\n%s\n}"
	checkWarnings(t, spelled, map[string]siteWarning{
		"all of ntfy": {x(ntfy, ""), "GET /notify/ops/ntfy/TOPIC/publish"},
		"a topic": {
			x("not path /notify/*/ntfy/*", "key secret {\ntoken 0123456789abcdef\nurl json://h\n}"),
			"/notify/ops/ntfy/TOPIC",
		},
		"only posts need a login": {x("method POST", ""), "GET /notify/ops/ntfy/TOPIC/publish"},
		"verbs without methods":   {x("not path /notify/*/ntfy/*/json", fmt.Sprintf(plain, "")), "/notify/plain/ntfy/TOPIC/json"},
		"a key with a reader":     {x("not path /notify/*/ntfy/*/json", ""), ""},
		"a key that accepts none": {x("not path /notify/*/ntfy/*/json", fmt.Sprintf(plain, "accept direct")), ""},
		"a source with a token":   {x(ntfy, "from ntfy {\ntoken 0123456789abcdef\n}"), ""},
		"beats": {
			x("not method GET", fmt.Sprintf(plain, "accept direct\nexpect nightly every 24h")+"\nfrom ntfy {\ntoken 0123456789abcdef\n}"),
			"GET /notify/plain?beat=nightly",
		},
		"invitations of any method": {x("not query invite=*", "from ntfy {\ntoken 0123456789abcdef\n}"), "/notify/ops?invite=ID"},
	})
	for page, matcher := range documentedMatchers(t) {
		if page == "phone.md" || page == "modules.md" {
			continue // TestWarnLinks
		}
		if got := warningsOfSites(t, x(matcher, fmt.Sprintf(plain, ""))); len(got) > 0 {
			t.Errorf("the matcher of docs/%s: %q", page, got)
		}
	}
}
