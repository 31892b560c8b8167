package console_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// titlesOf returns the titles that a page shows, in their order.
func titlesOf(body string) (out []string) {
	for _, m := range regexp.MustCompile(`<span class="what"><strong>([^<]*)</strong>`).FindAllStringSubmatch(body, -1) {
		out = append(out, m[1])
	}
	return out
}

const inboxTime = 7 * 24 * time.Hour

// inbox returns the options of a key with an inbox.
func inbox(name string, urls ...string) site.KeyOptions {
	k := gatewaytest.Key(name, urls...)
	k.Inbox = inboxTime
	return k
}

// TestConsoleTitles checks that the pages of messages show and find the titles in inboxes, the
// first words of messages without a title, and no other text.
func TestConsoleTitles(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	o := openConsole(inbox("kept"), inbox("both", s.NotifyURL("/refuse")), gatewaytest.Key("fine", s.NotifyURL("/fine")))
	o.Queue, o.Process = &outbox.Settings{Path: t.TempDir()}, gatewaytest.NewProcess(t)
	g := gatewaytest.New(t, o)
	send := func(target, form string) {
		t.Helper()
		g.PostForm(target, form)
	}
	send("/notify/kept?type=failure", "title=Disk+FULL+%C3%84&body=confidential")
	send("/notify/both?type=failure", "title=Disk+slow&body=confidential")
	send("/notify/fine", "title=Disk+gone&body=confidential")
	send("/notify/kept", "title=Router+%3Cdown%3E&body=confidential")
	send("/notify/kept", "body=only+%3Cwords%3E%0Aand+more")
	send("/notify/kept", "title=Disk+refused")
	page := func(query string) string {
		t.Helper()
		r := get(g, "/notify/console/messages"+query, browser)
		if r.Status != http.StatusOK || strings.Contains(r.Body, "confidential") || strings.Contains(r.Body, "gone") {
			t.Fatalf("%s: %d %s", query, r.Status, r.Body)
		}
		return r.Body
	}
	check := func() {
		t.Helper()
		for query, want := range map[string][]string{
			"":                              {"Router &lt;down&gt;", "Disk slow", "Disk FULL Ä"},
			"?title=":                       {"Router &lt;down&gt;", "Disk slow", "Disk FULL Ä"},
			"?title=disk":                   {"Disk slow", "Disk FULL Ä"},
			"?title=+FULL+%C3%A4+":          {"Disk FULL Ä"},
			"?title=disk&key=both":          {"Disk slow"},
			"?title=disk&type=info":         nil,
			"?title=refused":                nil,
			"?title=disk&key=fine":          nil,
			"?title=disk&state=refused":     nil,
			"?title=disk&since=1h&key=kept": {"Disk FULL Ä"},
		} {
			body := page(query)
			if got := titlesOf(body); !slices.Equal(got, want) {
				t.Errorf("%s shows the titles %q, want %q", query, got, want)
			}
			if got := len(listed(body)); strings.Contains(query, "title=d") && got != len(want) {
				t.Errorf("%s lists %d messages, want %d", query, got, len(want))
			}
			if shown := strings.Contains(body, "only &lt;words&gt; and more"); shown != (len(want) == 3) {
				t.Errorf("%s shows the words of a message without a title: %v", query, shown)
			}
			if !strings.Contains(body, `name="title"`) {
				t.Errorf("%s has no field for the title", query)
			}
		}
	}
	check()
	link := regexp.MustCompile(`href="\.\./\.\./(notify/console/messages/[0-9a-f-]{36})"`)
	one := link.FindStringSubmatch(page("?title=slow"))
	if one == nil {
		t.Fatal("the message has no page")
	}
	message := get(g, "/"+one[1], browser).Body
	if !strings.Contains(message, `<h1>Disk slow</h1>`) || strings.Contains(message, "confidential") {
		t.Errorf("the page of the message: %s", message)
	}
	text := regexp.MustCompile(`href="\.\./\.\./\.\./(notify/both/messages\?since=[^"]*)"`).FindStringSubmatch(message)
	if text == nil {
		t.Fatalf("no link to the inbox: %s", message)
	}
	if body := get(g, "/"+text[1], browser).Body; !strings.Contains(body, "Disk slow") || !strings.Contains(body, "confidential") {
		t.Errorf("the inbox: %s", body)
	}
	g.Stop()
	o.Process = gatewaytest.NewProcess(t)
	g = gatewaytest.New(t, o)
	check()
	// A shorter time of an inbox applies at once.
	for _, name := range []string{"kept", "both"} {
		g.Resolved.Keys[name].Inbox = time.Nanosecond
	}
	if got := titlesOf(page("")); len(got) > 0 {
		t.Errorf("titles whose time is over: %q", got)
	}
}

