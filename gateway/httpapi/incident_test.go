package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestIncidentPage checks what the page of an incident shows and does, for people and for
// programs, and that a scanner changes nothing.
func TestIncidentPage(t *testing.T) {
	t.Parallel()
	x := gatewaytest.NewTeam(t, 2)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, teamOptions(x, dir, &rules.Escalate{After: []time.Duration{5 * time.Minute}, Repeat: 3, Ack: 4 * time.Hour}))
		g.PostForm("/notify/k", "title=Disk+full&body=confidential&type=failure&incident=db1")
		id := g.ListIncidents("k")[0].ID
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			w := askIncident(t, g, method, id, "", "Accept", "text/html")
			if w.Status != http.StatusOK || w.Header.Get("Cache-Control") != "no-store" || w.Header.Get("Referrer-Policy") != "no-referrer" {
				t.Errorf("%s: %d %v", method, w.Status, w.Header)
			}
			if body := w.Body; method == http.MethodGet &&
				(!strings.Contains(body, "Disk full") || !strings.Contains(body, `value="acknowledge"`) || strings.Contains(body, "confidential")) {
				t.Errorf("the page:\n%s", body)
			}
			// The form is sent to the page, also below a prefix that handle_path removes.
			if body := w.Body; method == http.MethodGet && !strings.Contains(body, `action="./`+id+`"`) {
				t.Errorf("the form is sent elsewhere:\n%s", body)
			}
		}
		if x := g.ListIncidents("k")[0]; x.IsAcknowledged() {
			t.Error("a GET acknowledges")
		}
		for _, tt := range []struct {
			id, form string
			header   []string
			want     int
		}{
			{rules.NewIncidentID(), "do=acknowledge", nil, http.StatusNotFound},
			{"x", "do=acknowledge", nil, http.StatusNotFound},
			{id, "do=resolve", []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
			{id, "do=silence&for=2h", []string{"Origin", "https://evil.example"}, http.StatusForbidden},
			{id, "do=acknowledge", []string{"Sec-Fetch-Site", "cross-site", "Cookie", "session=x"}, http.StatusForbidden},
			{id, "do=acknowledge", []string{"Sec-Fetch-Site", "same-site", "Authorization", "Basic eDp5"}, http.StatusForbidden},
			{id, "do=delete", nil, http.StatusBadRequest},
		} {
			if w := askIncident(t, g, http.MethodPost, tt.id, tt.form, tt.header...); w.Status != tt.want {
				t.Errorf("%s %s %v: %d %s, want %d", tt.id, tt.form, tt.header, w.Status, w.Body, tt.want)
			}
		}
		if w := askIncident(t, g, http.MethodPut, id, ""); w.Status != http.StatusMethodNotAllowed || w.Header.Get("Allow") == "" {
			t.Errorf("PUT: %d", w.Status)
		}
		if x := g.ListIncidents("k")[0]; x.IsAcknowledged() {
			t.Error("a refused request acknowledges")
		}
		w := askIncident(t, g, http.MethodPost, id, "do=acknowledge&by="+url.QueryEscape(" <b>Adam\n\u202eEve</b> "), "Accept", "text/html")
		if body := w.Body; w.Status != http.StatusOK || !strings.Contains(body, "You take care of it") ||
			!strings.Contains(body, "&lt;b&gt;Adam Eve&lt;/b&gt; (typed) acknowledged it") {
			t.Errorf("%d\n%s", w.Status, body)
		}
		w = askIncident(t, g, http.MethodPost, id, "by=Eve", "Accept", "text/html")
		if body := w.Body; !strings.Contains(body, "the first one counts") || strings.Contains(body, ">Eve") {
			t.Errorf("the second acknowledgement:\n%s", body)
		}
		var answer alerting.IncidentJSON
		w = askIncident(t, g, http.MethodGet, id, "", "Accept", "application/json")
		if err := json.Unmarshal([]byte(w.Body), &answer); err != nil || answer.State != "acknowledged" || answer.Acknowledged == nil ||
			answer.Acknowledged.By != "<b>Adam Eve</b> (typed)" || answer.Acknowledged.Until.IsZero() || answer.Title != "Disk full" {
			t.Errorf("%s, %v", w.Body, err)
		}
		time.Sleep(time.Hour)
		if w = askIncident(t, g, http.MethodPost, id, "do=resolve&by=Eve"); w.Status != http.StatusOK {
			t.Errorf("%d %s", w.Status, w.Body)
		}
		time.Sleep(time.Minute)
		x.WantCounts(t, 2, 2, 0)
		if got := x.Phones[0].Told(); got[1] != "success: Resolved: Disk full | Eve (typed) says that this is over." {
			t.Errorf("told %q", got)
		}
		if w = askIncident(t, g, http.MethodPost, id, "do=resolve&by=Adam", "Accept", "text/html"); !strings.Contains(w.Body,
			"It is over already") {
			t.Errorf("%s", w.Body)
		}
	})
}

