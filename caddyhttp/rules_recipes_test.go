package caddyhttp

import (
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// TestRecipes drives the recipes of docs/routing.md. The clock begins on Saturday,
// 2000-01-01, at 01:00 in Berlin.
func TestRecipes(t *testing.T) {
	text, err := os.ReadFile("../docs/routing.md")
	if err != nil {
		t.Fatal(err)
	}
	_, recipes, _ := strings.Cut(string(text), "## Recipes")
	found := regexp.MustCompile("(?s)### ([^:\n]+).*?```caddyfile\n(key (\\w+) .*?)```").FindAllStringSubmatch(recipes, -1)
	type step struct {
		at   string // until when to wait before it; "" for now
		form string
	}
	tests := map[string]struct {
		steps []step
		want  []string // what arrives, at the chat and then at the phone
	}{
		"A small team": {
			[]step{
				{"", "type=info&body=deployed"},                         // on Saturday
				{"", alertForm("failure", "down", "db1")},               // is sent
				{"", alertForm("failure", "still down", "db1")},         // is not
				{"", alertForm("success", "up", "db1")},                 // is sent
				{"2000-01-03 09:00:00", "type=warning&body=slow"},       // on Monday
				{"2000-01-03 20:30:00", "type=warning&body=slow+again"}, // in the evening
				{"2000-01-04 07:00:10", ""},
			},
			[]string{"failure: down", "success: up\n\n1 repetition since 00:00 was not sent.", "info: deployed", "warning: slow", "warning: slow again"},
		},
		"A home lab": {
			[]step{{"", "type=failure&body=down"}, {"", "type=info&body=backup"}, {"2000-01-01 07:00:10", ""}, {"", "type=info&body=day"}},
			[]string{"failure: down", "info: backup", "info: day", "phone failure: down", "phone info: backup", "phone info: day"},
		},
		"A host that goes up and down": {
			[]step{
				{"", alertForm("failure", "down", "web")},
				{"2000-01-01 00:00:10", alertForm("success", "up", "web")},
				{"", alertForm("failure", "down", "web")},
				{"", alertForm("failure", "down", "db")},
				{"2000-01-01 00:02:00", ""},
			},
			[]string{"failure: network: 2 failures | 00:00 failure: down (3 messages)\n00:00 failure: down"},
		},
		"Deployments": {
			[]step{{"", "body=1"}, {"", "body=2"}, {"", "body=3"}, {"", "type=failure&body=broken"}, {"2000-01-01 00:05:10", ""}},
			[]string{"info: 1", "failure: broken", "info: deploy: 2 messages | 00:00 2\n00:00 3"},
		},
		"A report each week": {
			[]step{{"", "body=1"}, {"2000-01-02 12:00:00", "type=failure&body=2"}, {"2000-01-03 06:59:00", ""}, {"2000-01-03 07:00:10", ""}},
			[]string{"failure: 2", "info: 1"},
		},
	}
	if len(found) != len(tests) {
		t.Errorf("the page has %d recipes, want %d", len(found), len(tests))
	}
	for _, recipe := range found {
		tt, ok := tests[recipe[1]]
		if !ok {
			t.Errorf("no test for %q", recipe[1])
			continue
		}
		chat, phone := newPager(t, http.StatusOK), newPager(t, http.StatusOK)
		dir := t.TempDir()
		t.Setenv("DISCORD_URL", chat.NotifyURL()+"?tz=UTC")
		t.Setenv("MAIL_URL", chat.NotifyURL()+"?tz=UTC")
		t.Setenv("PHONE_URL", phone.NotifyURL()+"?tz=UTC")
		inBubble(t, func(t *testing.T) {
			h := newQueueGateway(t, dir, "", recipe[2])
			for _, s := range tt.steps {
				if s.at != "" {
					until(t, s.at)
				}
				if s.form == "" {
					continue
				}
				if resp := postWith(t, h, "/notify/"+recipe[3], s.form); resp.status != http.StatusOK {
					t.Errorf("%s: %s: status %d %s", recipe[1], s.form, resp.status, resp.body)
				}
			}
			synctest.Wait()
			got := chat.toldTitles()
			for _, text := range phone.toldTitles() {
				got = append(got, "phone "+text)
			}
			if recipe[1] == "A home lab" || recipe[1] == "A report each week" { // two messages at the same time
				slices.Sort(got)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s: told\n%s\nwant\n%s", recipe[1], strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}
