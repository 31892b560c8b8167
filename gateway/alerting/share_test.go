package alerting_test

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
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestShareOfKey checks that a key whose failures name ever new incidents does not take the room of
// others: an alert of another key escalates, and the oldest incidents are forgotten unless they are
// under way. Once the queue was full for all keys, for as long as keep.
func TestShareOfKey(t *testing.T) {
	t.Parallel()
	x, noisy := gatewaytest.NewTeam(t, 2), gatewaytest.NewPager(t, http.StatusOK)
	dir := memoryFolder(t)
	noise := rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}, Escalate: escalate(time.Hour)}
	noise.Escalate.Tag = "oncall"
	o := withManagers(teamOptions(x, dir, rules.Rules{Escalate: escalate(5 * time.Minute)},
		gatewaytest.RuledKey("noisy", noise, noisy.NotifyURL(), noisy.NotifyURL()+"?tz=UTC 1:oncall")))
	o.Queue.MaxSize = 512 << 10
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, o)
		wantTaken := func(key, form string) {
			t.Helper()
			if got := g.PostForm("/notify/"+key, form); got.Status != http.StatusOK {
				t.Fatalf("%s: %d %s", form, got.Status, got.Body)
			}
		}
		wantTaken("noisy", gatewaytest.AlertForm("failure", "x", "escalates"))
		if got := g.PostForm("/notify/noisy/silences", "for=2h&incident=silent"); got.Status != http.StatusCreated {
			t.Fatal(got.Body)
		}
		wantTaken("noisy", gatewaytest.AlertForm("warning", "x", "silent"))
		const n = 800
		for i := range n {
			wantTaken("noisy", gatewaytest.AlertForm("warning", "x", fmt.Sprintf("inc%04d", i)))
			if i%10 == 0 {
				time.Sleep(time.Second)
			}
		}
		resp := g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", "db1"))
		if got, want := resultsOf(resp.JSON(t).Results), []string{"delivered", "delivered", "queued escalating"}; !slices.Equal(got, want) {
			t.Errorf("the alert of another key: %q, want %q", got, want)
		}
		if links := x.Phones[0].Links(); len(links) != 1 || links[0] == "" {
			t.Errorf("links %q", links)
		}
		known := incidentsAt(t, g, "noisy")
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
		stats, err := g.Rooms().Outbox.Queue.Stats(t.Context())
		if share := g.Gateway.Conf.QueueSettings.MaxSize / alerting.KeyShare; err != nil || stats.Records > 2*share {
			t.Errorf("the records have %d bytes, the share is %d; %v", stats.Records, share, err)
		}
		told := noisy.Count()
		wantTaken("noisy", gatewaytest.AlertForm("success", "x", fmt.Sprintf("inc%04d", n-1)))
		wantTaken("noisy", gatewaytest.AlertForm("success", "x", "inc0000")) // which is forgotten
		if got := noisy.Count() - told; got < 2 {
			t.Errorf("%d resolutions are told", got)
		}
	})
}