// TestIncidentPageOfProgram checks that a button without a form acknowledges, and that the
// user of the site's authentication counts.
func TestIncidentPageOfProgram(t *testing.T) {
	t.Parallel()
	x := gatewaytest.NewTeam(t, 1)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, teamOptions(x, dir, escalateAfter(5*time.Minute)))
		g.PostForm("/notify/k", "title=Down&body=b&type=failure")
		id := g.ListIncidents("k")[0].ID
		if w := askIncident(t, g, http.MethodPost, id, ""); w.Status != http.StatusOK || !strings.Contains(w.Body, `"state":"resolved"`) {
			t.Errorf("%d %s", w.Status, w.Body)
		}
		time.Sleep(time.Hour)
		x.WantCounts(t, 1, 1)
	})
}

// TestIncidentPageSilence checks that managers can silence an incident on its page, and nobody
// else.
func TestIncidentPageSilence(t *testing.T) {
	t.Parallel()
	x := gatewaytest.NewTeam(t, 2)
	for _, manage := range []bool{false, true} {
		dir := t.TempDir()
		gatewaytest.InBubble(t, func(t *testing.T) {
			options := teamOptions(x, dir, escalateAfter(10*time.Minute))
			if manage {
				options.Site.Managers = gatewaytest.Everybody()
			}
			g := gatewaytest.New(t, options)
			before := x.Phones[1].Count()
			g.PostForm("/notify/k", "title=Disk+full&body=b&type=failure&incident=db1")
			id := g.ListIncidents("k")[0].ID
			page := askIncident(t, g, http.MethodGet, id, "", "Accept", "text/html").Body
			if offers := strings.Contains(page, "silences?incident=db1&amp;key=k"); offers != manage {
				t.Errorf("manage %t: the page offers a silence: %t", manage, offers)
			}
			w := askIncident(t, g, http.MethodPost, id, "do=silence&for=2h&by=Eve", "Accept", "text/html")
			if !manage {
				if w.Status != http.StatusForbidden {
					t.Errorf("%d %s", w.Status, w.Body)
				}
				return
			}
			if body := w.Body; w.Status != http.StatusOK || !strings.Contains(body, `It is silenced until <time datetime="2000-01-01T02:00:00Z"`) ||
				!strings.Contains(body, "silenced until") || strings.Contains(body, "silences?incident=db1") {
				t.Errorf("%d %s", w.Status, body)
			}
			if w := askIncident(t, g, http.MethodPost, id, "do=silence&for=never"); w.Status != http.StatusBadRequest {
				t.Errorf("%d %s", w.Status, w.Body)
			}
			gatewaytest.Until(t, "2000-01-01 01:59:50")
			if n := x.Phones[1].Count() - before; n != 0 {
				t.Errorf("the second step began during the silence: %d messages", n)
			}
			gatewaytest.Until(t, "2000-01-01 02:12:00")
			if n := x.Phones[1].Count() - before; n != 1 {
				t.Errorf("the second step got %d messages after the silence", n)
			}
		})
	}
}

