package alerting_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestEscalate checks who is told when, in all rounds, what the results say, and that
// nothing follows the last round. A retry of the message once told all steps of all rounds at once.
func TestEscalate(t *testing.T) {
	t.Parallel()
	x := gatewaytest.NewTeam(t, 3)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, teamOptions(x, dir,
			rules.Rules{Escalate: &rules.Escalate{After: []time.Duration{5 * time.Minute, 15 * time.Minute}, Repeat: 2, Ack: 24 * time.Hour}}))
		resp := g.PostForm("/notify/k", "title=Down&body=secret&type=failure")
		a := resp.JSON(t)
		if got, want := resultsOf(a.Results), []string{
			"delivered", "delivered", "queued escalating",
			"queued escalating",
		}; !slices.Equal(got, want) {
			t.Errorf("results %q, want %q", got, want)
		}
		if r := a.Results[2]; r.Step != 2 || r.Next == nil || !r.Next.Equal(time.Now().Add(5*time.Minute)) {
			t.Errorf("the second step: %+v", r)
		}
		if r := a.Results[3]; r.Step != 3 || r.Next == nil || !r.Next.Equal(time.Now().Add(20*time.Minute)) {
			t.Errorf("the third step: %+v", r)
		}
		x.WantCounts(t, 1, 1, 0, 0)
		gatewaytest.Until(t, "2000-01-01 00:04:50")
		if n, err := g.Rooms().Outbox.Messages().Retry(t.Context(), messageID(t, a.ID)); n != (queue.Retried{}) || err != nil {
			t.Errorf("a retry sends %+v, %v", n, err)
		}
		time.Sleep(5 * time.Second)
		x.WantCounts(t, 1, 1, 0, 0)
		gatewaytest.Until(t, "2000-01-01 00:05:03")
		x.WantCounts(t, 1, 1, 1, 0)
		gatewaytest.Until(t, "2000-01-01 00:20:06")
		x.WantCounts(t, 1, 1, 1, 1)
		gatewaytest.Until(t, "2000-01-01 00:35:09") // the first one again
		x.WantCounts(t, 1, 2, 1, 1)
		gatewaytest.Until(t, "2000-01-01 02:00:00")
		x.WantCounts(t, 1, 2, 2, 2)
		list := g.ListIncidents("k")
		if len(list) != 1 || !list[0].Own || !list[0].Escalation.Exhausted || list[0].Title != "Down" {
			t.Fatalf("%+v", list)
		}
		if !ackIncident(t, g, "Adam") {
			t.Error("an incident whose steps have ended cannot be acknowledged")
		}
		if x := g.ListIncidents("k")[0]; x.IsOpen() {
			t.Error("an acknowledgement does not close an incident of its own")
		}
	})
}

// TestEscalateAcknowledged checks that nobody is paged after an acknowledgement, that
// further failures page nobody either, and that the steps begin again when it ends.
func TestEscalateAcknowledged(t *testing.T) {
	t.Parallel()
	x := gatewaytest.NewTeam(t, 2)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, teamOptions(x, dir,
			rules.Rules{Escalate: &rules.Escalate{After: []time.Duration{5 * time.Minute}, Repeat: 3, Ack: 4 * time.Hour}}))
		a := g.PostForm("/notify/k", "title=Disk&body=b&type=failure&incident=db1").JSON(t)
		gatewaytest.Until(t, "2000-01-01 00:03:00")
		if !ackIncident(t, g, "Adam") || ackIncident(t, g, "Eve") {
			t.Error("the first acknowledgement does not count, or the second does")
		}
		if _, r := g.State(a.ID); r.Status != notifier.Delivered {
			t.Errorf("%+v", r)
		}
		m, err := g.Rooms().Outbox.Queue.Get(t.Context(), messageID(t, a.ID))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := resultsOf(queued.Message(m).Results)[:3],
			[]string{"delivered", "delivered", "skipped acknowledged"}; !slices.Equal(got, want) {
			t.Errorf("results %q, want %q", got, want)
		}
		gatewaytest.Until(t, "2000-01-01 01:00:00")
		x.WantCounts(t, 1, 1, 0)
		b := g.PostForm("/notify/k", "title=Disk&body=worse&type=failure&incident=db1").JSON(t)
		if got, want := resultsOf(b.Results), []string{"delivered", "skipped acknowledged", "skipped acknowledged"}; !slices.Equal(got, want) {
			t.Errorf("results %q, want %q", got, want)
		}
		gatewaytest.Until(t, "2000-01-01 04:02:30")
		x.WantCounts(t, 2, 1, 0)
		gatewaytest.Until(t, "2000-01-01 04:03:10")
		x.WantCounts(t, 3, 2, 0)
		if got := x.Phones[0].Told(); got[1] != "failure: Still open: Disk | This is open since 1 January 00:00 UTC. Adam acknowledged it at "+
			"1 January 00:03 UTC." || !strings.HasPrefix(x.Phones[0].Links()[1], gatewaytest.PublicURL+"/notify/incidents/") {
			t.Errorf("told %q", got[1])
		}
		gatewaytest.Until(t, "2000-01-01 04:08:15")
		x.WantCounts(t, 3, 2, 1)
		if !ackIncident(t, g, "Eve") {
			t.Error("it cannot be acknowledged again")
		}
		gatewaytest.Until(t, "2000-01-01 05:00:00")
		g.PostForm("/notify/k", gatewaytest.AlertForm("success", "up", "db1"))
		gatewaytest.Until(t, "2000-01-01 09:30:00") // the time of the second acknowledgement has passed
		x.WantCounts(t, 4, 3, 2)
	})
}

