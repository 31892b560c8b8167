package caddyhttp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
)

// namesIn returns the names of the incidents that a response lists.
func namesIn(t *testing.T, r reply) (names []string, next string) {
	t.Helper()
	var page alerting.IncidentsJSON
	if err := json.Unmarshal([]byte(r.body), &page); err != nil || r.status != http.StatusOK {
		t.Fatalf("status %d, %v: %s", r.status, err, r.body)
	}
	for _, x := range page.Incidents {
		names = append(names, x.Key+" "+x.Incident+" "+x.State)
	}
	return names, page.Next
}

// TestIncidentList checks that the incidents of the keys of a site are listed, the worst
// first, without texts and only for those who may manage, also after a restart.
func TestIncidentList(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	keys := strings.ReplaceAll("key KEY {\nurl "+p.NotifyURL()+"\ndedupe 1h\n}\n", "KEY", "ops") +
		strings.ReplaceAll("key KEY {\nurl "+p.NotifyURL()+"\nrate 100/1h\n}\n", "KEY", "net") + "key plain {\nurl " + p.NotifyURL() + "\n}\n"
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "console {\nmanage open\n}", keys)
		for _, form := range []string{"ops warning slow", "ops failure db1", "ops failure db2", "net failure router", "plain failure unknown"} {
			f := strings.Fields(form)
			postWith(t, h, "/notify/"+f[0], "body=confidential&title=Title+of+"+f[2]+"&type="+f[1]+"&incident="+f[2])
			time.Sleep(time.Minute)
		}
		postWith(t, h, "/notify/ops", "body=confidential&title=over&type=success&incident=db1")
		for range 2 {
			for query, want := range map[string][]string{
				"":                   {"ops db2 open", "net router open", "ops slow open", "ops db1 resolved"},
				"?key=ops":           {"ops db2 open", "ops slow open", "ops db1 resolved"},
				"?state=resolved":    {"ops db1 resolved"},
				"?state=open&key=ne": nil,
				"?key=plain":         nil,
			} {
				r := get(t, h, "/notify/incidents"+query, "application/json")
				if got, next := namesIn(t, r); !slices.Equal(got, want) || next != "" || strings.Contains(r.body, "confidential") {
					t.Errorf("%s lists %q, want %q: %s", query, got, want, r.body)
				}
			}
			stopApp(t, h)
			h = newQueueGateway(t, dir, "console {\nmanage open\n}", keys)
		}
		var all []string
		for address := "/notify/incidents?limit=1"; address != ""; {
			names, next := namesIn(t, get(t, h, address, "application/json"))
			if len(names) != 1 {
				t.Errorf("%s has %q", address, names)
			}
			all = append(all, names...)
			if address = strings.TrimPrefix(next, ".."); address == "/" {
				t.Fatal(next)
			}
		}
		slices.Sort(all)
		if want := []string{"net router open", "ops db1 resolved", "ops db2 open", "ops slow open"}; !slices.Equal(all, want) {
			t.Errorf("the pages have %q, want %q", all, want)
		}
		for _, query := range []string{"?state=shut", "?limit=0", "?limit=1001", "?after=x", "?after=" + alerting.IncidentCursor{Stage: "no"}.Encode()} {
			if r := get(t, h, "/notify/incidents"+query, "application/json"); r.status != http.StatusBadRequest {
				t.Errorf("%s: %d %s", query, r.status, r.body)
			}
		}
		if r := get(t, h, "/notify/incidents?key=ops", browser); r.status != http.StatusSeeOther || r.header.Get("Location") != "../notify/console/incidents?key=ops" {
			t.Errorf("a browser gets %d, %q", r.status, r.header.Get("Location"))
		}
		page := get(t, h, "/notify/console/incidents", browser).body
		for _, want := range []string{"Title of db2", "Title of slow", `<span class="badge">3 open</span>`, "/notify/console/keys/ops"} {
			if !strings.Contains(page, want) || strings.Contains(page, "confidential") {
				t.Errorf("the page lacks %q: %s", want, page)
			}
		}
		time.Sleep(time.Minute) // what was counted before is old
		got := values(t, h.shared.Dispatcher)
		for state, want := range map[string]float64{"open": 3, "acknowledged": 0, "resolved": 1} {
			if n := got["incidents state="+state]; n != want {
				t.Errorf("%v are %s, want %v", n, state, want)
			}
		}
	})
}

