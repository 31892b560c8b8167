package console_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/ask"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// The page of the console lists silences, makes one and ends one.
func TestSilencesPage(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	dir := t.TempDir()
	sunday, err := rules.ParseWindow([]string{"sun", "02:00-04:00", "UTC"})
	if err != nil {
		t.Fatal(err)
	}
	ruled := gatewaytest.RuledKey("ruled", rules.Rules{Windows: []rules.SilenceWindow{{Window: sunday}}}, p.NotifyURL())
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, gatewaytest.Options{
			Global: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("k", p.NotifyURL()+"?tz=UTC 1:phone"), ruled}},
			Site:   site.Options{Managers: gatewaytest.Everybody()},
			Queue:  &outbox.Settings{Path: dir},
		})
		page := func(path string) string { return g.Get(path).Body }
		html := []string{"Accept", "text/html"}
		if got := page("/notify/console/silences?key=k&tag=phone"); !strings.Contains(got, "in the configuration") ||
			!strings.Contains(got, `value="phone"`) {
			t.Error(got)
		}
		if got := page("/notify/console/keys/k"); !strings.Contains(got, `href="../../../notify/console/silences?key=k&amp;tag=all"`) ||
			!strings.Contains(got, `console/silences?key=k&amp;tag=phone"`) {
			t.Error(got)
		}
		resp := g.PostForm("/notify/console/silences?make", "key=k&for=2h&title=disk&reason=new+disks&who=ann", html...)
		if at := resp.Header.Get("Location"); resp.Status != http.StatusSeeOther || at != "../../notify/console/silences?done=make" {
			t.Fatalf("status %d, %q: %s", resp.Status, at, resp.Body)
		}
		got := page("/notify/console/silences?done=make")
		for _, want := range []string{"The silence is made.", "<strong>disk…</strong>", "new disks", "by ann", "1 Jan 2000, 02:00 UTC"} {
			if !strings.Contains(got, want) {
				t.Errorf("the page lacks %q", want)
			}
		}
		if resp := g.PostForm("/notify/console/silences?make", "key=k&for=2h", html...); resp.Status != http.StatusBadRequest ||
			!strings.Contains(resp.Body, `<p class="reason">It would match nothing`) ||
			!strings.Contains(resp.Body, `<a class="button primary" href="./silences">Back</a>`) || strings.Contains(resp.Body, `class="logs"`) {
			t.Errorf("status %d: %s", resp.Status, resp.Body)
		}
		resp = g.PostForm("/notify/console/silences?make", "key=k&for=2h&from=2000-01-02T02:00&tag=phone&tell=yes", html...)
		got = page("/notify/console/silences")
		begins := time.Date(2000, 1, 2, 2, 0, 0, 0, time.Local).UTC().
			Format("2 Jan 2006, 15:04 UTC") //nolint:gosmopolitan // the page has the server's time
		for _, want := range []string{
			"Planned</strong> <span>from <time", begins, "told when it begins and ends", ">Cancel<",
			"in the configuration",
		} {
			if resp.Status != http.StatusSeeOther || !strings.Contains(got, want) {
				t.Errorf("status %d; the page lacks %q: %s", resp.Status, want, got)
			}
		}
		if resp := g.PostForm("/notify/console/silences?end", "key=ruled&id="+g.ListSilences("ruled")[0].ID,
			html...); resp.Status != http.StatusConflict || !strings.Contains(resp.Body, "a line of the key in the configuration") {
			t.Errorf("status %d: %s", resp.Status, resp.Body)
		}
		if status := g.EndSilence("k", g.ListSilences("k")[1].ID); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
		resp = g.PostForm("/notify/console/silences?end", "key=k&id="+g.ListSilences("k")[0].ID, html...)
		if resp.Status != http.StatusSeeOther || len(g.ListSilences("k")) != 0 {
			t.Errorf("status %d: %s", resp.Status, resp.Body)
		}
	})
}

