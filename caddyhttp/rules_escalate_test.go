package caddyhttp

import (
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// team is a chat without a number, and phones that are steps.
type team struct {
	chat   *pager
	phones []*pager
}

func newTeam(t *testing.T, phones int) *team {
	x := &team{chat: newPager(t, http.StatusOK)}
	for range phones {
		x.phones = append(x.phones, newPager(t, http.StatusOK))
	}
	return x
}

// publicURL is what the links of tests begin with.
const publicURL = "https://alerts.example.com/x"

// block returns the key k with the rules, and the setting that they need.
func (x *team) block(lines ...string) string {
	b := "public_url " + publicURL + "\nkey k {\nurl " + x.chat.NotifyURL() + " chat\n"
	for i, p := range x.phones {
		b += "url " + p.NotifyURL() + " " + string(rune('1'+i)) + ":oncall\n"
	}
	return b + strings.Join(lines, "\n") + "\n}"
}

// wantCounts checks how many messages the chat and the phones got.
func (x *team) wantCounts(t *testing.T, want ...int) {
	t.Helper()
	synctest.Wait()
	got := []int{x.chat.count()}
	for _, p := range x.phones {
		got = append(got, p.count())
	}
	if !slices.Equal(got, want) {
		t.Errorf("at %s the chat and the phones got %v messages, want %v", time.Now().UTC().Format(time.TimeOnly), got, want)
	}
}

// resultsOf returns the status and rule of each result, such as "queued escalating".
func resultsOf(results []api.QueuedResult) (out []string) {
	for _, r := range results {
		out = append(out, strings.TrimSpace(string(r.Status)+" "+string(r.Rule)))
	}
	return out
}

// links returns the links with which to acknowledge of the messages that the pager has
// taken.
func (p *pager) links() (out []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.got {
		out = append(out, m.AcknowledgeURL)
	}
	return out
}

// ackIncident acknowledges the only incident of the key k that is open.
func ackIncident(t *testing.T, h *Handler, by string) bool {
	t.Helper()
	list := incidentsOf(t, h)
	list = slices.DeleteFunc(list, func(x *rules.Incident) bool { return !x.IsOpen() })
	if len(list) != 1 {
		t.Fatalf("%d incidents are open", len(list))
	}
	_, err := h.app.gateway.Rooms.Alerts.Incidents.Acknowledge(t.Context(), stored(t, h, list[0]), by)
	if err != nil && !errors.Is(err, alerting.ErrAcknowledged) {
		t.Fatal(err)
	}
	return err == nil
}

// TestEscalate checks who is told when, in all rounds, what the results say, and that
// nothing follows the last round.
func TestEscalate(t *testing.T) {
	t.Parallel()
	x := newTeam(t, 3)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", x.block("escalate after 5m 15m {\nrepeat 2\n}"))
		resp := postWith(t, h, "/notify/k", "title=Down&body=secret&type=failure")
		a := resp.queued(t)
		if got, want := resultsOf(a.Results), []string{"delivered", "delivered", "queued escalating", "queued escalating"}; !slices.Equal(got, want) {
			t.Errorf("results %q, want %q", got, want)
		}
		if r := a.Results[2]; r.Step != 2 || r.Next == nil || !r.Next.Equal(time.Now().Add(5*time.Minute)) {
			t.Errorf("the second step: %+v", r)
		}
		if r := a.Results[3]; r.Step != 3 || r.Next == nil || !r.Next.Equal(time.Now().Add(20*time.Minute)) {
			t.Errorf("the third step: %+v", r)
		}
		x.wantCounts(t, 1, 1, 0, 0)
		until(t, "2000-01-01 00:04:50")
		x.wantCounts(t, 1, 1, 0, 0)
		until(t, "2000-01-01 00:05:03")
		x.wantCounts(t, 1, 1, 1, 0)
		until(t, "2000-01-01 00:20:06")
		x.wantCounts(t, 1, 1, 1, 1)
		until(t, "2000-01-01 00:35:09") // the first one again
		x.wantCounts(t, 1, 2, 1, 1)
		until(t, "2000-01-01 02:00:00")
		x.wantCounts(t, 1, 2, 2, 2)
		list := incidentsOf(t, h)
		if len(list) != 1 || !list[0].Own || !list[0].Escalation.Exhausted || list[0].Title != "Down" {
			t.Fatalf("%+v", list)
		}
		if !ackIncident(t, h, "Adam") {
			t.Error("an incident whose steps have ended cannot be acknowledged")
		}
		if x := incidentsOf(t, h)[0]; x.IsOpen() {
			t.Error("an acknowledgement does not close an incident of its own")
		}
	})
}