// TestEscalateResolved checks that a resolution is told to those who were told of the
// incident, and that it ends the steps.
func TestEscalateResolved(t *testing.T) {
	t.Parallel()
	x := gatewaytest.NewTeam(t, 3)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, teamOptions(x, dir,
			rules.Rules{
				Escalate: escalate(5*time.Minute, 15*time.Minute),
				Quiet: []rules.Quiet{{
					Window: window("00:00-23:00 UTC"),
					Scope:  rules.Scope{Types: []notifier.Type{notifier.Info, notifier.Warning, notifier.Success, notifier.Failure}},
				}},
			}))
		g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", "db1"))
		gatewaytest.Until(t, "2000-01-01 00:06:00")
		g.PostForm("/notify/k", gatewaytest.AlertForm("info", "looking", "db1"))
		gatewaytest.Until(t, "2000-01-01 00:10:00")
		a := g.PostForm("/notify/k", gatewaytest.AlertForm("success", "up", "db1")).JSON(t)
		if got, want := resultsOf(a.Results)[3], "skipped escalating"; got != want {
			t.Errorf("who was not told: %q, want %q", got, want)
		}
		gatewaytest.Until(t, "2000-01-01 22:50:00")
		x.WantCounts(t, 2, 2, 2, 0)                 // what passed a window is resolved through it
		gatewaytest.Until(t, "2000-01-01 23:59:00") // outside the window
		if n := x.Phones[2].Count(); n != 0 {
			t.Errorf("the third phone got %d messages", n)
		}
		if x := g.ListIncidents("k"); len(x) != 1 || x[0].IsOpen() {
			t.Errorf("%+v", x)
		}
	})
}

// TestEscalateFailed checks that a step that reaches nobody begins the next one at once,
// and that other types go to the first step only.
func TestEscalateFailed(t *testing.T) {
	t.Parallel()
	x := gatewaytest.NewTeam(t, 2)
	x.Phones[0].Answer(http.StatusBadRequest)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, teamOptions(x, dir, rules.Rules{Escalate: escalate(time.Hour)}))
		g.PostForm("/notify/k", "body=b&type=failure")
		gatewaytest.Until(t, "2000-01-01 00:00:10")
		x.WantCounts(t, 1, 1, 1)
		a := g.PostForm("/notify/k", "body=note").JSON(t)
		if got, want := resultsOf(a.Results)[2], "skipped escalating"; got != want {
			t.Errorf("the second step: %q, want %q", got, want)
		}
		x.WantCounts(t, 2, 2, 1)
	})
}

