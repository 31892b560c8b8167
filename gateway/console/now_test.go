package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/console"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

var (
	sentenceOf = regexp.MustCompile(`<h1 class="situation is-(\w+)">(.*?)</h1>`)
	countOf    = regexp.MustCompile(`data-count>(?: <span class="badge" aria-hidden="true">(\d+)</span>)?(?:<span class="unseen">: ` +
		`([^<]*)</span>)?</span>`)
	tagOf   = regexp.MustCompile(`<[^>]*>`)
	titleOf = regexp.MustCompile(`<title>(.*?)</title>`)
	barOf   = regexp.MustCompile(
		`<span class="unseen">(Last 24 hours[^<]*)</span>([^<]*)</(?:summary|a)>|<p class="unseen">(Last 24 hours[^<]*)</p>`)
)

// situation returns the sentence of a page, its state, and the count in the navigation.
func situation(t *testing.T, body string) (sentence, counted string) {
	t.Helper()
	m, n := sentenceOf.FindStringSubmatch(body), countOf.FindStringSubmatch(body)
	if m == nil || n == nil {
		t.Fatalf("the page has no sentence or no count: %s", body)
	}
	return m[1] + ": " + tagOf.ReplaceAllString(m[2], ""), strings.TrimSpace(n[1] + " " + n[2])
}