// TestSilenceOfDestination checks that the button of a destination silences only that one if it has
// a tag of its own, and otherwise says which others it silences. It silenced all with its first
// tag, without a word.
func TestSilenceOfDestination(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, queued(openConsole(gatewaytest.Key("k",
		"json://127.0.0.1:1/a 1:oncall ann", "json://127.0.0.1:1/b 2:oncall", "json://127.0.0.1:1/c"))))
	body := get(g, "/notify/console/keys/k", browser).Body
	for _, want := range []string{
		`silences?key=k&amp;tag=ann" aria-label="Silence JSON 127.0.0.1:1">Silence</a>`,
		`silences?key=k&amp;tag=oncall" aria-label="Silence 2 with oncall, all destinations with the tag">Silence 2 with oncall</a>`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %s: %s", want, body)
		}
	}
	if n := strings.Count(body, "silences?key=k&amp;tag="); n != 3 {
		t.Errorf("the key and %d destinations can be silenced by a tag", n-1)
	}
	for query, want := range map[string]string{
		"?key=k&tag=oncall": "It concerns JSON 127.0.0.1:1 (1:oncall, ann), JSON 127.0.0.1:1 (2:oncall).",
		"?key=k&tag=ann":    "It concerns JSON 127.0.0.1:1 (1:oncall, ann).",
		"?key=k&tag=none":   "No destination of the key k has the tag none",
		"?key=none&tag=ann": "There is no such key; check its name, also upper and lower case",
	} {
		if body := get(g, "/notify/console/silences"+query, browser).Body; !strings.Contains(body, want) ||
			strings.Contains(want, "concerns") != strings.Contains(body, "It concerns") {
			t.Errorf("%s: %s", query, plain(body))
		}
	}
}

// TestSilenceOffer checks that the page says what a silence would match before it is made, offers to
// make it with one click, and says what to write instead of what cannot match.
func TestSilenceOffer(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		ruled := gatewaytest.Key("ruled", p.NotifyURL()+"?tz=UTC phone", p.NotifyURL()+"/2 mail")
		ruled.Rules, ruled.Inbox = &rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}, 7*24*time.Hour
		o := openConsole(ruled, gatewaytest.Key("plain", p.NotifyURL()+" phone"))
		o.Queue = &outbox.Settings{Path: dir}
		g := gatewaytest.New(t, o)
		g.PostForm("/notify/plain", "title=Old&body=x")
		time.Sleep(25 * time.Hour)
		for _, x := range []string{
			"ruled title=Disk+full&type=failure&incident=db1", "ruled title=Disk+is+full+on+db2&type=warning&incident=db2",
			"ruled title=OK:+disk&type=info", "ruled title=Backup&tag=mail", "plain title=Disk+full", "plain title=Disk+empty",
		} {
			key, form, _ := strings.Cut(x, " ")
			g.PostForm("/notify/"+key, form+"&body=x")
		}
		synctest.Wait()
		for query, want := range map[string]string{
			"key=ruled&title=disk":               "It matches 2 open incidents, 2 messages of the last day",
			"key=ruled&title=*disk":              "It matches 2 open incidents, 3 messages of the last day",
			"key=ruled&title=*disk*full*db*":     "It matches 1 open incident, 1 message of the last day",
			"key=ruled&title=*":                  "It matches 2 open incidents, 4 messages of the last day",
			"key=ruled&incident=db1":             "It matches 1 open incident, 1 message of the last day",
			"key=ruled&incident=db1&title=other": "It matches nothing now",
			"key=ruled&tag=all":                  "It matches 2 open incidents, 4 messages of the last day",
			"key=ruled&tag=mail":                 "It matches 2 open incidents, 4 messages of the last day",
			"key=ruled&tag=phone":                "It matches 2 open incidents, 3 messages of the last day",
			"key=ruled&title=nothing":            "It matches nothing now",
			"key=plain&tag=*":                    "It matches 2 messages of the last day",
			"key=plain&title=disk": "It matches 0 messages of the last day, and maybe some of 2 messages whose titles are " +
				"not kept",
			"key=ruled&title=disk.*":     "Title: a regular expression does not work here; write how the title begins, with * for any text",
			"key=ruled&title=(disk|cpu)": "Title: a regular expression does not work here",
			"key=ruled&tag=ph*":          "Tag: * does not stand for a part of a tag; write one whole tag of URLs",
			"key=ruled&tag=fone":         "No destination of the key ruled has the tag fone",
			"key=none&tag=all":           "There is no such key; check its name",
			"key=ruld&tag=all":           "There is no such key; you may mean ruled",
		} {
			body := get(g, "/notify/console/silences?"+query, browser).Body
			if got := plain(body); !strings.Contains(got, want) {
				t.Errorf("%s: the page lacks %q: %s", query, want, got)
			}
			if offers := strings.Contains(body, `name="for" value="1h">1 hour</button>`); offers != strings.HasPrefix(want, "It matches") {
				t.Errorf("%s: it is offered: %t", query, offers)
			}
			if ends := strings.Contains(body, `value="resolved"`); ends != strings.Contains(query, "incident") {
				t.Errorf("%s: until it is resolved is offered: %t", query, ends)
			}
		}
		for _, do := range []string{"make", "extend", "end"} {
			r := g.PostForm("/notify/console/silences?"+do, "key=ruld&tag=all&for=1h", "Accept", gatewaytest.TypeJSON)
			if !strings.Contains(r.Body, `"there is no such key; you may mean ruled"`) {
				t.Errorf("%s: %d %s", do, r.Status, r.Body)
			}
		}
		for button, want := range map[string]string{
			"for=1h":         "until 2 Jan 2000, 02:00 UTC",
			"until=08:00":    "until " + morning(time.Now()).UTC().Format("2 Jan 2006, 15:04 UTC"),
			"until=resolved": "until it is resolved, or 1 Feb 2000, 01:00 UTC",
		} {
			r := g.PostForm("/notify/console/silences?make", "key=ruled&incident=db1&"+button, "Accept", browser)
			id := g.ListSilences("ruled")[0].ID
			if got := plain(get(g, "/notify/console/silences", browser).Body); r.Status != http.StatusSeeOther || !strings.Contains(got, want) {
				t.Errorf("%s: %d, the page lacks %q: %s", button, r.Status, want, got)
			}
			r = g.PostForm("/notify/console/silences?extend", "key=ruled&for=1h&id="+id, "Accept", browser)
			longer := r.Status == http.StatusSeeOther && r.Header.Get("Location") == "../../notify/console/silences?done=extend"
			if strings.Contains(button, "resolved") == longer {
				t.Errorf("%s: extending it answers %d %q", button, r.Status, r.Header.Get("Location"))
			}
			if status := g.EndSilence("ruled", id); status != http.StatusOK {
				t.Errorf("ending it answers %d", status)
			}
		}
	})
}