// TestEscalateRestart checks that the steps go on after a restart, and that an incident
// that escalates no more releases nothing twice.
func TestEscalateRestart(t *testing.T) {
	t.Parallel()
	x := gatewaytest.NewTeam(t, 2)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, teamOptions(x, dir, rules.Rules{Escalate: escalate(10 * time.Minute)}))
		g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", "db1"))
		g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", "db2"))
		gatewaytest.Until(t, "2000-01-01 00:05:00")
		g.Stop()
		gatewaytest.Until(t, "2000-01-01 00:12:00")
		g = gatewaytest.New(t, teamOptions(x, dir, rules.Rules{Escalate: escalate(10 * time.Minute)}))
		gatewaytest.Until(t, "2000-01-01 00:12:05")
		x.WantCounts(t, 2, 2, 2)
		g.Stop()
		g = gatewaytest.New(t, teamOptions(x, dir, rules.Rules{Dedupe: &rules.Dedupe{Window: time.Minute, Scope: rules.Scope{Tag: "chat"}}}))
		gatewaytest.Until(t, "2000-01-02 00:00:00")
		x.WantCounts(t, 2, 2, 2) // everybody was told
		g.Stop()
	})
}

// TestEscalateRemoved checks that without the rule, those who were not told are told once.
func TestEscalateRemoved(t *testing.T) {
	t.Parallel()
	x := gatewaytest.NewTeam(t, 3)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, teamOptions(x, dir, rules.Rules{Escalate: escalate(10*time.Minute, 10*time.Minute)}))
		g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", "db1"))
		gatewaytest.Until(t, "2000-01-01 00:15:00")
		g.Stop()
		g = gatewaytest.New(t, teamOptions(x, dir, rules.Rules{Dedupe: &rules.Dedupe{Window: time.Minute, Scope: rules.Scope{Tag: "chat"}}}))
		gatewaytest.Until(t, "2000-01-01 04:00:00")
		x.WantCounts(t, 1, 1, 1, 1)
		if held, err := g.Rooms().Outbox.Queue.List(t.Context(), rules.StepJob{}.Job, 10, 2); err != nil || len(held) > 0 && held[0].Rule != "" {
			t.Errorf("%v, %v", held, err)
		}
	})
}

// TestEscalateNewer checks that a further failure replaces what waits, and does not begin
// the steps again.
func TestEscalateNewer(t *testing.T) {
	t.Parallel()
	x := gatewaytest.NewTeam(t, 2)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, teamOptions(x, dir, rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}, Escalate: escalate(10 * time.Minute)}))
		g.PostForm("/notify/k", "title=one&body=b&type=warning&incident=a")
		x.WantCounts(t, 1, 1, 0)
		gatewaytest.Until(t, "2000-01-01 00:01:00")
		one := g.PostForm("/notify/k", "title=two&body=b&type=failure&incident=a").JSON(t)
		gatewaytest.Until(t, "2000-01-01 00:02:00")
		again := g.PostForm("/notify/k", "title=three&body=b&type=failure&incident=a").JSON(t)
		if got, want := resultsOf(again.Results), []string{"skipped suppressed", "skipped suppressed", "skipped suppressed"}; !slices.Equal(got,
			want) || again.Results[2].By != one.ID {
			t.Errorf("results %q by %q", got, again.Results[2].By)
		}
		gatewaytest.Until(t, "2000-01-01 00:11:03")
		x.WantCounts(t, 2, 2, 1)
		if got := x.Phones[1].Told(); !slices.Equal(got, []string{"failure: two | b"}) || x.Phones[1].Links()[0] == "" {
			t.Errorf("told %q", got)
		}
		g.PostForm("/notify/k", "title=better&body=b&type=warning&incident=a")
		gatewaytest.Until(t, "2000-01-01 03:00:00")
		x.WantCounts(t, 3, 3, 2)
	})
}

// TestEscalateSilenced checks that a silence stops the steps, and that they begin again when
// it ends.
func TestEscalateSilenced(t *testing.T) {
	t.Parallel()
	x := gatewaytest.NewTeam(t, 2)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, teamOptions(x, dir, rules.Rules{Escalate: escalate(10 * time.Minute)}))
		g.PostForm("/notify/k", "title=Disk&body=b&type=failure&incident=db1")
		silenceKey(t, g, rules.Silence{Until: time.Now().Add(2 * time.Hour), Incident: "db1"})
		gatewaytest.Until(t, "2000-01-01 01:59:50")
		x.WantCounts(t, 1, 1, 0)
		gatewaytest.Until(t, "2000-01-01 02:01:10")
		x.WantCounts(t, 2, 2, 0)
		gatewaytest.Until(t, "2000-01-01 02:12:00")
		x.WantCounts(t, 2, 2, 1)
	})
}