// TestNow follows somebody whom a failure calls to the first page: the situation, the acknowledged
// incident, the destination that is tried now, and all quiet.
func TestNow(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		ops := gatewaytest.Key("ops", p.NotifyURL()+" team")
		ops.Rules = &rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}
		o := openConsole(ops, gatewaytest.Key("garage", p.NotifyURL()+"garage"))
		o.Queue = &outbox.Settings{Path: dir}
		g := gatewaytest.New(t, o)
		page := func(path string) string {
			t.Helper()
			r := get(g, "/notify/console"+path, browser)
			if r.Status != http.StatusOK {
				t.Fatalf("%s: %d %s", path, r.Status, r.Body)
			}
			return r.Body
		}
		want := func(sentence, counted string) string {
			t.Helper()
			body := page("")
			if gotSentence, gotCount := situation(t, body); gotSentence != sentence || gotCount != counted {
				t.Errorf("the situation is %q with the count %q; want %q, %q", gotSentence, gotCount, sentence, counted)
			}
			return body
		}
		body := want("fine: All quiet: 2 keys", "")
		if !strings.Contains(body, "no message yet · nothing given up") || strings.Count(body, "never used") != 2 ||
			!strings.Contains(body, "<title>Now · Notify</title>") {
			t.Errorf("before the first message: %s", body)
		}
		g.PostForm("/notify/ops", "title=Disk+full&body=confidential&type=failure&incident=db1")
		time.Sleep(14 * time.Minute)
		synctest.Wait()
		body = want("failing: 1 incident open", "1 1 incident open")
		for _, want := range []string{
			">Disk full</a>", "open <time datetime=\"2000-01-01T00:00:00Z\" title=\"1 Jan 2000, 00:00:00 UTC\" data-lasts>for 14 min</time>",
			`class="primary" aria-label="Acknowledge Disk full"`,
			`silences?incident=db1&amp;key=ops`,
			"last message <time datetime=\"2000-01-01T00:00:00Z\" title=\"1 Jan 2000, 00:00:00 UTC\" data-short>14 min ago</time>",
			"fill='%23b3261e'", "JSON 127.0.0.1:",
		} {
			if !strings.Contains(body, want) {
				t.Errorf("the page lacks %s: %s", want, body)
			}
		}
		if got := barOf.FindAllStringSubmatch(body, -1); len(got) != 2 || got[0][1]+got[0][2] != "Last 24 hours: 1 delivered" ||
			got[1][3] != "Last 24 hours: nothing" {
			t.Errorf("the bars say %q", got)
		}
		if strings.Contains(body, "confidential") || strings.Count(body, "<path class=\"delivered\"") != 1 {
			t.Errorf("the page has a text, or too much in its bars: %s", body)
		}
		for _, path := range []string{"/keys", "/messages", "/keys/ops", "/queue", "/silences", "/incidents"} {
			body := page(path)
			if n := countOf.FindStringSubmatch(body); n == nil || n[1] != "1" || !strings.HasPrefix(titleOf.FindStringSubmatch(body)[1], "(1) ") {
				t.Errorf("%s does not count the incident: %s", path, body)
			}
		}
		id := regexp.MustCompile(`name="id" value="([^"]+)"`).FindStringSubmatch(body)[1]
		if r := submit(g, "/notify/console?acknowledge", url.Values{"id": {"none"}}); r.Status != http.StatusNotFound {
			t.Errorf("an incident that does not exist: %d", r.Status)
		}
		for _, done := range []string{"acknowledge", "over"} {
			if r := submit(g, "/notify/console?acknowledge", url.Values{"id": {id}}); r.Status != http.StatusSeeOther ||
				r.Header.Get("Location") != "../notify/console?done="+done {
				t.Errorf("acknowledging answers %d, %q", r.Status, r.Header.Get("Location"))
			}
		}
		list := url.Values{"id": {id}, "filter-state": {"acknowledged"}}
		if r := submit(g, "/notify/console/incidents?acknowledge", list); r.Status != http.StatusSeeOther ||
			r.Header.Get("Location") != "../../notify/console/incidents?done=over&state=acknowledged" {
			t.Errorf("acknowledging it in the list: %d %s", r.Status, r.Header.Get("Location"))
		}
		if body := page("/incidents?state=acknowledged"); !strings.Contains(body,
			`console/incidents?resolve"><input type="hidden" name="id" value="`+id+`"`) {
			t.Errorf("the list of incidents: %s", body)
		}
		if body = want("waiting: 1 incident acknowledged", ""); !strings.Contains(body, "?resolve") ||
			!strings.Contains(page("?done=acknowledge"), "You take care of it.") {
			t.Errorf("an incident that is acknowledged: %s", body)
		}
		if r := submit(g, "/notify/console?resolve", url.Values{"id": {id}}); r.Status != http.StatusSeeOther {
			t.Errorf("resolving answers %d", r.Status)
		}
		synctest.Wait()
		want("fine: All quiet: 2 keys, last message now", "")

		p.Answer(http.StatusServiceUnavailable)
		g.PostForm("/notify/garage", "body=x")
		synctest.Wait()
		want("waiting: 1 destination tried again", "")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		body = want("failing: 1 destination down", "1 1 destination down")
		for _, want := range []string{
			"the service answered 503", "1 message waits", "Down <time datetime", `aria-label="Try now: JSON 127.0.0.1:`,
			"waited in 1 half hour",
		} {
			if !strings.Contains(body, want) {
				t.Errorf("the page lacks %s: %s", want, body)
			}
		}
		p.Answer(http.StatusOK)
		destination := console.EncodeDestination(g.Rooms().Outbox.Queue.Hash(g.Resolved.Keys["garage"].Targets[0].Hash()))
		if r := submit(g, "/notify/console?hurry", url.Values{"destination": {destination}}); r.Status != http.StatusSeeOther ||
			r.Header.Get("Location") != "../notify/console?dead=0&done=hurry&waiting=1" {
			t.Errorf("trying now answers %d, %q", r.Status, r.Header.Get("Location"))
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s, _ := situation(t, page("")); !strings.HasPrefix(s, "fine: All quiet: 2 keys, last message ") {
			t.Errorf("in the end: %s", s)
		}
		p.Answer(http.StatusUnauthorized)
		g.PostForm("/notify/garage", "body=x")
		synctest.Wait()
		if body := want("failing: 1 destination failing", "1 1 destination failing"); !strings.Contains(body,
			`aria-label="Try now: JSON 127.0.0.1:`) {
			t.Errorf("what was given up cannot be tried: %s", body)
		}
		p.Answer(http.StatusOK)
		n := p.Count()
		for _, want := range []string{"dead=1&done=hurry&waiting=0", ""} {
			r := submit(g, "/notify/console?hurry", url.Values{"destination": {destination}})
			if at := r.Header.Get("Location"); want != "" && (r.Status != http.StatusSeeOther || at != "../notify/console?"+want) || want == "" &&
				r.Status != http.StatusNotFound {
				t.Errorf("trying now answers %d, %q", r.Status, at)
			}
			synctest.Wait()
		}
		if p.Count() != n+1 {
			t.Errorf("%d messages came", p.Count()-n)
		}
		if s, _ := situation(t, page("")); !strings.HasPrefix(s, "fine: All quiet") {
			t.Errorf("after the repair: %s", s)
		}
		for query, want := range map[string]string{
			"dead=0&waiting=0": "Nothing waits there, and nothing was given up.",
			"dead=1&waiting=0": "1 delivery that was given up is being tried now.",
			"dead=0&waiting=2": "2 deliveries that waited are being tried now.",
			"dead=3&waiting=2": "2 that waited and 3 that were given up are being tried now.",
		} {
			if body := page("?done=hurry&" + query); !strings.Contains(body, want) {
				t.Errorf("the page does not say %q: %s", want, plain(body))
			}
		}
	})
}

