package caddyhttp

import (
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestRecipes drives the keys that the pages about rules give. The clock begins on Saturday, 2000-01-01, at 01:00 in Berlin.
func TestRecipes(t *testing.T) {
	found := [][]string{{"", "key deploys {\nurl {env.DISCORD_URL}\n}\n", "deploys"}} // for a silence
	for _, page := range []string{"dedupe.md", "hold.md", "escalate.md", "quiet.md", "digest.md", "rate.md", "silences.md", "watchdog.md"} {
		text, err := os.ReadFile("../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, regexp.MustCompile("(?s)```caddyfile\n(key (\\w+) .*?)```").FindAllStringSubmatch(string(text), -1)...)
	}
	type step struct {
		at   string // until when to wait before it, without a gateway until 3 h before, nor before the first; "" for now
		form string
	}
	tests := map[string]struct {
		steps []step
		want  []string // what arrives, at the chat and then at the phone
	}{
		"ops": {
			[]step{
				{"2000-01-02 20:00:00", "type=info&body=deployed"},      // on Sunday
				{"", alertForm("failure", "down", "db1")},               // is sent
				{"", alertForm("failure", "still down", "db1")},         // is not
				{"", alertForm("success", "up", "db1")},                 // is sent
				{"2000-01-03 09:00:00", "type=warning&body=slow"},       // on Monday
				{"2000-01-03 20:30:00", "type=warning&body=slow+again"}, // in the evening
				{"2000-01-04 07:00:10", ""},
			},
			[]string{
				"failure: down", "success: up\n\n1 repetition since 20:00 was not sent.",
				"info: deployed", "warning: slow", "warning: slow again",
			},
		},
		"hosts": {
			[]step{
				{"", alertForm("failure", "web restarts", "web")},
				{"2000-01-01 00:03:00", alertForm("success", "web is up", "web")},
				{"", alertForm("failure", "db is down", "db")},
				{"2000-01-01 00:08:10", ""},
				{"2000-01-01 00:20:00", alertForm("success", "db is up", "db")},
			},
			[]string{"failure: db is down", "success: db is up"},
		},
		"pair": {
			[]step{
				{"", alertForm("failure", "down", "db1")},
				{"2000-01-01 00:09:00", ""},
				{"2000-01-01 00:10:10", ""},                                  // the second
				{"2000-01-01 00:20:10", ""},                                  // the first again
				{"2000-01-01 00:25:00", alertForm("success", "up", "db1")},   // before the second again
				{"2000-01-01 02:00:00", alertForm("failure", "down", "db2")}, // is acknowledged
				{"2000-01-01 02:01:00", "acknowledge"},
				{"2000-01-01 03:00:00", ""},
			},
			[]string{
				"failure: down", "success: up", "failure: down",
				"phone failure: down", "phone failure: down", "phone success: up", "phone failure: down",
				"second failure: down", "second success: up",
			},
		},
		"home": {
			[]step{{"", "type=failure&body=down"}, {"", "type=info&body=backup"}, {"2000-01-01 07:00:10", ""}, {"", "type=info&body=day"}},
			[]string{"failure: down", "info: backup", "info: day", "phone failure: down", "phone info: backup", "phone info: day"},
		},
		"network": {
			[]step{
				{"", alertForm("failure", "down", "web")},
				{"2000-01-01 00:00:10", alertForm("success", "up", "web")},
				{"", alertForm("failure", "down", "web")},
				{"", alertForm("failure", "down", "db")},
				{"2000-01-01 00:02:00", ""},
			},
			[]string{"failure: network: 2 failures | 00:00 failure: down (3 messages)\n00:00 failure: down"},
		},
		"jobs": {
			[]step{{"2000-01-01 00:01:00", "?beat=sync"}, {"2000-01-01 01:12:00", "?beat=sync"}},
			[]string{
				"failure: sync is late | The last beat came at 2000-01-01 00:01 UTC. One is expected every 1h, with a grace of 10m.",
				"success: sync is back | The beat has come. It was late since 2000-01-01 01:11 UTC.",
			},
		},
		"jobs cron": {
			[]step{
				{"2000-01-03 02:15:00", "?beat=backup&state=start"}, // on Monday at 03:15 in Berlin
				{"2000-01-03 03:30:00", "?beat=backup&exit=0"},
				{"2000-01-04 02:15:00", "?beat=backup&state=start"},
				{"2000-01-04 02:27:00", "?beat=backup&exit=3"},
				{"2000-01-05 04:15:10", ""},
			},
			[]string{
				"failure: backup has not ended after 1h | backup started at 2000-01-03 02:15 UTC and has not ended after 1h.",
				"success: backup is back | The beat has come after a run of 1h15m. It had not ended by 2000-01-03 03:15 UTC.",
				"failure: backup has failed after 12m, exit 3 | The beat came with the exit code 3.",
				"failure: backup is late | The last beat came at 2000-01-04 02:27 UTC. One was due at 2000-01-05 02:15 UTC, with a grace of 2h.",
			},
		},
		"disks": {
			[]step{
				{"", "body=full"},
				{"2000-01-01 00:09:50", "body=full"}, // is not sent
				{"", "body=empty"},
				{"2000-01-01 00:10:10", "body=full"},
			},
			[]string{"info: full", "info: empty", "info: full\n\n1 repetition since 00:09 was not sent."},
		},
		"web": {
			[]step{
				{"", "body=1"},
				{"", "body=2"},
				{"", "body=3"},
				{"", "body=4"},
				{"", "body=5"},
				{"", "body=6"},
				{"", "body=7"},
				{"", "body=8"},
				{"", "body=9"},
				{"", "body=10"},
				{"", "body=11"},
				{"", "body=12"},
				{"2000-01-01 00:01:10", ""},
			},
			[]string{
				"info: 1", "info: 2", "info: 3", "info: 4", "info: 5", "info: 6", "info: 7",
				"info: 8", "info: 9", "info: 10", "info: web: 2 messages | 00:00 11\n00:00 12",
			},
		},
		"deploy": {
			[]step{{"", "body=1"}, {"", "body=2"}, {"", "body=3"}, {"", "type=failure&body=broken"}, {"2000-01-01 00:05:10", ""}},
			[]string{"info: 1", "failure: broken", "info: deploy: 2 messages | 00:00 2\n00:00 3"},
		},
		"deploys": {
			[]step{
				{"", alertForm("failure", "web is down", "web")},
				{"", "silence for=10m&tag=all&reason=deployment"},
				{"", alertForm("failure", "db is down", "db")},
				{"", alertForm("failure", "api is down", "api")},
				{"", alertForm("failure", "mail is down", "mail")},
				{"2000-01-01 00:05:00", alertForm("success", "db is up", "db")},
				{"", alertForm("success", "web is up", "web")},
				{"2000-01-01 00:10:05", ""},
			},
			[]string{
				"failure: web is down", "success: web is up",
				"failure: deploys: 2 failures | 00:00 failure: api is down\n00:00 failure: mail is down",
			},
		},
		"backups": {
			[]step{
				{"2000-01-02 00:30:00", alertForm("failure", "db is down", "db")},
				{"2000-01-02 01:30:00", alertForm("success", "db is up", "db")}, // in the window
				{"", alertForm("failure", "disk is full", "disk")},
				{"", alertForm("failure", "web is down", "web")},
				{"", "body=done"},
				{"2000-01-02 02:00:00", alertForm("success", "web is up", "web")},
				{"2000-01-02 03:00:10", ""},
			},
			[]string{"failure: db is down", "success: db is up", "failure: disk is full"},
		},
		"reports": {
			[]step{
				{"2000-01-02 11:00:00", "body=1"},
				{"2000-01-02 12:00:00", "type=failure&body=2"},
				{"2000-01-03 06:59:00", ""},
				{"2000-01-03 07:00:10", ""},
			},
			[]string{"failure: 2", "info: 1"},
		},
	}
	if len(found) != len(tests) {
		t.Errorf("the pages have %d recipes, want %d", len(found), len(tests))
	}
	for _, recipe := range found {
		config, key := recipe[1], recipe[2]
		name := key
		if strings.Contains(config, " cron ") {
			name += " cron"
		}
		tt, ok := tests[name]
		if !ok {
			t.Errorf("no test for %q", name)
			continue
		}
		chat, phone, second := gatewaytest.NewPager(t, http.StatusOK),
			gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK)
		dir := t.TempDir()
		t.Setenv("DISCORD_URL", chat.NotifyURL()+"?tz=UTC")
		t.Setenv("MAIL_URL", chat.NotifyURL()+"?tz=UTC")
		t.Setenv("PHONE_URL", phone.NotifyURL()+"?tz=UTC")
		t.Setenv("SECOND_PHONE_URL", second.NotifyURL()+"?tz=UTC")
		inBubble(t, func(t *testing.T) {
			if at := tt.steps[0].at; at != "" {
				gatewaytest.Until(t, at)
			}
			start := func() *Handler {
				return newQueueGateway(t, dir, managed, "public_url "+gatewaytest.PublicURL+"\n"+config)
			}
			h := start()
			for i, s := range tt.steps {
				if i > 0 && s.at != "" {
					// A gateway looks each second at what is due, so a day of it is seconds of CPU.
					at, err := time.Parse(time.DateTime, s.at)
					if err != nil {
						t.Fatal(err)
					}
					if soon := at.Add(-3 * time.Hour); time.Now().Before(soon) {
						stopApp(t, h)
						gatewaytest.Until(t, soon.Format(time.DateTime))
						h = start()
					}
					gatewaytest.Until(t, s.at)
				}
				if s.form == "" {
					continue
				}
				target, form := "/notify/"+key, s.form
				if strings.HasPrefix(form, "?") { // a beat
					target, form = target+form, ""
				}
				status := http.StatusOK
				if silence, ok := strings.CutPrefix(form, "silence "); ok {
					target, form, status = target+"/silences", silence, http.StatusCreated
				}
				if form == "acknowledge" { // with the link in the last message to the phone
					links := phone.Links()
					target, form = strings.TrimPrefix(links[len(links)-1], gatewaytest.PublicURL), "do=acknowledge&by=Eve"
				}
				if resp := postWith(t, h, target, form); resp.status != status {
					t.Errorf("%s: %s: status %d %s", name, s.form, resp.status, resp.body)
				}
			}
			synctest.Wait()
			got := chat.Told()
			for _, text := range phone.Told() {
				got = append(got, "phone "+text)
			}
			for _, text := range second.Told() {
				got = append(got, "second "+text)
			}
			if name == "home" || name == "reports" { // two messages at the same time
				slices.Sort(got)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s: told\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}
