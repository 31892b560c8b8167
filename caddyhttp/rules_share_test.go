package caddyhttp

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// fullGateway is a gateway whose queue may keep little.
func fullGateway(t *testing.T, dir, global, queue string) *Handler {
	t.Helper()
	h := newGateway(t, managed, "queue {\npath "+dir+"\nwait 5s\n"+queue+"\n}\n"+global)
	startApp(t, h)
	return h
}

// placeOfKey returns the place of a key of the configuration.
func placeOfKey(h *Handler, name string) string {
	return h.api.Resolved.Keys[name].Home(h.api.Site()) + "\x00" + name
}

// incidentsAt returns the names of the incidents of a key.
func incidentsAt(t *testing.T, h *Handler, key string) (names []string) {
	t.Helper()
	for _, stage := range rules.Stages {
		list, _, err := h.app.gateway.Rooms.Alerts.Incidents.List(t.Context(), []string{placeOfKey(h, key)}, &alerting.IncidentQuery{Stage: stage, Limit: 10_000})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			names = append(names, x.Incident.Name)
		}
	}
	slices.Sort(names)
	return names
}

// TestShareOfKey checks that a key whose failures name ever new incidents does not take the
// room of others: an alert of another key escalates, the oldest incidents are forgotten, and
// those that are under way are not. Once the queue was full, for all keys and for keep.
func TestShareOfKey(t *testing.T) {
	t.Parallel()
	x, noisy := newTeam(t, 2), newPager(t, http.StatusOK)
	dir := memoryFolder(t)
	const keys = "\nkey noisy {\nurl %s\ndedupe 1h\nurl %[1]s?tz=UTC 1:oncall\nescalate after 1h {\ntag oncall\n}\n}"
	block := x.block("escalate after 5m") + fmt.Sprintf(keys, noisy.NotifyURL())
	inBubble(t, func(t *testing.T) {
		h := fullGateway(t, dir, block, "max_size 512KiB")
		wantTaken := func(key, form string) {
			t.Helper()
			if got := postWith(t, h, "/notify/"+key, form); got.status != http.StatusOK {
				t.Fatalf("%s: %d %s", form, got.status, got.body)
			}
		}
		wantTaken("noisy", alertForm("failure", "x", "escalates"))
		if got := postWith(t, h, "/notify/noisy/silences", "for=2h&incident=silent"); got.status != http.StatusCreated {
			t.Fatal(got.body)
		}
		wantTaken("noisy", alertForm("warning", "x", "silent"))
		const n = 800
		for i := range n {
			wantTaken("noisy", alertForm("warning", "x", fmt.Sprintf("inc%04d", i)))
			if i%10 == 0 {
				time.Sleep(time.Second)
			}
		}
		resp := postWith(t, h, "/notify/k", alertForm("failure", "down", "db1"))
		if got, want := resultsOf(resp.queued(t).Results), []string{"delivered", "delivered", "queued escalating"}; !slices.Equal(got, want) {
			t.Errorf("the alert of another key: %q, want %q", got, want)
		}
		if links := x.phones[0].links(); len(links) != 1 || links[0] == "" {
			t.Errorf("links %q", links)
		}
		known := incidentsAt(t, h, "noisy")
		for _, name := range []string{"escalates", "silent", fmt.Sprintf("inc%04d", n-1)} {
			if !slices.Contains(known, name) {
				t.Errorf("%s is forgotten", name)
			}
		}
		oldest := fmt.Sprintf("inc%04d", n+2-len(known)+10) // ten come at the same time
		if len(known) > n/2 || len(known) < 20 || !slices.Contains(known, oldest) || slices.Contains(known, "inc0100") {
			t.Errorf("%d incidents are known, want the latest ones: %q", len(known), known)
		}
		time.Sleep(alerting.ShareEvery + time.Second)
		stats, err := h.app.gateway.Rooms.Outbox.Queue.Stats(t.Context())
		if share := h.app.gateway.Engine.QueueSettings.MaxSize / alerting.KeyShare; err != nil || stats.Records > 2*share {
			t.Errorf("the records have %d bytes, the share is %d; %v", stats.Records, share, err)
		}
		told := noisy.count()
		wantTaken("noisy", alertForm("success", "x", fmt.Sprintf("inc%04d", n-1)))
		wantTaken("noisy", alertForm("success", "x", "inc0000")) // which is forgotten
		if got := noisy.count() - told; got < 2 {
			t.Errorf("%d resolutions are told", got)
		}
	})
}