// TestIncidentsAccess checks that only those who may manage see incidents.
func TestIncidentsAccess(t *testing.T) {
	for _, tt := range []struct {
		block        string
		nobody, user int
	}{
		{"", 403, 403},
		{"console", 403, 200},
		{"console {\nmanage bob\n}", 403, 403},
		{"console {\nmanage open\n}", 200, 200},
		{"configs {\nmanage\n}\npage off", 403, 200},
	} {
		h := newQueueGateway(t, t.TempDir(), tt.block, "")
		for user, want := range map[string]int{"": tt.nobody, "ann": tt.user} {
			for _, accept := range []string{"application/json", browser} {
				r := httptest.NewRequest(http.MethodGet, "/notify/incidents", nil)
				r.Header.Set("Accept", accept)
				if user != "" {
					r = asUser(r, user)
				}
				if accept == browser && want == 200 && h.api.Has.Console {
					want = 303
				}
				if got := do(t, h, r); got.status != want {
					t.Errorf("%q: %q gets %d, want %d: %s", tt.block, user, got.status, want, got.body)
				}
				if want == 303 {
					want = 200
				}
			}
		}
		stopApp(t, h)
	}
}

// TestManyIncidents checks that the pages of the console have each incident once.
func TestManyIncidents(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "console {\nmanage open\n}", ruledKey(p, "dedupe 1h"))
		for i := range 120 {
			postWith(t, h, "/notify/k", fmt.Sprintf("title=No+%d.&body=x&type=failure&incident=%d", i, i))
		}
		synctest.Wait()
		seen := map[string]int{}
		pages := 0
		for address := "/notify/console/incidents"; address != ""; pages++ {
			body := get(t, h, address, browser).body
			for _, part := range strings.Split(body, `">No `)[1:] {
				seen[part[:strings.IndexByte(part, '.')]]++
			}
			_, after, _ := strings.Cut(body, `rel="next" class="button" href="../..`)
			address, _, _ = strings.Cut(after, `"`)
		}
		if pages != 3 || len(seen) != 120 {
			t.Errorf("%d pages have %d incidents", pages, len(seen))
		}
		for name, n := range seen {
			if n != 1 {
				t.Errorf("%s is listed %d times", name, n)
			}
		}
	})
}

// TestMessageNamesIncident checks that a message of the queue names the incident that it
// is about, and not a later one of the same name.
func TestMessageNamesIncident(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "console {\nmanage open\n}", ruledKey(p, "dedupe 1h")+"\nkey plain {\nurl "+p.NotifyURL()+"\n}")
		id := func(m string) string {
			t.Helper()
			return getMessage(t, h, http.MethodGet, m, typeJSON).queued(t).IncidentID
		}
		down := wantResult(t, h, alertForm("failure", "down", "db1"), "delivered", "").ID
		time.Sleep(time.Minute)
		info := wantResult(t, h, alertForm("info", "looking", "db1"), "delivered", "").ID
		up := wantResult(t, h, alertForm("success", "up", "db1"), "delivered", "").ID
		first := incidentsOf(t, h)[0].ID
		if id(down) != first || id(info) != first || id(up) != first {
			t.Errorf("%q, %q and %q, want %q", id(down), id(info), id(up), first)
		}
		page := get(t, h, "/notify/console/messages/"+down, browser).body
		if !strings.Contains(page, `<a href="../../../notify/incidents/`+first+`">db1</a>`) {
			t.Errorf("the page has no link to the incident: %s", page)
		}
		time.Sleep(time.Minute)
		again := wantResult(t, h, alertForm("failure", "down", "db1"), "delivered", "").ID
		if second := incidentsOf(t, h)[0].ID; id(again) != second || second == first || id(down) != "" {
			t.Errorf("%q, and the first message %q", id(again), id(down))
		}
		entry := h.shared.History.List()[0]
		if entry.IncidentID != incidentsOf(t, h)[0].ID {
			t.Errorf("the history has %q", entry.IncidentID)
		}
		other := wantResult(t, h, "body=x", "delivered", "").ID
		plain := postWith(t, h, "/notify/plain", alertForm("failure", "down", "db1"), "Prefer", "respond-async").queued(t).ID
		if id(other) != "" || id(plain) != "" {
			t.Errorf("%q and %q", id(other), id(plain))
		}
	})
}