// TestEscalateAcknowledged checks that nobody is paged after an acknowledgement, that
// further failures page nobody either, and that the steps begin again when it ends.
func TestEscalateAcknowledged(t *testing.T) {
	t.Parallel()
	x := newTeam(t, 2)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", x.block("escalate after 5m {\nack 4h\n}"))
		a := postWith(t, h, "/notify/k", "title=Disk&body=b&type=failure&incident=db1").queued(t)
		until(t, "2000-01-01 00:03:00")
		if !ackIncident(t, h, "Adam") || ackIncident(t, h, "Eve") {
			t.Error("the first acknowledgement does not count, or the second does")
		}
		if _, r := state(t, h, a.ID); r.Status != notifier.Delivered {
			t.Errorf("%+v", r)
		}
		m, err := h.app.gateway.Rooms.Outbox.Queue.Get(t.Context(), queueID(t, a.ID))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := resultsOf(queued.Message(m).Results)[:3], []string{"delivered", "delivered", "skipped acknowledged"}; !slices.Equal(got, want) {
			t.Errorf("results %q, want %q", got, want)
		}
		until(t, "2000-01-01 01:00:00")
		x.wantCounts(t, 1, 1, 0)
		b := postWith(t, h, "/notify/k", "title=Disk&body=worse&type=failure&incident=db1").queued(t)
		if got, want := resultsOf(b.Results), []string{"delivered", "skipped acknowledged", "skipped acknowledged"}; !slices.Equal(got, want) {
			t.Errorf("results %q, want %q", got, want)
		}
		until(t, "2000-01-01 04:02:30")
		x.wantCounts(t, 2, 1, 0)
		until(t, "2000-01-01 04:03:10")
		x.wantCounts(t, 3, 2, 0)
		if got := x.phones[0].toldTitles(); got[1] != "failure: Still open: Disk | This is open since 1 January 00:00 UTC. Adam acknowledged it at 1 January 00:03 UTC." || !strings.HasPrefix(x.phones[0].links()[1], publicURL+"/notify/incidents/") {
			t.Errorf("told %q", got[1])
		}
		until(t, "2000-01-01 04:08:15")
		x.wantCounts(t, 3, 2, 1)
		if !ackIncident(t, h, "Eve") {
			t.Error("it cannot be acknowledged again")
		}
		until(t, "2000-01-01 05:00:00")
		postWith(t, h, "/notify/k", alertForm("success", "up", "db1"))
		until(t, "2000-01-02 12:00:00")
		x.wantCounts(t, 4, 3, 2)
	})
}

