package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// escalated returns the options of a gateway whose key ops tells a chat at once, then Ann, and
// Bob five minutes later.
func escalated(dir string, rounds int, chat, ann, bob *gatewaytest.Pager) gatewaytest.Options {
	r := rules.Rules{Escalate: &rules.Escalate{After: []time.Duration{5 * time.Minute}, Repeat: rounds, Ack: 4 * time.Hour}}
	k := gatewaytest.RuledKey("ops", r, chat.NotifyURL()+" chat", ann.NotifyURL()+" 1:ann", bob.NotifyURL()+" 2:bob")
	return gatewaytest.Options{
		Global: site.Options{Keys: []site.KeyOptions{k}, PublicURL: gatewaytest.PublicURL},
		Site:   site.Options{Managers: gatewaytest.Everybody()},
		Queue:  &outbox.Settings{Path: dir},
	}
}

// plain returns the text of a page, with a single space for all white space.
func plain(body string) string {
	if i := strings.Index(body, "<main"); i >= 0 {
		body, _, _ = strings.Cut(body[i:], "<script")
	}
	return strings.Join(strings.Fields(tagOf.ReplaceAllString(body, " ")), " ")
}

// wantTexts checks that the text of a page of the console has some texts, in their order.
func wantTexts(t *testing.T, g *gatewaytest.Gateway, address string, want ...string) {
	t.Helper()
	text := plain(get(g, address, browser).Body)
	rest := text
	for _, w := range want {
		_, after, ok := strings.Cut(rest, w)
		if !ok {
			t.Errorf("%s lacks %q, or has it in another place: %s", address, w, text)
			return
		}
		rest = after
	}
}

// incidentID returns the ID of the incident of the key ops.
func incidentID(t *testing.T, g *gatewaytest.Gateway) string {
	t.Helper()
	all := g.ListIncidents("ops")
	if len(all) != 1 {
		t.Fatalf("%d incidents", len(all))
	}
	return all[0].ID
}

// TestLastRound checks the pages during the last step of the last round, when nobody is told next,
// and after all rounds. They named the first step as next, and gave the end the time of the
// beginning.
func TestLastRound(t *testing.T) {
	t.Parallel()
	chat, ann, bob, dir := gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK),
		gatewaytest.NewPager(t, http.StatusOK), t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, escalated(dir, 1, chat, ann, bob))
		g.PostForm("/notify/ops", "title=Disk+full&body=b&type=failure&incident=db1")
		gatewaytest.Until(t, "2000-01-01 00:01:00")
		wantTexts(t, g, "/notify/console", "(1:ann) told 00:00 now", "(2:bob) 00:05 , in 4 min then nobody 00:10")
		gatewaytest.Until(t, "2000-01-01 00:06:00")
		wantTexts(t, g, "/notify/console", "(2:bob) told 00:05 now then nobody 00:10")
		id := incidentID(t, g)
		wantTexts(t, g, "/notify/console/incidents/"+id, "(1:ann) told 00:00", "(2:bob) told 00:05 now then nobody 00:10")
		gatewaytest.Until(t, "2000-01-01 00:30:00")
		wantTexts(t, g, "/notify/console/incidents/"+id, "(2:bob) told 00:05 all rounds ended 00:10 now",
			"1 Jan 2000, 00:10 UTC All rounds have ended, and nobody has acknowledged it.")
		if n := ann.Count() + bob.Count(); n != 2 {
			t.Errorf("the steps got %d messages", n)
		}
	})
}

// TestSilenceOfOneStep checks that a silence for the tag of one step is not shown as a silence of
// the whole incident.
func TestSilenceOfOneStep(t *testing.T) {
	t.Parallel()
	chat, ann, bob, dir := gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK),
		gatewaytest.NewPager(t, http.StatusOK), t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, escalated(dir, 3, chat, ann, bob))
		silence := func(form url.Values) {
			t.Helper()
			form.Set("key", "ops")
			form.Set("for", "2h")
			if r := submit(g, "/notify/console/silences?make", form); r.Status != http.StatusSeeOther {
				t.Fatalf("%d %s", r.Status, r.Body)
			}
		}
		silence(url.Values{"tag": {"ann"}})
		g.PostForm("/notify/ops", "title=Disk+full&body=b&type=failure&incident=db1")
		gatewaytest.Until(t, "2000-01-01 00:01:00")
		id := incidentID(t, g)
		for _, address := range []string{"/notify/console/incidents", "/notify/console/incidents/" + id} {
			wantTexts(t, g, address, "silent for JSON 127.0.0.1:", "(1:ann) until")
		}
		wantTexts(t, g, "/notify/console", "Disk full", "silent for JSON 127.0.0.1:", "(1:ann) until", "Acknowledge Silence")
		if body := get(g, "/notify/incidents/"+id, browser).Body; !strings.Contains(body, "silences?incident=db1") ||
			strings.Contains(plain(body), "of 1") {
			t.Errorf("the incident cannot be silenced: %s", body)
		}
		silence(url.Values{"tag": {"bob"}})
		wantTexts(t, g, "/notify/console/incidents/"+id, "(1:ann), JSON 127.0.0.1:", "(2:bob) until")
		silence(url.Values{"incident": {"db1"}})
		wantTexts(t, g, "/notify/console/incidents/"+id, "silent since 00:01 now silence ends 02:01")
		if body := get(g, "/notify/console/incidents/"+id, browser).Body; strings.Contains(body, `value="silence"`) {
			t.Errorf("an incident that is silent can be silenced: %s", body)
		}
	})
}