// TestKeyTitles checks that the messages on the page of a key have the titles or first words from
// its inbox, and that equal consecutive ones are one line. They had neither.
func TestKeyTitles(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, queued(openConsole(inbox("kept", s.NotifyURL("/fine")))))
	for _, form := range []string{"title=Backup&body=1", "body=only+words", "title=Disk+full&body=1", "title=Disk+full&body=2"} {
		g.PostForm("/notify/kept", form)
	}
	body := get(g, "/notify/console/keys/kept?tab=messages", browser).Body
	if got := titlesOf(body); !slices.Equal(got, []string{"Disk full", "Backup"}) {
		t.Errorf("the titles are %q", got)
	}
	if !strings.Contains(body, `</strong> <span class="tag">×2</span>`) || !strings.Contains(body, `<span class="what">only words`) {
		t.Errorf("the messages of the key: %s", plain(body))
	}
}

// TestConsoleTitlesWithoutInbox checks that there is no field for titles if no key has an inbox.
func TestConsoleTitlesWithoutInbox(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, troubled(t.TempDir(), s))
	g.PostForm("/notify/fine", "title=Disk&body=x")
	if body := get(g, "/notify/console/messages", browser).Body; strings.Contains(body, `name="title"`) || len(titlesOf(body)) > 0 {
		t.Errorf("a site without an inbox: %s", body)
	}
	body := get(g, "/notify/console/messages?title=disk", browser).Body // a former link
	if !strings.Contains(body, "No message fits") || !strings.Contains(body, `value="disk"`) {
		t.Errorf("a filter that finds nothing: %s", body)
	}
}

// TestConsoleTitlePages checks that a filter for the title finds each message once, on
// several pages, in inboxes with more messages than are read at once.
func TestConsoleTitlePages(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, queued(openConsole(inbox("one"), inbox("two"))))
	const n = 240
	for i := range n {
		title := "router"
		if i%2 == 0 {
			title = fmt.Sprintf("disk %d", i)
		}
		g.PostForm("/notify/"+[]string{"one", "two"}[i/7%2], "body=x&title="+strings.ReplaceAll(title, " ", "+"))
	}
	seen, pages := map[string]int{}, 0
	older := regexp.MustCompile(`rel="next" class="button" href="\.\./\.\./notify/console/messages([^"]*)"`)
	for query := "?title=DISK"; pages < 20; pages++ {
		body := get(g, "/notify/console/messages"+query, browser).Body
		for _, title := range titlesOf(body) {
			seen[title]++
		}
		next := older.FindStringSubmatch(body)
		if next == nil {
			break
		}
		if query = strings.ReplaceAll(next[1], "&amp;", "&"); !strings.Contains(query, "title=DISK") {
			t.Fatalf("the link to older messages is %s", query)
		}
	}
	if len(seen) != n/2 || pages < 1 {
		t.Errorf("%d titles on %d pages, want %d on several", len(seen), pages+1, n/2)
	}
	for title, times := range seen {
		if times > 1 || title == "router" {
			t.Errorf("%s is there %d times", title, times)
		}
	}
}

// TestConsoleTitlesOfSaved checks the titles of saved keys, whose inbox configs turns on.
func TestConsoleTitlesOfSaved(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	o := queued(openConfigs())
	o.Saved.Inbox = inboxTime
	g := gatewaytest.New(t, o)
	if r := g.PostForm("/add/mine", "urls="+s.NotifyURL("/fine")); r.Status != http.StatusOK {
		t.Fatal(r.Body)
	}
	g.PostForm("/notify/mine", "title=Disk&body=x")
	if got := titlesOf(get(g, "/notify/console/messages?title=disk", browser).Body); !slices.Equal(got, []string{"Disk"}) {
		t.Errorf("the titles are %q", got)
	}
	body := get(g, "/notify/console/keys/mine?tab=messages", browser).Body
	if !strings.Contains(body, `href="../../../notify/mine/messages"`) || strings.Contains(body, "$READER") {
		t.Errorf("the page of a saved key, which has no reader: %s", body)
	}
}