// TestEscalateResolved checks that a resolution is told to those who were told of the
// incident, and that it ends the steps.
func TestEscalateResolved(t *testing.T) {
	t.Parallel()
	x := newTeam(t, 3)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", x.block("escalate after 5m 15m", "quiet 00:00-23:00 UTC {\ntypes info warning success failure\n}"))
		postWith(t, h, "/notify/k", alertForm("failure", "down", "db1"))
		until(t, "2000-01-01 00:06:00")
		postWith(t, h, "/notify/k", alertForm("info", "looking", "db1"))
		until(t, "2000-01-01 00:10:00")
		a := postWith(t, h, "/notify/k", alertForm("success", "up", "db1")).queued(t)
		if got, want := resultsOf(a.Results)[3], "skipped escalating"; got != want {
			t.Errorf("who was not told: %q, want %q", got, want)
		}
		until(t, "2000-01-01 22:50:00")
		x.wantCounts(t, 2, 2, 2, 0) // what passed a window is resolved through it
		until(t, "2000-01-02 22:50:00")
		if n := x.phones[2].count(); n != 0 {
			t.Errorf("the third phone got %d messages", n)
		}
		if x := incidentsOf(t, h); len(x) != 1 || x[0].IsOpen() {
			t.Errorf("%+v", x)
		}
	})
}

// TestEscalateFailed checks that a step that reaches nobody begins the next one at once,
// and that other types go to the first step only.
func TestEscalateFailed(t *testing.T) {
	t.Parallel()
	x := newTeam(t, 2)
	x.phones[0].answer(http.StatusBadRequest)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", x.block("escalate after 1h"))
		postWith(t, h, "/notify/k", "body=b&type=failure")
		until(t, "2000-01-01 00:00:10")
		x.wantCounts(t, 1, 1, 1)
		a := postWith(t, h, "/notify/k", "body=note").queued(t)
		if got, want := resultsOf(a.Results)[2], "skipped escalating"; got != want {
			t.Errorf("the second step: %q, want %q", got, want)
		}
		x.wantCounts(t, 2, 2, 1)
	})
}

// TestEscalateRestart checks that the steps go on after a restart, and that an incident
// that escalates no more releases nothing twice.
func TestEscalateRestart(t *testing.T) {
	t.Parallel()
	x := newTeam(t, 2)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", x.block("escalate after 10m"))
		postWith(t, h, "/notify/k", alertForm("failure", "down", "db1"))
		postWith(t, h, "/notify/k", alertForm("failure", "down", "db2"))
		until(t, "2000-01-01 00:05:00")
		stopApp(t, h)
		until(t, "2000-01-01 00:12:00")
		h = newQueueGateway(t, dir, "", x.block("escalate after 10m"))
		until(t, "2000-01-01 00:12:05")
		x.wantCounts(t, 2, 2, 2)
		stopApp(t, h)
		h = newQueueGateway(t, dir, "", x.block("dedupe 1m {\ntag chat\n}"))
		until(t, "2000-01-02 00:00:00")
		x.wantCounts(t, 2, 2, 2) // everybody was told
		stopApp(t, h)
	})
}

// TestEscalateRemoved checks that without the rule, those who were not told are told once.
func TestEscalateRemoved(t *testing.T) {
	t.Parallel()
	x := newTeam(t, 3)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", x.block("escalate after 10m 10m"))
		postWith(t, h, "/notify/k", alertForm("failure", "down", "db1"))
		until(t, "2000-01-01 00:15:00")
		stopApp(t, h)
		h = newQueueGateway(t, dir, "", x.block("dedupe 1m {\ntag chat\n}"))
		until(t, "2000-01-02 00:00:00")
		x.wantCounts(t, 1, 1, 1, 1)
		if held, err := h.app.gateway.Rooms.Outbox.Queue.List(t.Context(), rules.StepJob{}.Job, 10, 2); err != nil || len(held) > 0 && held[0].Rule != "" {
			t.Errorf("%v, %v", held, err)
		}
	})
}