// TestMessageOfEscalation checks the page of a message with steps that have not begun, and after an
// acknowledgement. It had a button for these steps that did nothing, said that a rule held them,
// and did not mention the acknowledgement.
func TestMessageOfEscalation(t *testing.T) {
	t.Parallel()
	chat, ann, bob, dir := gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK),
		gatewaytest.NewPager(t, http.StatusOK), t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		o := escalated(dir, 3, chat, ann, bob)
		o.Log = zap.New(core)
		g := gatewaytest.New(t, o)
		g.PostForm("/notify/ops", "title=Disk+full&body=b&type=failure&incident=db1")
		synctest.Wait()
		address := regexp.MustCompile(`href="\.\./\.\./(notify/console/messages/[0-9a-f-]{36})"`).
			FindStringSubmatch(get(g, "/notify/console/messages", browser).Body)
		if address == nil {
			t.Fatal("the message has no page")
		}
		page := "/" + address[1]
		wantTexts(t, g, page, "Delivered; JSON 127.0.0.1:", "(2:bob) 1 Jan 2000, 00:05 UTC unless acknowledged",
			"1:ann Delivered", "2:bob Later step 2 begins 1 Jan 2000, 00:05 UTC unless somebody acknowledges, and again in 2 later rounds")
		if body := get(g, page, browser).Body; strings.Contains(body, "Try now") || !strings.Contains(body, "Drop it") {
			t.Errorf("the page offers to try now what waits for its time: %s", body)
		}
		if body := get(g, "/notify/console/keys/ops?tab=messages", browser).Body; strings.Contains(body, "×") ||
			!strings.Contains(body, "1 message<") {
			t.Errorf("a message counts once for each round: %s", plain(body))
		}
		if r := submit(g, "/notify/console?acknowledge", url.Values{"id": {incidentID(t, g)}}); r.Status != http.StatusSeeOther {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		synctest.Wait()
		// Nobody is logged in. The log once had no line then.
		if taken := logs.FilterMessage("incident acknowledged").All(); len(taken) != 1 || taken[0].ContextMap()["user"] != "" {
			t.Errorf("the log has %v", taken)
		}
		wantTexts(t, g, page, "Acknowledged", "1:ann Delivered", "2:bob Not needed somebody has acknowledged the incident")
		if r := submit(g, "/notify/incidents/"+incidentID(t, g), url.Values{"do": {"resolve"}, "by": {"Eve"}}); r.Status != http.StatusOK {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		// A message whose steps were all told says who has acknowledged it; a later one does not.
		g.PostForm("/notify/ops", "title=Door+open&body=b&type=failure&incident=door")
		gatewaytest.Until(t, "2000-01-01 02:00:00")
		door := g.ListIncidents("ops")[0].ID
		submit(g, "/notify/incidents/"+door, url.Values{"do": {"acknowledge"}, "by": {"Bob"}})
		g.PostForm("/notify/ops", "title=Door+open&body=again&type=failure&incident=door")
		synctest.Wait()
		wantTexts(t, g, "/notify/console/messages?key=ops", "02:00", "Delivered", "00:00", "Acknowledged by Bob (typed)")
		resolved := logs.FilterMessage("incident resolved").All()
		if len(resolved) != 1 || resolved[0].ContextMap()["user"] != "Eve (typed)" || resolved[0].ContextMap()["key"] != "ops" ||
			resolved[0].ContextMap()["incident"] != "db1" {
			t.Errorf("the log has %v", resolved)
		}
	})
}