// TestEscalateSilencedFromTheBeginning checks that the steps of an incident that opens during a
// silence begin with the first step when the silence ends, unless the incident is over by then.
func TestEscalateSilencedFromTheBeginning(t *testing.T) {
	t.Parallel()
	x := gatewaytest.NewTeam(t, 2)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, teamOptions(x, dir, rules.Rules{Escalate: escalate(10 * time.Minute)}))
		silenceKey(t, g, rules.Silence{ID: uuid.New(), Until: time.Now().Add(2 * time.Hour), Title: "disk"})
		a := g.PostForm("/notify/k", "title=Disk+full&body=b&type=failure&incident=db1").JSON(t)
		if got, want := resultsOf(a.Results), []string{
			"queued silenced", "skipped silenced",
			"skipped silenced",
		}; !slices.Equal(got[:len(want)], want) {
			t.Errorf("results %q, want %q", got, want)
		}
		g.PostForm("/notify/k", "title=Disk+full&body=b&type=failure&incident=db2")
		gatewaytest.Until(t, "2000-01-01 01:00:00")
		g.PostForm("/notify/k", "title=Disk+fine&body=b&type=success&incident=db2")
		gatewaytest.Until(t, "2000-01-01 01:59:50")
		x.WantCounts(t, 0, 0, 0)
		gatewaytest.Until(t, "2000-01-01 02:01:10")
		x.WantCounts(t, 1, 1, 0)
		gatewaytest.Until(t, "2000-01-01 02:12:00")
		x.WantCounts(t, 1, 1, 1)
		g.PostForm("/notify/k", "title=Disk+fine&body=b&type=success&incident=db1")
		x.WantCounts(t, 2, 2, 2)
		gatewaytest.Until(t, "2000-01-01 06:00:00")
		x.WantCounts(t, 2, 2, 2)
	})
}

// TestEscalateFollowsSilence checks that a worse state begins no step during a silence, even if the
// silence does not match its title, and that its jobs end with the silence.
func TestEscalateFollowsSilence(t *testing.T) {
	t.Parallel()
	x := gatewaytest.NewTeam(t, 2)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, teamOptions(x, dir, rules.Rules{Escalate: escalate(10 * time.Minute)}))
		silenceKey(t, g, rules.Silence{ID: uuid.New(), Until: time.Now().Add(time.Hour), Title: "disk"})
		g.PostForm("/notify/k", "title=Disk+full&body=b&type=failure&incident=db1")
		a := g.PostForm("/notify/k", "title=Job+hangs&body=b&type=failure&incident=db1").JSON(t)
		if got, want := resultsOf(a.Results), []string{
			"queued silenced", "skipped silenced",
			"skipped silenced",
		}; !slices.Equal(got[:len(want)], want) {
			t.Errorf("results %q, want %q", got, want)
		}
		gatewaytest.Until(t, "2000-01-01 00:59:50")
		x.WantCounts(t, 0, 0, 0)
		gatewaytest.Until(t, "2000-01-01 01:02:00")
		x.WantCounts(t, 1, 1, 0)
		g.PostForm("/notify/k", "title=Fine&body=b&type=success&incident=db1")
		x.WantCounts(t, 2, 2, 0)
		g.Stop()
		gatewaytest.New(t, teamOptions(x, dir, rules.Rules{Escalate: escalate(20 * time.Minute)}))
		gatewaytest.Until(t, "2000-01-01 06:00:00")
		x.WantCounts(t, 2, 2, 0)
	})
}

// TestEscalateKeepsHeld checks that a message which a step does not get leaves what other rules
// hold for the step, and that a state is not told after a newer one that escalates.
func TestEscalateKeepsHeld(t *testing.T) {
	t.Parallel()
	x := gatewaytest.NewTeam(t, 2)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t,
			withManagers(teamOptions(x, dir, rules.Rules{Escalate: escalate(5 * time.Minute), Rate: []rules.Rate{{Count: 1, Per: time.Hour}}})))
		g.PostForm("/notify/k", gatewaytest.AlertForm("warning", "first", "a"))
		g.PostForm("/notify/k", gatewaytest.AlertForm("warning", "held", "b"))
		g.PostForm("/notify/k", gatewaytest.AlertForm("warning", "older", "c"))
		g.PostForm("/notify/k", gatewaytest.AlertForm("info", "more", "b"))
		g.AddSilence("k", "for=10m&incident=c")
		g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "newer", "c"))
		gatewaytest.Until(t, "2000-01-01 00:09:00")
		x.WantCounts(t, 1, 1, 0)
		gatewaytest.Until(t, "2000-01-01 00:11:30")
		x.WantCounts(t, 1, 2, 0)
		gatewaytest.Until(t, "2000-01-01 00:59:00")
		for _, incident := range g.ListIncidents("k") {
			if _, _, err := g.Rooms().Alerts.Incidents.Acknowledge(t.Context(), stored(t, g, incident), message.Who{User: "Adam"}); err != nil {
				t.Fatal(err)
			}
		}
		before := x.Phones[0].Count()
		gatewaytest.Until(t, "2000-01-01 01:01:00")
		got := x.Phones[0].Told()[before:]
		if want := []string{"warning: held"}; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	})
}