// TestNowWithoutQueue checks that the page claims nothing of the time before the start.
func TestNowWithoutQueue(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, openConsole(gatewaytest.Key("ops", s.NotifyURL("/refuse")), gatewaytest.Key("fine", s.NotifyURL("/ok"))))
	body := get(g, "/notify/console", browser).Body
	if got, _ := situation(t, body); got != "fine: All quiet: 2 keys" || strings.Contains(body, "never used") ||
		strings.Count(body, "nothing since the start") != 2 || !strings.Contains(body, "Last 24 hours, since the start of the gateway: nothing") {
		t.Errorf("%s: %s", got, body)
	}
	g.PostForm("/notify/ops", "body=x")
	g.PostForm("/notify/fine", "body=x")
	body = get(g, "/notify/console", browser).Body
	if got, _ := situation(t, body); got != "failing: 1 key fails" ||
		!strings.Contains(body, "since the start of the gateway: </span>1 failed") ||
		!strings.Contains(body, "since the start of the gateway: </span>1 delivered") {
		t.Errorf("%s: %s", got, body)
	}
}

// TestPagesWithoutQueue checks that pages that need a queue say so without one.
func TestPagesWithoutQueue(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, openConsole(gatewaytest.Key("ops", "json://127.0.0.1:1")))
	for path, not := range map[string]string{
		"incidents": "cannot be read", "queue": "Retries are", "messages": `value="queued"`,
		"silences": "cannot be read",
	} {
		r := get(g, "/notify/console/"+path, browser)
		if r.Status != http.StatusOK || strings.Contains(r.Body, not) {
			t.Errorf("%s: %d %s", path, r.Status, plain(r.Body))
		}
		if path != "messages" && !strings.Contains(r.Body, "<code>queue</code>") {
			t.Errorf("%s does not say what is missing: %s", path, plain(r.Body))
		}
	}
}

// TestNowUnqueued checks that a key that does not use the queue is not quiet while it fails.
func TestNowUnqueued(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusInternalServerError)
	k := gatewaytest.Key("direct", p.NotifyURL())
	k.Unqueued = true
	g := gatewaytest.New(t, queued(openConsole(k, gatewaytest.Key("ops", p.NotifyURL()+"ops"))))
	g.PostForm("/notify/direct", "body=x")
	body := get(g, "/notify/console", browser).Body
	if got, counted := situation(t, body); got != "failing: 1 key fails" || counted != "1 1 key fails" {
		t.Errorf("%s, %s", got, counted)
	}
	if body := get(g, "/notify/console/messages", browser).Body; !strings.Contains(titleOf.FindString(body), "(1)") ||
		!strings.Contains(body, "fill='%23fff'%3E1%3C/text%3E") {
		t.Errorf("another page does not count it: %s", body)
	}
}

// TestOldAddressOfKeys checks that links to the former address of the list of keys lead to it.
func TestOldAddressOfKeys(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, openConsole(gatewaytest.Key("ops", "json://127.0.0.1:1")))
	for _, query := range []string{"state=fine", "page=1", "search=op&state=down", "key=new"} {
		if r := get(g, "/notify/console?"+query, browser); r.Status != http.StatusSeeOther ||
			r.Header.Get("Location") != "../notify/console/keys?"+query {
			t.Errorf("%s: %d, %q", query, r.Status, r.Header.Get("Location"))
		}
	}
	if r := get(g, "/notify/console/keys?state=silent", browser); r.Status != http.StatusOK || !strings.Contains(r.Body, ">ops</a>") {
		t.Errorf("%d: %s", r.Status, r.Body)
	}
}

// TestNowOfOtherSite checks that the page does not act on incidents of another site.
func TestNowOfOtherSite(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		ops := gatewaytest.Key("ops", p.NotifyURL())
		ops.Rules = &rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}
		o := gatewaytest.Options{
			Site:  site.Options{Keys: []site.KeyOptions{ops}, Managers: gatewaytest.Everybody()},
			Queue: &outbox.Settings{Path: dir},
		}
		g := gatewaytest.New(t, o)
		g.PostForm("/notify/ops", "title=t&body=x&type=failure&incident=db1")
		synctest.Wait()
		id := regexp.MustCompile(`name="id" value="([^"]+)"`).FindStringSubmatch(get(g, "/notify/console", browser).Body)[1]
		g.SetSiteID("other")
		if got, n := situation(t, get(g, "/notify/console", browser).Body); strings.Contains(got, "incident") || n != "" {
			t.Errorf("the other site has %q, %q", got, n)
		}
		if r := submit(g, "/notify/console?acknowledge", url.Values{"id": {id}}); r.Status != http.StatusNotFound {
			t.Errorf("the other site acknowledges it: %d", r.Status)
		}
	})
}