// TestFullQueueTellsAll checks that an alert that escalates is told to all its numbers at once
// when the queue is full, without a link, whoever sends it and whether they wait or not;
// that other messages are refused; and that a silence is kept.
func TestFullQueueTellsAll(t *testing.T) {
	t.Parallel()
	x, down := newTeam(t, 2), newPager(t, http.StatusServiceUnavailable)
	dir := memoryFolder(t)
	inBubble(t, func(t *testing.T) {
		h := fullGateway(t, dir, x.block("escalate after 5m")+"\nkey full {\nurl "+down.NotifyURL()+"\n}", "max_size 64KiB")
		known := postWith(t, h, "/notify/k", alertForm("failure", "known", "known"))
		if got, want := resultsOf(known.queued(t).Results), []string{"delivered", "delivered", "queued escalating"}; !slices.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
		for _, name := range []string{"silent", "half"} {
			form := "for=2h&incident=" + name + "&tag=" + map[string]string{"silent": "all", "half": "chat"}[name]
			if got := postWith(t, h, "/notify/k/silences", form); got.status != http.StatusCreated {
				t.Fatal(got.body)
			}
		}
		for i := 0; postWith(t, h, "/notify/full", "body="+strings.Repeat("x", 4000)).status == http.StatusOK; i++ {
			if i > 100 {
				t.Fatal("the queue is never full")
			}
		}
		for i := 0; postWith(t, h, "/notify/full", "body=x").status == http.StatusOK; i++ {
			if i > 1000 {
				t.Fatal("the queue is never full")
			}
		}
		x.wantCounts(t, 1, 1, 0)
		for i, header := range [][]string{nil, {"Prefer", "respond-async"}, {"Idempotency-Key", "abc"}} {
			resp := postWith(t, h, "/notify/k", alertForm("failure", "down", fmt.Sprint("db", i)), header...)
			a := resp.queued(t)
			if got, want := resultsOf(a.Results), []string{"delivered", "delivered", "delivered"}; !slices.Equal(got, want) {
				t.Errorf("%q: %d %q, want %q", header, resp.status, got, want)
			}
			x.wantCounts(t, 2+i, 2+i, 1+i)
		}
		if links := x.phones[1].links(); slices.ContainsFunc(links, func(s string) bool { return s != "" }) {
			t.Errorf("links %q, but nothing knows of them", links)
		}
		for form, want := range map[string]int{
			alertForm("failure", "again", "known"):  http.StatusServiceUnavailable, // its steps go on
			alertForm("failure", "quiet", "silent"): http.StatusServiceUnavailable,
			alertForm("warning", "slow", "db1"):     http.StatusServiceUnavailable, // it does not escalate
		} {
			if got := postWith(t, h, "/notify/k", form); got.status != want {
				t.Errorf("%s: %d %s", form, got.status, got.body)
			}
		}
		x.wantCounts(t, 4, 4, 3)
		resp := postWith(t, h, "/notify/k", alertForm("failure", "half", "half"))
		if got, want := resultsOf(resp.queued(t).Results), []string{"skipped silenced", "delivered", "delivered"}; !slices.Equal(got, want) {
			t.Errorf("with a silence of the chat: %q, want %q", got, want)
		}
		time.Sleep(6 * time.Minute)
		x.wantCounts(t, 4, 5, 5) // the second step of the known one
		x.phones[1].answer(http.StatusServiceUnavailable)
		resp = postWith(t, h, "/notify/k", alertForm("failure", "down", "db9"))
		if got, want := resultsOf(resp.queued(t).Results), []string{"delivered", "delivered", "failed"}; !slices.Equal(got, want) || resp.status != http.StatusFailedDependency {
			t.Errorf("a phone that does not answer: %d %q, want %q", resp.status, got, want)
		}
		synctest.Wait()
	})
}