// TestFullQueueTellsAll checks that an alert that escalates is told to all its numbers at once,
// without a link, when the queue is full. It does not matter who sends it and whether they wait.
// Other messages are refused, and a silence is kept.
func TestFullQueueTellsAll(t *testing.T) {
	t.Parallel()
	x, down := gatewaytest.NewTeam(t, 2), gatewaytest.NewPager(t, http.StatusServiceUnavailable)
	dir := memoryFolder(t)
	gatewaytest.InBubble(t, func(t *testing.T) {
		o := withManagers(teamOptions(x, dir, rules.Rules{Escalate: escalate(5 * time.Minute)}, gatewaytest.Key("full", down.NotifyURL())))
		o.Queue.MaxSize = 64 << 10
		g := gatewaytest.New(t, o)
		known := g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "known", "known"))
		if got, want := resultsOf(known.JSON(t).Results), []string{"delivered", "delivered", "queued escalating"}; !slices.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
		for _, name := range []string{"silent", "half"} {
			form := "for=2h&incident=" + name + "&tag=" + map[string]string{"silent": "all", "half": "chat"}[name]
			if got := g.PostForm("/notify/k/silences", form); got.Status != http.StatusCreated {
				t.Fatal(got.Body)
			}
		}
		for i := 0; g.PostForm("/notify/full", "body="+strings.Repeat("x", 4000)).Status == http.StatusOK; i++ {
			if i > 100 {
				t.Fatal("the queue is never full")
			}
		}
		for i := 0; g.PostForm("/notify/full", "body=x").Status == http.StatusOK; i++ {
			if i > 1000 {
				t.Fatal("the queue is never full")
			}
		}
		x.WantCounts(t, 1, 1, 0)
		for i, header := range [][]string{nil, {"Prefer", "respond-async"}, {"Idempotency-Key", "abc"}} {
			resp := g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", fmt.Sprint("db", i)), header...)
			a := resp.JSON(t)
			if got, want := resultsOf(a.Results), []string{"delivered", "delivered", "delivered"}; !slices.Equal(got, want) {
				t.Errorf("%q: %d %q, want %q", header, resp.Status, got, want)
			}
			x.WantCounts(t, 2+i, 2+i, 1+i)
		}
		if links := x.Phones[1].Links(); slices.ContainsFunc(links, func(s string) bool { return s != "" }) {
			t.Errorf("links %q, but nothing knows of them", links)
		}
		for form, want := range map[string]int{
			gatewaytest.AlertForm("failure", "again", "known"):  http.StatusServiceUnavailable, // its steps go on
			gatewaytest.AlertForm("failure", "quiet", "silent"): http.StatusServiceUnavailable,
			gatewaytest.AlertForm("warning", "slow", "db1"):     http.StatusServiceUnavailable, // it does not escalate
		} {
			if got := g.PostForm("/notify/k", form); got.Status != want {
				t.Errorf("%s: %d %s", form, got.Status, got.Body)
			}
		}
		x.WantCounts(t, 4, 4, 3)
		resp := g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "half", "half"))
		if got, want := resultsOf(resp.JSON(t).Results), []string{"skipped silenced", "delivered", "delivered"}; !slices.Equal(got, want) {
			t.Errorf("with a silence of the chat: %q, want %q", got, want)
		}
		time.Sleep(6 * time.Minute)
		x.WantCounts(t, 4, 5, 5) // the second step of the known one
		x.Phones[1].Answer(http.StatusServiceUnavailable)
		resp = g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", "db9"))
		if got, want := resultsOf(resp.JSON(t).Results), []string{"delivered", "delivered", "failed"}; !slices.Equal(got, want) ||
			resp.Status != http.StatusFailedDependency {
			t.Errorf("a phone that does not answer: %d %q, want %q", resp.Status, got, want)
		}
		synctest.Wait()
	})
}

// TestForgetIncidents checks that incidents can be forgotten one by one and by key, except those
// under way, and that a forgotten incident is told again.
func TestForgetIncidents(t *testing.T) {
	t.Parallel()
	x := gatewaytest.NewTeam(t, 2)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t,
			withManagers(teamOptions(x, dir, rules.Rules{Dedupe: &rules.Dedupe{Window: 10 * time.Hour}, Escalate: escalate(5 * time.Minute)})))
		q := g.Rooms()
		for _, form := range []string{
			gatewaytest.AlertForm("failure", "x", "escalates"), gatewaytest.AlertForm("warning", "x", "open"),
			gatewaytest.AlertForm("warning", "x", "other"), gatewaytest.AlertForm("failure", "x", "over"),
			gatewaytest.AlertForm("success", "x", "over"),
		} {
			g.PostForm("/notify/k", form)
		}
		find := func(name string) *alerting.StoredIncident {
			t.Helper()
			for _, x := range g.ListIncidents("k") {
				if x.Name == name {
					return stored(t, g, x)
				}
			}
			t.Fatalf("%s is unknown", name)
			return nil
		}
		if err := q.Alerts.Incidents.Forget(t.Context(), find("escalates")); !errors.Is(err, alerting.ErrUnderWay) {
			t.Errorf("what escalates is forgotten: %v", err)
		}
		open := find("open")
		wantResult(t, g, gatewaytest.AlertForm("warning", "x", "open"), notifier.Skipped, notifier.RuleSuppressed)
		if err := q.Alerts.Incidents.Forget(t.Context(), find("open")); err != nil {
			t.Error(err)
		}
		if at, err := q.Alerts.Incidents.ByID(t.Context(), open.Incident.ID); at != nil || !errors.Is(err, alerting.ErrNoIncident) {
			t.Errorf("its address still leads to %v, %v", at, err)
		}
		wantResult(t, g, gatewaytest.AlertForm("warning", "x", "open"), notifier.Delivered, "") // nobody knows it any more
		place := placeOfKey(g, "k")
		if got, err := q.Alerts.Incidents.ForgetAll(t.Context(), []string{place}, notifier.Resolved); err != nil ||
			got != (alerting.Forgotten{Forgotten: 1}) {
			t.Errorf("of the resolved ones: %+v, %v", got, err)
		}
		if got, err := q.Alerts.Incidents.ForgetAll(t.Context(), []string{place, place}, ""); err != nil ||
			got != (alerting.Forgotten{Forgotten: 2, Kept: 1}) {
			t.Errorf("of all: %+v, %v", got, err)
		}
		if got := incidentsAt(t, g, "k"); !slices.Equal(got, []string{"escalates"}) {
			t.Errorf("left are %q", got)
		}
		time.Sleep(6 * time.Minute)
		if n := x.Phones[1].Count(); n != 1 {
			t.Errorf("the second step was told %d messages", n)
		}
	})
}

