package console_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestNowNotQuietAfterFailure checks that the situation is not quiet while the last that was said of
// something is a failure, with a queue and without one, with rules and without.
func TestNowNotQuietAfterFailure(t *testing.T) {
	const (
		quiet = "fine: All quiet"
		one   = "waiting: 1 failure, not followed by a success"
		two   = "waiting: 2 failures, not followed by a success"
	)
	kuma := func(status, monitor string) string {
		return `{"heartbeat":{"status":` + status + `,"msg":"x"},"monitor":{"id":` + monitor + `,"name":"web"},"msg":"web"}`
	}
	type post struct{ path, body string }
	for name, tt := range map[string]struct {
		posts []post
		want  string
		ruled string // with a rule; "" for the same
	}{
		"a message":           {[]post{{"ops", "body=x"}}, quiet, ""},
		"a failure":           {[]post{{"ops", "body=x&type=failure"}}, one, ""},
		"and a success":       {[]post{{"ops", "body=x&type=failure"}, {"ops", "body=x&type=success"}}, quiet, ""},
		"and another failure": {[]post{{"ops", "body=x&type=failure"}, {"ops", "body=y&type=success"}, {"ops", "body=x&type=failure"}}, one, ""},
		"several failures":    {[]post{{"ops", "body=x&type=failure"}, {"ops", "body=x&type=failure"}}, one, ""},
		"and a warning":       {[]post{{"ops", "body=x&type=failure"}, {"ops", "body=x&type=warning"}, {"ops", "body=x"}}, one, ""},
		"another key":         {[]post{{"ops", "body=x&type=failure"}, {"more", "body=x&type=success"}}, one, ""},
		"another source":      {[]post{{"ops/uptime_kuma", kuma("0", "1")}, {"ops", "body=x&type=success"}}, one, "failing: 1 incident open"},
		"an incident":         {[]post{{"ops", "body=x&type=failure&incident=db1"}}, one, "failing: 1 incident open"},
		"and its success": {
			[]post{{"ops", "body=x&type=failure&incident=db1"}, {"ops", "body=x&type=success&incident=db1"}}, quiet, "",
		},
		"a success about nothing": {
			[]post{{"ops", "body=x&type=failure&incident=db1"}, {"ops", "body=x&type=success"}}, one, "failing: 1 incident open",
		},
		"another incident": {
			[]post{{"ops", "body=x&type=failure&incident=db1"}, {"ops", "body=x&type=success&incident=db2"}}, one, "failing: 1 incident open",
		},
		"two incidents": {
			[]post{{"ops", "body=x&type=failure&incident=db1"}, {"ops", "body=x&type=failure&incident=db2"}}, two, "failing: 2 incidents open",
		},
		"Uptime Kuma": {[]post{{"ops/uptime_kuma", kuma("0", "1")}}, one, "failing: 1 incident open"},
		"and its end": {[]post{{"ops/uptime_kuma", kuma("0", "1")}, {"ops/uptime_kuma", kuma("1", "1")}}, quiet, ""},
	} {
		for _, with := range []string{"queue", "rules", "nothing"} {
			t.Run(name+" with "+with, func(t *testing.T) {
				gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
					ops := gatewaytest.Key("ops", p.NotifyURL())
					o := openConsole(ops, gatewaytest.Key("more", p.NotifyURL()))
					want := tt.want
					if with != "nothing" {
						o.Queue = &outbox.Settings{Path: dir}
					}
					if with == "rules" {
						o.Site.Keys[0].Rules = &rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}
						if tt.ruled != "" {
							want = tt.ruled
						}
					}
					g := gatewaytest.New(t, o)
					for _, x := range tt.posts {
						kind := gatewaytest.TypeForm
						if strings.HasPrefix(x.body, "{") {
							kind = gatewaytest.TypeJSON
						}
						if r := g.Post("/notify/"+x.path, kind, x.body); r.Status != http.StatusOK {
							t.Fatalf("%s: %d %s", x.body, r.Status, r.Body)
						}
						time.Sleep(time.Second)
						synctest.Wait()
						get(g, "/notify/console/keys", browser) // pages count it, and go on where they were
					}
					body := get(g, "/notify/console", browser).Body
					if got, _ := situation(t, body); !strings.HasPrefix(got, want) {
						t.Errorf("the situation is %q, want %q", got, want)
					}
					if listed := strings.Contains(body, `id="failures"`); listed != strings.Contains(want, "not followed") {
						t.Errorf("failures are listed: %v", listed)
					}
				})
			})
		}
	}
}

// TestNowNotQuietAfterRestart checks that a failure from before a restart counts, until the queue
// forgets it, also beyond a page of other messages.
func TestNowNotQuietAfterRestart(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		o := openConsole(gatewaytest.Key("ops", p.NotifyURL()), gatewaytest.Key("more", p.NotifyURL()))
		o.Queue = &outbox.Settings{Path: dir}
		g := gatewaytest.New(t, o)
		g.PostForm("/notify/ops", "body=x&type=failure")
		for range 120 {
			g.PostForm("/notify/more", "body=x&type=success")
		}
		synctest.Wait()
		g.Stop()
		g = gatewaytest.New(t, o)
		if got, _ := situation(t, get(g, "/notify/console", browser).Body); got != "waiting: 1 failure, not followed by a success" {
			t.Error(got)
		}
		g.Stop()
		time.Sleep(8 * 24 * time.Hour)
		g = gatewaytest.New(t, o)
		if got, _ := situation(t, get(g, "/notify/console", browser).Body); !strings.HasPrefix(got, "fine: All quiet") {
			t.Error(got)
		}
	})
}

// TestNowFailureOfInbox checks that a key that only keeps its messages is not quiet, and that the
// failure has its title.
func TestNowFailureOfInbox(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, _ *gatewaytest.Pager, dir string) {
		kept := gatewaytest.Key("kept")
		kept.Inbox = 7 * 24 * time.Hour
		o := gatewaytest.Options{
			Site:  site.Options{Keys: []site.KeyOptions{kept}, Managers: gatewaytest.Everybody()},
			Queue: &outbox.Settings{Path: dir},
		}
		g := gatewaytest.New(t, o)
		g.PostForm("/notify/kept", "title=Backup+failed&body=x&type=failure")
		synctest.Wait()
		body := get(g, "/notify/console", browser).Body
		if got, _ := situation(t, body); got != "waiting: 1 failure, not followed by a success" || !strings.Contains(body, ">Backup failed</a>") {
			t.Errorf("%s: %s", got, plain(body))
		}
	})
}