// TestConsoleTitlesKept checks that the pages show titles of messages to keys without an inbox where the site keeps titles:
// as long as the result is kept, at every destination, and only while the key exists. The store has no title in the clear,
// and neither who knows the ID of a message nor a message without a key shows one.
func TestConsoleTitlesKept(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	path := t.TempDir()
	o := queued(openConfigs(gatewaytest.Key("fine", s.NotifyURL("/fine")), gatewaytest.Key("down", s.NotifyURL("/overload"))))
	o.Site.Titles, o.Process, o.Queue.Path = new(true), gatewaytest.NewProcess(t), path
	o.Storage = &certmagic.FileStorage{Path: t.TempDir()}
	g := gatewaytest.New(t, o)
	add := func() {
		t.Helper()
		if r := g.PostForm("/add/mine", "urls="+s.NotifyURL("/fine")); r.Status != http.StatusOK {
			t.Fatal(r.Body)
		}
	}
	add()
	id := g.PostForm("/notify/fine", "title=Disk+full&body=confidential").Header.Get("X-Message-Id")
	g.PostForm("/notify/down", "title=Disk+slow&body=confidential&wait=0")
	g.PostForm("/notify/mine", "title=%3Cb%3EDisk%3C%2Fb%3E+gone&body=confidential&format=html")
	g.PostForm("/notify/fine", "body=confidential")
	g.PostForm("/notify/fine", "title="+strings.Repeat("long+", 100)+"&body=confidential")
	if r := g.PostForm("/notify", "title=Disk+of+a+stranger&body=confidential&urls="+s.NotifyURL("/fine")); r.Status != http.StatusOK {
		t.Fatal(r.Body)
	}
	check := func(when string, want ...string) {
		t.Helper()
		body := get(g, "/notify/console/messages?title=disk", browser).Body
		if got := titlesOf(body); !slices.Equal(got, want) {
			t.Errorf("%s: the titles are %q, want %q", when, got, want)
		}
		for _, path := range []string{"", "/keys/fine?tab=messages", "/messages/" + id} {
			if body := get(g, "/notify/console"+path, browser).Body; strings.Contains(body, "confidential") || strings.Contains(body, "stranger") {
				t.Errorf("%s: %s shows a text", when, path)
			}
		}
	}
	check("at once", "Disk gone", "Disk slow", "Disk full")
	for path, want := range map[string]string{"/keys/fine?tab=messages": "Disk full", "/messages/" + id: "<h1>Disk full</h1>"} {
		if body := get(g, "/notify/console"+path, browser).Body; !strings.Contains(body, want) {
			t.Errorf("%s lacks %q: %s", path, want, plain(body))
		}
	}
	if r := g.Message(http.MethodGet, id, gatewaytest.TypeJSON); r.Status != http.StatusOK || strings.Contains(r.Body, "Disk") {
		t.Errorf("who knows the ID: %d %s", r.Status, r.Body)
	}
	g.Stop()
	err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		if strings.Contains(string(b), "Disk") {
			t.Errorf("%s has a title", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	o.Process = gatewaytest.NewProcess(t)
	g = gatewaytest.New(t, o)
	check("after a restart", "Disk gone", "Disk slow", "Disk full")
	g.PostForm("/del/mine", "")
	check("without the key", "Disk slow", "Disk full")
	add()
	check("with a later key of the name", "Disk slow", "Disk full")
	g.Stop()
	o.Process, o.Site.Titles = gatewaytest.NewProcess(t), nil
	g = gatewaytest.New(t, o)
	g.PostForm("/notify/fine", "title=Disk+later&body=confidential")
	check("turned off", "Disk slow", "Disk full") // what was kept before
}

// TestConsoleTitlesForReaders checks that a title is shown to nobody who may not read the key.
func TestConsoleTitlesForReaders(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	o := queued(openConsole(gatewaytest.Key("fine", s.NotifyURL("/fine"))))
	o.Site.Titles, o.Site.Managers = new(true), &site.Managers{Named: []string{"ann"}}
	g := gatewaytest.New(t, o)
	g.PostForm("/notify/fine", "title=Disk+full&body=x")
	for _, path := range []string{"/notify/console/messages", "/notify/console", "/notify/fine", "/notify/messages", "/notify/fine/messages"} {
		if r := get(g, path, browser); strings.Contains(r.Body, "Disk") {
			t.Errorf("%s: %d %s", path, r.Status, r.Body)
		}
	}
}