// TestShareUnderWay checks that incidents of which something is under way have the share of a key,
// too. Beyond it, those that somebody takes care of are forgotten, the oldest first. An alert that
// would begin steps is told to all numbers at once, and an alert that nobody would be told of is
// refused. Other keys have their steps, and so has this one when there is room again.
func TestShareUnderWay(t *testing.T) {
	t.Parallel()
	x, noisy := gatewaytest.NewTeam(t, 2), gatewaytest.NewTeam(t, 2)
	noisyKey := noisy.Key(rules.Rules{Escalate: escalate(100 * time.Hour)})
	noisyKey.Name = "noisy"
	o := withManagers(teamOptions(x, memoryFolder(t), rules.Rules{Escalate: escalate(5 * time.Minute)}, noisyKey))
	o.Queue.MaxSize = 512 << 10
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, o)
		share := g.Gateway.Conf.QueueSettings.MaxSize / alerting.KeyShare
		records := func() int64 {
			t.Helper()
			stats, err := g.Rooms().Outbox.Queue.Stats(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return stats.Records
		}
		post := func(key, form string) gatewaytest.Reply { return g.PostForm("/notify/"+key, form) }
		if got := g.PostForm("/notify/noisy/silences", "for=200h&title=silent"); got.Status != http.StatusCreated {
			t.Fatal(got.Body)
		}
		places := []string{placeOfKey(g, "noisy")}
		for i := range 200 {
			name := fmt.Sprintf("inc%03d", i)
			if got := post("noisy", gatewaytest.AlertForm("warning", "x", name)); got.Status != http.StatusOK {
				t.Fatalf("%s: %d %s", name, got.Status, got.Body)
			}
			time.Sleep(time.Millisecond) // else the gateway may forget it at this moment
			list, _, err := g.Rooms().Alerts.Incidents.List(t.Context(), places, &alerting.IncidentQuery{Stage: notifier.Open, Limit: 2})
			if err != nil || len(list) != 1 || list[0].Incident.Name != name {
				t.Fatalf("%s: %+v %v", name, list, err)
			}
			if _, _, err := g.Rooms().Alerts.Incidents.Acknowledge(t.Context(), &list[0], message.Who{User: "Ann"}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(alerting.ShareEvery)
		known := incidentsAt(t, g, "noisy")
		if n := records(); n > share*5/4 || !slices.Contains(known, "inc199") || slices.Contains(known, "inc000") {
			t.Errorf("%d bytes, the share is %d; known are %q", n, share, known)
		}
		n, atOnce := 0, []string{"delivered", "delivered", "delivered"}
		for ; n < 1000; n++ {
			got := post("noisy", gatewaytest.AlertForm("failure", "down", fmt.Sprint("db", n)))
			if got.Status != http.StatusOK {
				t.Fatalf("%d %s", got.Status, got.Body)
			}
			time.Sleep(time.Second)
			if slices.Equal(resultsOf(got.JSON(t).Results), atOnce) {
				break
			}
		}
		if size := records(); n == 1000 || size < share/2 || size > share*3/2 {
			t.Errorf("after %d alerts, the records have %d bytes; the share is %d", n, size, share)
		}
		got := post("noisy", gatewaytest.AlertForm("failure", "x", "quiet")+"&title=silent")
		if got.Status != http.StatusTooManyRequests || got.Header.Get("Retry-After") == "" ||
			!strings.Contains(got.Body, "acknowledge or resolve some") {
			t.Errorf("%d %s", got.Status, got.Body)
		}
		if got := post("noisy", gatewaytest.AlertForm("warning", "slow", "w")); got.Status != http.StatusOK {
			t.Errorf("a warning: %d %s", got.Status, got.Body)
		}
		steps := []string{"delivered", "delivered", "queued escalating"}
		if got := resultsOf(post("k", gatewaytest.AlertForm("failure", "down", "db")).JSON(t).Results); !slices.Equal(got, steps) {
			t.Errorf("another key: %q", got)
		}
		for i := range n {
			if got := post("noisy", gatewaytest.AlertForm("success", "up", fmt.Sprint("db", i))); got.Status != http.StatusOK {
				t.Fatalf("%d %s", got.Status, got.Body)
			}
		}
		time.Sleep(alerting.ShareEvery)
		if got := resultsOf(post("noisy", gatewaytest.AlertForm("failure", "down", "again")).JSON(t).Results); !slices.Equal(got, steps) {
			t.Errorf("with room again: %q", got)
		}
	})
}