// TestIncidentForeignPage checks that a page of another site, such as the web app of ntfy, can
// acknowledge with a request that shows nobody's identity, and learns nothing but whether it has
// worked. The requests are made by fetch without credentials: a POST with a form, which browsers
// send without asking first.
func TestIncidentForeignPage(t *testing.T) {
	t.Parallel()
	x := gatewaytest.NewTeam(t, 2)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		options := teamOptions(x, dir, escalateAfter(5*time.Minute))
		options.Site.Managers = gatewaytest.Everybody()
		g := gatewaytest.New(t, options)
		g.PostForm("/notify/k", "title=Disk+full&body=confidential&type=failure&incident=db1")
		id := g.ListIncidents("k")[0].ID
		ntfy := []string{
			"Origin", "https://ntfy.sh", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty",
			"Accept", "*/*", "Referer", "https://ntfy.sh/",
		}
		refused := askIncident(t, g, http.MethodPost, id, "do=acknowledge", append(slices.Clone(ntfy), "Cookie", "a=b")...)
		if refused.Status != http.StatusForbidden || refused.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("with a cookie: %d %v", refused.Status, refused.Header)
		}
		r := gatewaytest.As(httptest.NewRequestWithContext(t.Context(), http.MethodPost, site.RouteIncidents+"/"+id, strings.NewReader("")),
			"ann")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		if got := g.Do(r); got.Status != http.StatusForbidden {
			t.Errorf("of a user: %d %s", got.Status, got.Body)
		}
		for _, form := range []string{"do=resolve", "do=silence&for=2h"} {
			w := askIncident(t, g, http.MethodPost, id, form, ntfy...)
			if w.Status != http.StatusForbidden || !strings.Contains(w.Body, "can acknowledge") {
				t.Errorf("%s: %d %s", form, w.Status, w.Body)
			}
		}
		if got := g.ListIncidents("k")[0]; got.IsAcknowledged() || !got.IsOpen() || len(g.ListSilences("k")) != 0 {
			t.Fatal("a refused request has changed something")
		}
		if w := askIncident(t, g, http.MethodGet, id, "", ntfy...); w.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Error("a page of another site can read the incident")
		}
		for range 2 { // the second one changes nothing, and is no error
			w := askIncident(t, g, http.MethodPost, id, "do=acknowledge", ntfy...)
			if w.Status != http.StatusNoContent || w.Body != "" || w.Header.Get("Access-Control-Allow-Origin") != "*" ||
				w.Header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%d %v %s", w.Status, w.Header, w.Body)
			}
		}
		if got := g.ListIncidents("k")[0]; !got.IsAcknowledged() || got.Acknowledged.By != "" {
			t.Errorf("%+v", got.Acknowledged)
		}
		w := askIncident(t, g, http.MethodPost, rules.NewIncidentID(), "do=acknowledge", ntfy...)
		if w.Status != http.StatusNotFound || w.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("an unknown one: %d %v", w.Status, w.Header)
		}
		time.Sleep(time.Hour)
		x.WantCounts(t, 1, 1, 0)
	})
}

// TestIncidentPageSteps checks that the page and the JSON of an incident have each step that has
// begun, with its outcome, even after the incident.
func TestIncidentPageSteps(t *testing.T) {
	t.Parallel()
	x := gatewaytest.NewTeam(t, 2)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, teamOptions(x, dir, &rules.Escalate{After: []time.Duration{10 * time.Minute}, Repeat: 2, Ack: 24 * time.Hour}))
		x.Phones[0].Answer(http.StatusNotFound)
		g.PostForm("/notify/k", "title=Down&body=secret&type=failure&incident=db1")
		gatewaytest.Until(t, "2000-01-01 00:00:10")
		x.WantCounts(t, 1, 1, 1)
		x.Phones[1].Answer(http.StatusBadRequest)
		gatewaytest.Until(t, "2000-01-01 00:12:00")
		x.WantCounts(t, 1, 2, 2)
		g.PostForm("/notify/k", "title=Up&body=secret&type=success&incident=db1")
		gatewaytest.Until(t, "2000-01-01 00:12:10")

		id := g.ListIncidents("k")[0].ID
		page := askIncident(t, g, http.MethodGet, id, "", "Accept", "text/html").Body
		at := 0
		for _, want := range []string{
			"<strong>step 1</strong> <span class=\"words\">not reached</span> <time", ">00:00</time>",
			"<strong>step 2</strong> <span class=\"words\">told</span> <time", ">00:00</time>",
			"<strong>step 1</strong> <span class=\"words\">not reached</span> <time", ">00:10</time> <span class=\"note\">round 2",
			"<strong>step 2</strong> <span class=\"words\">not reached</span> <time", "<span class=\"words\">resolved</span> <time",
			"It was resolved.", "It was opened.",
		} {
			i := strings.Index(page[at:], want)
			if i < 0 {
				t.Fatalf("%q is missing, or not in its place:\n%s", want, page)
			}
			at += i
		}
		var got alerting.IncidentJSON
		if err := json.Unmarshal([]byte(askIncident(t, g, http.MethodGet, id, "").Body), &got); err != nil || len(got.Begun) != 4 {
			t.Fatalf("%+v, %v", got.Begun, err)
		}
		if first := got.Begun[0]; first.Round != 1 || first.Step != 1 || first.Outcome != "failed" || first.At.IsZero() {
			t.Errorf("the first step is %+v", first)
		}
		if second := got.Begun[1]; second.Outcome != "told" || second.At.Before(got.Begun[0].At) {
			t.Errorf("the second step is %+v", second)
		}
	})
}