// TestResolveAcknowledged checks that who was told of an incident is told that somebody has
// resolved it, also if a milder state and a failure that nobody was told came in between.
func TestResolveAcknowledged(t *testing.T) {
	t.Parallel()
	x := gatewaytest.NewTeam(t, 2)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, teamOptions(x, dir, rules.Rules{Escalate: escalate(5 * time.Minute)}))
		g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", "a"))
		ackIncident(t, g, "Adam")
		g.PostForm("/notify/k", gatewaytest.AlertForm("warning", "slow", "a"))
		g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down again", "a"))
		x.WantCounts(t, 3, 2, 0)
		list := g.ListIncidents("k")
		if _, _, err := g.Rooms().Alerts.Incidents.Resolve(t.Context(), stored(t, g, list[0]), message.Who{User: "Adam"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		x.WantCounts(t, 4, 3, 0)
	})
}

// TestEscalateOwnSilenced checks that a failure without an incident that comes in during a silence
// is told step by step after the silence, where it would have gone. Nobody is told if it was
// acknowledged meanwhile, or of a repetition.
func TestEscalateOwnSilenced(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, tag string
		silence   rules.Silence
		dedupe    *rules.Dedupe
		posts     int
		results   []string
		before    []int // what the chat and the phones have got shortly before the end
		end       []int // shortly after
		step      []int // after the second step
	}{
		{
			"all", "",
			rules.Silence{Tag: rules.AllTags},
			nil, 1,
			[]string{"queued silenced", "queued escalating", "queued escalating"},
			[]int{0, 0, 0},
			[]int{1, 1, 0},
			[]int{1, 1, 1},
		},
		{
			"title", "",
			rules.Silence{Title: "disk"},
			nil, 1,
			[]string{"queued silenced", "queued escalating", "queued escalating"},
			[]int{0, 0, 0},
			[]int{1, 1, 0},
			[]int{1, 1, 1},
		},
		{
			"repetition", "",
			rules.Silence{Title: "disk"},
			&rules.Dedupe{Window: 24 * time.Hour}, 2,
			[]string{"skipped suppressed", "skipped suppressed", "skipped suppressed"},
			[]int{0, 0, 0},
			[]int{1, 1, 0},
			[]int{1, 1, 1},
		},
		{
			"only phones", "oncall",
			rules.Silence{Tag: rules.AllTags},
			nil, 1,
			[]string{"queued escalating", "queued escalating"},
			[]int{0, 0, 0},
			[]int{0, 1, 0},
			[]int{0, 1, 1},
		},
		{
			"only the chat", "chat",
			rules.Silence{Tag: rules.AllTags},
			nil, 1,
			[]string{"queued silenced"},
			[]int{0, 0, 0},
			[]int{1, 0, 0},
			[]int{1, 0, 0},
		},
		{
			"one step", "2:oncall",
			rules.Silence{Tag: rules.AllTags},
			nil, 1,
			[]string{"queued escalating"},
			[]int{0, 0, 0},
			[]int{0, 0, 1},
			[]int{0, 0, 2},
		},
		{
			"silent phones", "",
			rules.Silence{Tag: "oncall"},
			nil, 1,
			[]string{"delivered", "queued escalating", "queued escalating"},
			[]int{1, 0, 0},
			[]int{1, 1, 0},
			[]int{1, 1, 1},
		},
		{
			"silent chat", "",
			rules.Silence{Tag: "chat"},
			nil, 1,
			[]string{"queued silenced", "delivered", "queued escalating"},
			[]int{0, 3, 3},
			[]int{1, 3, 3},
			[]int{1, 3, 3},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := gatewaytest.NewTeam(t, 2)
			dir := t.TempDir()
			gatewaytest.InBubble(t, func(t *testing.T) {
				g := gatewaytest.New(t, teamOptions(x, dir, rules.Rules{Escalate: escalate(10 * time.Minute), Dedupe: tt.dedupe}))
				tt.silence.ID, tt.silence.Until = uuid.New(), time.Now().Add(2*time.Hour)
				silenceKey(t, g, tt.silence)
				var got []string
				for range tt.posts {
					got = resultsOf(g.PostForm("/notify/k", "title=Disk+full&body=b&type=failure&tag="+tt.tag).JSON(t).Results)
				}
				if !slices.Equal(got, tt.results) {
					t.Errorf("results %q, want %q", got, tt.results)
				}
				if n := len(g.ListIncidents("k")); n != 1 {
					t.Errorf("%d incidents are open", n)
				}
				gatewaytest.Until(t, "2000-01-01 00:30:00")
				g.Stop()
				gatewaytest.New(t, teamOptions(x, dir, rules.Rules{Escalate: escalate(10 * time.Minute), Dedupe: tt.dedupe}))
				gatewaytest.Until(t, "2000-01-01 01:59:50")
				x.WantCounts(t, tt.before...)
				gatewaytest.Until(t, "2000-01-01 02:01:10")
				x.WantCounts(t, tt.end...)
				gatewaytest.Until(t, "2000-01-01 02:12:00")
				x.WantCounts(t, tt.step...)
			})
		})
	}
}