// morning returns the next eight o'clock of the server.
func morning(now time.Time) time.Time {
	at := time.Date(now.Year(), now.Month(), now.Day(), 8, 0, 0, 0, time.Local)
	if !at.After(now) {
		at = at.AddDate(0, 0, 1)
	}
	return at
}

// TestWithoutQueue checks which keys can have silences and questions, and that code, the HTTP API and,
// where there is one, the page give the same error.
func TestWithoutQueue(t *testing.T) {
	t.Parallel()
	off := gatewaytest.Key("k", "json://127.0.0.1:9/")
	off.Unqueued = true
	on := gatewaytest.Key("k", "json://127.0.0.1:9/")
	public := func(o gatewaytest.Options) gatewaytest.Options {
		o.Site.PublicURL = gatewaytest.PublicURL
		return o
	}
	for name, tt := range map[string]struct {
		options         gatewaytest.Options
		silences, asked error // nil for none
		page            bool  // the site has the page of silences
	}{
		"no queue":            {public(openConsole(on)), alerting.ErrSilencesWithoutQueue, ask.ErrNoQueue, false},
		"queue off":           {public(queued(openConsole(off))), alerting.ErrSilencesUnqueued, ask.ErrNoQueue, true},
		"queue, no URL":       {queued(openConsole(on)), nil, ask.ErrNoURL, true},
		"queue, with its URL": {public(queued(openConsole(on))), nil, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gatewaytest.New(t, tt.options)
			k := g.Resolved.Keys["k"]
			if _, err := g.Gateway.Silences(k); !errors.Is(err, tt.silences) {
				t.Errorf("silences by code: %v, want %v", err, tt.silences)
			}
			if _, err := g.Gateway.Questions(g.Resolved, k); !errors.Is(err, tt.asked) {
				t.Errorf("questions by code: %v, want %v", err, tt.asked)
			}
			said := func(what string, want error, r *http.Request) {
				t.Helper()
				r.Header.Set("Accept", gatewaytest.TypeJSON)
				got := g.Do(r)
				if want == nil && got.Status >= 400 || want != nil && (got.JSON(t).Error == nil || *got.JSON(t).Error != want.Error()) {
					t.Errorf("%s: status %d %s, want %v", what, got.Status, got.Body, want)
				}
			}
			form := []string{"Content-Type", gatewaytest.TypeForm}
			said("silences by HTTP", tt.silences, gatewaytest.NewRequest(http.MethodPost, "/notify/k/silences", "for=2h&title=x", form...))
			if tt.page {
				said("silences on the page", tt.silences,
					gatewaytest.NewRequest(http.MethodPost, "/notify/console/silences?make", "key=k&for=2h&title=x", form...))
			}
			said("questions by HTTP", tt.asked, jsonPost("/notify/k", `{"body":"x","ask":{"options":["yes","no"]}}`))
		})
	}
}