// TestForgetIncidents checks that incidents can be forgotten one by one and by key, that
// what is under way is not, and that a forgotten one is told again.
func TestForgetIncidents(t *testing.T) {
	t.Parallel()
	x := newTeam(t, 2)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, managed, x.block("dedupe 10h", "escalate after 5m"))
		q := h.app.gateway.Rooms
		for _, form := range []string{alertForm("failure", "x", "escalates"), alertForm("warning", "x", "open"), alertForm("warning", "x", "other"), alertForm("failure", "x", "over"), alertForm("success", "x", "over")} {
			postWith(t, h, "/notify/k", form)
		}
		find := func(name string) *alerting.StoredIncident {
			t.Helper()
			for _, x := range incidentsOf(t, h) {
				if x.Name == name {
					return stored(t, h, x)
				}
			}
			t.Fatalf("%s is unknown", name)
			return nil
		}
		if err := q.Alerts.Incidents.Forget(t.Context(), find("escalates")); !errors.Is(err, alerting.ErrUnderWay) {
			t.Errorf("what escalates is forgotten: %v", err)
		}
		open := find("open")
		wantResult(t, h, alertForm("warning", "x", "open"), notifier.Skipped, notifier.RuleSuppressed)
		if err := q.Alerts.Incidents.Forget(t.Context(), find("open")); err != nil {
			t.Error(err)
		}
		if at, err := q.Alerts.Incidents.ByID(t.Context(), open.Incident.ID); at != nil || !errors.Is(err, alerting.ErrNoIncident) {
			t.Errorf("its address still leads to %v, %v", at, err)
		}
		wantResult(t, h, alertForm("warning", "x", "open"), notifier.Delivered, "") // nobody knows it any more
		place := placeOfKey(h, "k")
		if got, err := q.Alerts.Incidents.ForgetAll(t.Context(), []string{place}, notifier.Resolved); err != nil || got != (alerting.Forgotten{Forgotten: 1}) {
			t.Errorf("of the resolved ones: %+v, %v", got, err)
		}
		if got, err := q.Alerts.Incidents.ForgetAll(t.Context(), []string{place, place}, ""); err != nil || got != (alerting.Forgotten{Forgotten: 2, Kept: 1}) {
			t.Errorf("of all: %+v, %v", got, err)
		}
		if got := incidentsAt(t, h, "k"); !slices.Equal(got, []string{"escalates"}) {
			t.Errorf("left are %q", got)
		}
		time.Sleep(6 * time.Minute)
		if n := x.phones[1].count(); n != 1 {
			t.Errorf("the second step was told %d messages", n)
		}
	})
}

// TestForgetButton checks the buttons of the page of incidents: who may press them, what
// they forget, and that those of other sites stay.
func TestForgetButton(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, managed, ruledKey(p, "dedupe 1h"))
		for _, name := range []string{"a", "b", "c"} {
			postWith(t, h, "/notify/k", alertForm("warning", "x", name))
		}
		list := incidentsOf(t, h)
		id := list[0].ID
		page := get(t, h, "/notify/console/incidents?key=k", browser).body
		for _, want := range []string{`action="../../notify/console/incidents?forget"`, `name="id" value="` + id + `"`, "Forget all of k"} {
			if !strings.Contains(page, want) {
				t.Errorf("the page lacks %q: %s", want, page)
			}
		}
		post := func(form, wantLocation string) {
			t.Helper()
			resp := postWith(t, h, "/notify/console/incidents?forget", form, "Accept", browser, "Sec-Fetch-Site", "same-origin")
			if at := resp.header.Get("Location"); resp.status != http.StatusSeeOther || at != wantLocation {
				t.Errorf("%s: %d %q %s", form, resp.status, at, resp.body)
			}
		}
		post("id="+id+"&filter-key=k", "../../notify/console/incidents?done=forget&forgotten=1&key=k")
		if got := incidentsAt(t, h, "k"); len(got) != 2 {
			t.Errorf("left are %q", got)
		}
		if page := get(t, h, "/notify/console/incidents?done=forget&forgotten=1&key=k", browser).body; !strings.Contains(page, "One incident is forgotten.") {
			t.Error(page)
		}
		for form, want := range map[string]int{
			"id=" + id:                      http.StatusNotFound,
			"":                              http.StatusBadRequest,
			"key=k&filter-state=shut":       http.StatusBadRequest,
			"id=" + strings.Repeat("a", 26): http.StatusNotFound,
		} {
			if resp := postWith(t, h, "/notify/console/incidents?forget", form, "Accept", browser, "Sec-Fetch-Site", "same-origin"); resp.status != want {
				t.Errorf("%s: %d, want %d: %s", form, resp.status, want, resp.body)
			}
		}
		if resp := postWith(t, h, "/notify/console/incidents?forget", "key=k", "Sec-Fetch-Site", "cross-site"); resp.status != http.StatusForbidden {
			t.Errorf("another site: %d", resp.status)
		}
		post("key=k&filter-key=k&filter-state=open", "../../notify/console/incidents?done=forget&forgotten=2&key=k&state=open")
		if got := incidentsAt(t, h, "k"); len(got) != 0 {
			t.Errorf("left are %q", got)
		}
	})
}