// TestEscalateNewer checks that a further failure replaces what waits, and does not begin
// the steps again.
func TestEscalateNewer(t *testing.T) {
	t.Parallel()
	x := newTeam(t, 2)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", x.block("dedupe 1h", "escalate after 10m"))
		postWith(t, h, "/notify/k", "title=one&body=b&type=warning&incident=a")
		x.wantCounts(t, 1, 1, 0)
		until(t, "2000-01-01 00:01:00")
		one := postWith(t, h, "/notify/k", "title=two&body=b&type=failure&incident=a").queued(t)
		until(t, "2000-01-01 00:02:00")
		again := postWith(t, h, "/notify/k", "title=three&body=b&type=failure&incident=a").queued(t)
		if got, want := resultsOf(again.Results), []string{"skipped suppressed", "skipped suppressed", "skipped suppressed"}; !slices.Equal(got, want) || again.Results[2].By != one.ID {
			t.Errorf("results %q by %q", got, again.Results[2].By)
		}
		until(t, "2000-01-01 00:11:03")
		x.wantCounts(t, 2, 2, 1)
		if got := x.phones[1].toldTitles(); !slices.Equal(got, []string{"failure: two | b"}) || x.phones[1].links()[0] == "" {
			t.Errorf("told %q", got)
		}
		postWith(t, h, "/notify/k", "title=better&body=b&type=warning&incident=a")
		until(t, "2000-01-02 00:00:00")
		x.wantCounts(t, 3, 3, 2)
	})
}

// TestEscalateMistakes checks that an escalation that cannot work does not load, and that
// the error has the line and says what to write.
func TestEscalateMistakes(t *testing.T) {
	queue := "queue {\npath " + t.TempDir() + "\n}\n"
	public := "public_url " + publicURL + "\n"
	one, two, other := "url json://127.0.0.1:1/a 1:x\n", "url json://127.0.0.1:1/b 2:x\n", "url json://127.0.0.1:1/c y\n"
	for _, tt := range []struct{ global, key, want string }{
		{public, one + "escalate after 5m", "key k: escalate: rules keep what they hold"},
		{queue, one + "escalate after 5m", "key k: escalate: its messages have a link with which to acknowledge, and the gateway does not know its address; add public_url https://… "},
		{queue + public, other + "escalate after 5m", "key k: escalate: no URL of the key has a number in a tag, so that there are no steps"},
		{queue + public, one + two + "escalate after 5m 5m", "key k: escalate: there are 2 steps, the numbers [1 2], and so 1 durations follow after; there are 2"},
		{queue + public, one + two + "url json://127.0.0.1:1/d 3:x\nescalate after 5m", "key k: escalate: there are 3 steps, the numbers [1 2 3], and so 2 durations follow after; there are 1"},
		{queue + public, one + "escalate after 5m 6m", "key k: escalate: there is one step, so that one duration follows after; there are 2"},
		{queue + public, one + other + "escalate after 5m {\ntag y\n}", "key k: escalate: tag: the URL with the number 1 has no tag y"},
		{queue + public, one + other + "default_tag y\nescalate after 5m", "key k: escalate: default_tag selects no URL with a number"},
		{queue + "public_url alerts.example.com\n", one + "escalate after 5m", "public_url: it must be the address at which the gateway is reached"},
	} {
		_, err := loadCaddyfile(t, withOptions(tt.global+"key k {\n"+tt.key+"\n}", ""))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "Caddyfile:") {
			t.Errorf("%s%s: %v, want %s", tt.global, tt.key, err, tt.want)
		}
	}
	for _, text := range []string{
		"", "example.com", "ftp://example.com", "https://", "https://u@example.com", "https://example.com/?x", "https://example.com/#x", "https://example.com/notify",
		"https://example.com/../x", "https://exa mple.com", "https://{host}", "https://*.example.com", "javascript:alert(1)",
	} {
		if got, err := parsePublicURL(text); err == nil {
			t.Errorf("%q is taken as %q", text, got)
		}
	}
	for text, want := range map[string]string{"https://example.com/": "https://example.com", "http://10.0.0.1:8080/a/b/": "http://10.0.0.1:8080/a/b"} {
		if got, err := parsePublicURL(text); err != nil || got != want {
			t.Errorf("%q is taken as %q, %v", text, got, err)
		}
	}
}