// TestEscalateOwnSilencedOver checks that nobody hears of a failure without an incident
// that is acknowledged or resolved before the silence ends.
func TestEscalateOwnSilencedOver(t *testing.T) {
	t.Parallel()
	x := gatewaytest.NewTeam(t, 2)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, teamOptions(x, dir, rules.Rules{Escalate: escalate(10 * time.Minute)}))
		silenceKey(t, g, rules.Silence{ID: uuid.New(), Until: time.Now().Add(2 * time.Hour), Tag: rules.AllTags})
		var ids []string
		for _, title := range []string{"a", "b"} {
			ids = append(ids, g.PostForm("/notify/k", "title="+title+"&body=b&type=failure").JSON(t).ID)
		}
		for i, x := range g.ListIncidents("k") {
			change := g.Rooms().Alerts.Incidents.Acknowledge
			if i == 1 {
				change = g.Rooms().Alerts.Incidents.Resolve
			}
			if _, _, err := change(t.Context(), stored(t, g, x), message.Who{User: "Eve"}); err != nil {
				t.Fatal(err)
			}
		}
		gatewaytest.Until(t, "2000-01-01 06:00:00")
		x.WantCounts(t, 0, 0, 0)
		for _, id := range ids {
			if m := g.Message(http.MethodGet, id, gatewaytest.TypeJSON).JSON(t); m.State != "cancelled" {
				t.Errorf("%+v", m)
			}
		}
	})
}

// TestEscalatePartlySilenced checks that a silence for one tag leaves the steps of other tags
// alone, also if it begins after the alert, and that a silent step gives way to the next one.
func TestEscalatePartlySilenced(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string][2][]int{
		"chat": {{1, 1, 1, 0}, {1, 1, 1, 1}},
		"bob":  {{1, 1, 0, 1}, {1, 2, 0, 1}},
	} {
		x := gatewaytest.NewTeam(t, 3)
		dir := t.TempDir()
		gatewaytest.InBubble(t, func(t *testing.T) {
			o := teamOptions(x, dir, rules.Rules{Escalate: escalate(10*time.Minute, 10*time.Minute)})
			for i, tag := range []string{"1:ann", "2:bob", "3:eve"} {
				o.Global.Keys[0].URLs[i+1].Tags = []string{tag}
			}
			g := gatewaytest.New(t, o)
			g.PostForm("/notify/k", "title=Disk&body=b&type=failure&incident=db1")
			silenceKey(t, g, rules.Silence{ID: uuid.New(), Until: time.Now().Add(24 * time.Hour), Tag: tag})
			x.WantCounts(t, 1, 1, 0, 0)
			gatewaytest.Until(t, "2000-01-01 00:11:00")
			x.WantCounts(t, want[0]...)
			gatewaytest.Until(t, "2000-01-01 00:22:00")
			x.WantCounts(t, want[1]...)
		})
	}
}