// TestOnCallPage drives the Caddyfile of docs/on-call.md as the page says.
func TestOnCallPage(t *testing.T) {
	text, err := os.ReadFile("../docs/on-call.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "alerts.example.com {\n\tnotify {\n")
	block, _, found := strings.Cut(block, "\tstateless off\n\t}")
	if !found {
		t.Fatal("the page has no Caddyfile")
	}
	x := newTeam(t, 3)
	t.Setenv("OPS_TOKEN", "a-secret-of-the-test")
	t.Setenv("CHAT_URL", x.chat.NotifyURL())
	for i, name := range []string{"ANN_URL", "BOB_URL", "BOSS_URL"} {
		t.Setenv(name, x.phones[i].NotifyURL())
	}
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, block, "")
		send := func(form string) {
			t.Helper()
			if a := postWith(t, h, "/notify/ops", form, "Authorization", "Bearer a-secret-of-the-test"); a.status != http.StatusOK {
				t.Errorf("status %d %s", a.status, a.body)
			}
		}
		send("type=failure&incident=disk+db1&title=Disk+full&body=/var+has+2+MB+left")
		x.wantCounts(t, 1, 1, 0, 0)
		link := x.phones[0].links()[0]
		id, found := strings.CutPrefix(link, "https://alerts.example.com/notify/incidents/")
		if !found {
			t.Fatalf("the link is %q", link)
		}
		until(t, "2000-01-01 00:05:03")
		x.wantCounts(t, 1, 1, 1, 0)
		if w := askIncident(t, h, http.MethodPost, id, "by=Bob"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"by":"Bob (typed)"`) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		until(t, "2000-01-01 04:05:00")
		x.wantCounts(t, 1, 1, 1, 0)
		until(t, "2000-01-01 04:05:10") // still open
		x.wantCounts(t, 2, 2, 1, 0)
		send("type=success&incident=disk+db1&title=Disk+is+fine&body=ok")
		until(t, "2000-01-02 00:00:00")
		x.wantCounts(t, 3, 3, 2, 0)
		// Without anybody who acknowledges, each is told three times.
		send("type=failure&incident=disk+db2&body=full")
		until(t, "2000-01-03 00:00:00")
		x.wantCounts(t, 4, 6, 5, 3)
	})
}

// TestEscalateSilenced checks that a silence stops the steps, and that they begin again when
// it ends.
func TestEscalateSilenced(t *testing.T) {
	t.Parallel()
	x := newTeam(t, 2)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", x.block("escalate after 10m"))
		postWith(t, h, "/notify/k", "title=Disk&body=b&type=failure&incident=db1")
		silence := rules.Silence{Until: time.Now().Add(2 * time.Hour), Incident: "db1"}
		if err := h.app.gateway.Rooms.Alerts.Silences.Make(t.Context(), h.api.Resolved.Keys["k"], h.api.Site(), silence); err != nil {
			t.Fatal(err)
		}
		until(t, "2000-01-01 01:59:50")
		x.wantCounts(t, 1, 1, 0)
		until(t, "2000-01-01 02:01:10")
		x.wantCounts(t, 2, 2, 0)
		until(t, "2000-01-01 02:12:00")
		x.wantCounts(t, 2, 2, 1)
	})
}

// TestEscalateSilencedFromTheBeginning checks that the steps of an incident that opens
// during a silence begin with the first when it ends, and that nobody hears of one that is
// over by then.
func TestEscalateSilencedFromTheBeginning(t *testing.T) {
	t.Parallel()
	x := newTeam(t, 2)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", x.block("escalate after 10m"))
		silence := rules.Silence{ID: uuid.New(), Until: time.Now().Add(2 * time.Hour), Title: "disk"}
		if err := h.app.gateway.Rooms.Alerts.Silences.Make(t.Context(), h.api.Resolved.Keys["k"], h.api.Site(), silence); err != nil {
			t.Fatal(err)
		}
		a := postWith(t, h, "/notify/k", "title=Disk+full&body=b&type=failure&incident=db1").queued(t)
		if got, want := resultsOf(a.Results), []string{"queued silenced", "skipped silenced", "skipped silenced"}; !slices.Equal(got[:len(want)], want) {
			t.Errorf("results %q, want %q", got, want)
		}
		postWith(t, h, "/notify/k", "title=Disk+full&body=b&type=failure&incident=db2")
		until(t, "2000-01-01 01:00:00")
		postWith(t, h, "/notify/k", "title=Disk+fine&body=b&type=success&incident=db2")
		until(t, "2000-01-01 01:59:50")
		x.wantCounts(t, 0, 0, 0)
		until(t, "2000-01-01 02:01:10")
		x.wantCounts(t, 1, 1, 0)
		until(t, "2000-01-01 02:12:00")
		x.wantCounts(t, 1, 1, 1)
		postWith(t, h, "/notify/k", "title=Disk+fine&body=b&type=success&incident=db1")
		x.wantCounts(t, 2, 2, 2)
		until(t, "2000-01-01 06:00:00")
		x.wantCounts(t, 2, 2, 2)
	})
}

// TestEscalateFollowsSilence checks that a state which is worse, and whose title the silence
// does not match, begins no step either, and that its jobs end with the silence. A model has
// found this.
func TestEscalateFollowsSilence(t *testing.T) {
	t.Parallel()
	x := newTeam(t, 2)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", x.block("escalate after 10m"))
		silence := rules.Silence{ID: uuid.New(), Until: time.Now().Add(time.Hour), Title: "disk"}
		if err := h.app.gateway.Rooms.Alerts.Silences.Make(t.Context(), h.api.Resolved.Keys["k"], h.api.Site(), silence); err != nil {
			t.Fatal(err)
		}
		postWith(t, h, "/notify/k", "title=Disk+full&body=b&type=failure&incident=db1")
		a := postWith(t, h, "/notify/k", "title=Job+hangs&body=b&type=failure&incident=db1").queued(t)
		if got, want := resultsOf(a.Results), []string{"queued silenced", "skipped silenced", "skipped silenced"}; !slices.Equal(got[:len(want)], want) {
			t.Errorf("results %q, want %q", got, want)
		}
		until(t, "2000-01-01 00:59:50")
		x.wantCounts(t, 0, 0, 0)
		until(t, "2000-01-01 01:02:00")
		x.wantCounts(t, 1, 1, 0)
		postWith(t, h, "/notify/k", "title=Fine&body=b&type=success&incident=db1")
		x.wantCounts(t, 2, 2, 0)
		stopApp(t, h)
		newQueueGateway(t, dir, "", x.block("escalate after 20m"))
		until(t, "2000-01-01 06:00:00")
		x.wantCounts(t, 2, 2, 0)
	})
}

// TestEscalateKeepsHeld checks that a message that a step does not get leaves what other
// rules hold for it, and that a state is not told after a newer one that escalates.
func TestEscalateKeepsHeld(t *testing.T) {
	t.Parallel()
	x := newTeam(t, 2)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, managed, x.block("escalate after 5m", "rate 1/1h"))
		postWith(t, h, "/notify/k", alertForm("warning", "first", "a"))
		postWith(t, h, "/notify/k", alertForm("warning", "held", "b"))
		postWith(t, h, "/notify/k", alertForm("warning", "older", "c"))
		postWith(t, h, "/notify/k", alertForm("info", "more", "b"))
		silence(t, h, "for=10m&incident=c")
		postWith(t, h, "/notify/k", alertForm("failure", "newer", "c"))
		until(t, "2000-01-01 00:09:00")
		x.wantCounts(t, 1, 1, 0)
		until(t, "2000-01-01 00:11:30")
		x.wantCounts(t, 1, 2, 0)
		until(t, "2000-01-01 00:59:00")
		for _, incident := range incidentsOf(t, h) {
			if _, err := h.app.gateway.Rooms.Alerts.Incidents.Acknowledge(t.Context(), stored(t, h, incident), "Adam"); err != nil {
				t.Fatal(err)
			}
		}
		before := x.phones[0].count()
		until(t, "2000-01-01 01:01:00")
		got := x.phones[0].toldTitles()[before:]
		if want := []string{"warning: held"}; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	})
}

// TestResolveAcknowledged checks that who was told of an incident is told that somebody has
// resolved it, also if a milder state and a failure that nobody was told came in between.
func TestResolveAcknowledged(t *testing.T) {
	t.Parallel()
	x := newTeam(t, 2)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", x.block("escalate after 5m"))
		postWith(t, h, "/notify/k", alertForm("failure", "down", "a"))
		ackIncident(t, h, "Adam")
		postWith(t, h, "/notify/k", alertForm("warning", "slow", "a"))
		postWith(t, h, "/notify/k", alertForm("failure", "down again", "a"))
		x.wantCounts(t, 3, 2, 0)
		list := incidentsOf(t, h)
		if _, err := h.app.gateway.Rooms.Alerts.Incidents.Resolve(t.Context(), stored(t, h, list[0]), "Adam"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		x.wantCounts(t, 4, 3, 0)
	})
}

// TestEscalateOwnSilenced checks that a failure without an incident which comes in during
// a silence is told where it would have gone when that ends, step by step, and that nobody
// hears of one that was acknowledged meanwhile, or of a repetition.
func TestEscalateOwnSilenced(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, tag string
		silence   rules.Silence
		rule      string
		posts     int
		results   []string
		before    []int // what the chat and the phones have got shortly before the end
		end       []int // shortly after
		step      []int // after the second step
	}{
		{"all", "", rules.Silence{Tag: rules.AllTags}, "", 1, []string{"queued silenced", "queued escalating", "queued escalating"}, []int{0, 0, 0}, []int{1, 1, 0}, []int{1, 1, 1}},
		{"title", "", rules.Silence{Title: "disk"}, "", 1, []string{"queued silenced", "queued escalating", "queued escalating"}, []int{0, 0, 0}, []int{1, 1, 0}, []int{1, 1, 1}},
		{"repetition", "", rules.Silence{Title: "disk"}, "\ndedupe 1d", 2, []string{"skipped suppressed", "skipped suppressed", "skipped suppressed"}, []int{0, 0, 0}, []int{1, 1, 0}, []int{1, 1, 1}},
		{"only phones", "oncall", rules.Silence{Tag: rules.AllTags}, "", 1, []string{"queued escalating", "queued escalating"}, []int{0, 0, 0}, []int{0, 1, 0}, []int{0, 1, 1}},
		{"only the chat", "chat", rules.Silence{Tag: rules.AllTags}, "", 1, []string{"queued silenced"}, []int{0, 0, 0}, []int{1, 0, 0}, []int{1, 0, 0}},
		{"one step", "2:oncall", rules.Silence{Tag: rules.AllTags}, "", 1, []string{"queued escalating"}, []int{0, 0, 0}, []int{0, 0, 1}, []int{0, 0, 2}},
		{"silent phones", "", rules.Silence{Tag: "oncall"}, "", 1, []string{"delivered", "queued escalating", "queued escalating"}, []int{1, 0, 0}, []int{1, 1, 0}, []int{1, 1, 1}},
		{"silent chat", "", rules.Silence{Tag: "chat"}, "", 1, []string{"queued silenced", "delivered", "queued escalating"}, []int{0, 3, 3}, []int{1, 3, 3}, []int{1, 3, 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := newTeam(t, 2)
			dir := t.TempDir()
			inBubble(t, func(t *testing.T) {
				h := newQueueGateway(t, dir, "", x.block("escalate after 10m"+tt.rule))
				tt.silence.ID, tt.silence.Until = uuid.New(), time.Now().Add(2*time.Hour)
				if err := h.app.gateway.Rooms.Alerts.Silences.Make(t.Context(), h.api.Resolved.Keys["k"], h.api.Site(), tt.silence); err != nil {
					t.Fatal(err)
				}
				var got []string
				for range tt.posts {
					got = resultsOf(postWith(t, h, "/notify/k", "title=Disk+full&body=b&type=failure&tag="+tt.tag).queued(t).Results)
				}
				if !slices.Equal(got, tt.results) {
					t.Errorf("results %q, want %q", got, tt.results)
				}
				if n := len(incidentsOf(t, h)); n != 1 {
					t.Errorf("%d incidents are open", n)
				}
				until(t, "2000-01-01 00:30:00")
				stopApp(t, h)
				newQueueGateway(t, dir, "", x.block("escalate after 10m"+tt.rule))
				until(t, "2000-01-01 01:59:50")
				x.wantCounts(t, tt.before...)
				until(t, "2000-01-01 02:01:10")
				x.wantCounts(t, tt.end...)
				until(t, "2000-01-01 02:12:00")
				x.wantCounts(t, tt.step...)
			})
		})
	}
}

// TestEscalateOwnSilencedOver checks that nobody hears of a failure without an incident
// that is acknowledged or resolved before the silence ends.
func TestEscalateOwnSilencedOver(t *testing.T) {
	t.Parallel()
	x := newTeam(t, 2)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", x.block("escalate after 10m"))
		s := rules.Silence{ID: uuid.New(), Until: time.Now().Add(2 * time.Hour), Tag: rules.AllTags}
		if err := h.app.gateway.Rooms.Alerts.Silences.Make(t.Context(), h.api.Resolved.Keys["k"], h.api.Site(), s); err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, title := range []string{"a", "b"} {
			ids = append(ids, postWith(t, h, "/notify/k", "title="+title+"&body=b&type=failure").queued(t).ID)
		}
		for i, x := range incidentsOf(t, h) {
			change := h.app.gateway.Rooms.Alerts.Incidents.Acknowledge
			if i == 1 {
				change = h.app.gateway.Rooms.Alerts.Incidents.Resolve
			}
			if _, err := change(t.Context(), stored(t, h, x), "Eve"); err != nil {
				t.Fatal(err)
			}
		}
		until(t, "2000-01-01 06:00:00")
		x.wantCounts(t, 0, 0, 0)
		for _, id := range ids {
			if m := getMessage(t, h, http.MethodGet, id, typeJSON).queued(t); m.State != "cancelled" {
				t.Errorf("%+v", m)
			}
		}
	})
}

// TestEscalatePartlySilenced checks that the silence of the URLs of one tag leaves the steps
// of others alone, also if it begins after the alert, and that a step which is silent gives
// way to the next one.
func TestEscalatePartlySilenced(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string][2][]int{
		"chat": {{1, 1, 1, 0}, {1, 1, 1, 1}},
		"bob":  {{1, 1, 0, 1}, {1, 2, 0, 1}},
	} {
		x := newTeam(t, 3)
		dir := t.TempDir()
		inBubble(t, func(t *testing.T) {
			block := strings.NewReplacer("1:oncall", "1:ann", "2:oncall", "2:bob", "3:oncall", "3:eve").Replace(x.block("escalate after 10m 10m"))
			h := newQueueGateway(t, dir, "", block)
			postWith(t, h, "/notify/k", "title=Disk&body=b&type=failure&incident=db1")
			silence := rules.Silence{ID: uuid.New(), Until: time.Now().Add(24 * time.Hour), Tag: tag}
			if err := h.app.gateway.Rooms.Alerts.Silences.Make(t.Context(), h.api.Resolved.Keys["k"], h.api.Site(), silence); err != nil {
				t.Fatal(err)
			}
			x.wantCounts(t, 1, 1, 0, 0)
			until(t, "2000-01-01 00:11:00")
			x.wantCounts(t, want[0]...)
			until(t, "2000-01-01 00:22:00")
			x.wantCounts(t, want[1]...)
		})
	}
}
