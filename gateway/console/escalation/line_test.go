package escalation

import (
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
	_ "github.com/caddy-notify/caddy-notify/notifier/services"
)

// at returns a time of the night on the clock.
func at(clock string) time.Time {
	t, err := time.Parse("2006-01-02 15:04", "2026-03-01 "+clock)
	if err != nil {
		panic(err)
	}
	return t
}

// key returns a key that tells Ann, five minutes later Bob, 14 minutes later the boss, and 14 minutes later Ann again.
func key(t *testing.T) *site.Key {
	t.Helper()
	k := &site.Key{KeySettings: site.KeySettings{
		Rules: &rules.Rules{Escalate: &rules.Escalate{After: []time.Duration{5 * time.Minute, 14 * time.Minute}, Repeat: 3}},
	}}
	for _, x := range []string{
		"json://chat.example chat", "json://ann.example 1:oncall", "json://bob.example 2:oncall", "json://boss.example 3:boss",
	} {
		url, tag, _ := strings.Cut(x, " ")
		d, err := notifier.Parse(url, nil)
		if err != nil {
			t.Fatal(err)
		}
		k.Targets = append(k.Targets, notifier.Target{Destination: d, Tags: []string{tag}})
	}
	return k
}

// open returns an incident that opened at 02:30, while steps from the one given on wait in the rounds.
func open(rounds int, next string, nextRound, nextStep int, begun ...rules.BegunStep) *rules.Incident {
	x := &rules.Incident{Name: "db1", State: notifier.Open, Opened: at("02:30"), Begun: begun}
	x.Escalation = rules.Escalation{Round: 1, Targets: []rules.StepTarget{{Step: 0, Hash: "x"}, {Step: 1, Hash: "a"}, {Step: 2}, {Step: 3}}}
	if next != "" {
		x.Escalation.Next = at(next)
	}
	if n := len(begun); n > 0 {
		x.Escalation.Round, x.Escalation.Step = begun[n-1].Round, begun[n-1].Step
	}
	for round := nextRound; round <= rounds; round++ {
		for step := 1; step <= 3; step++ {
			if round > nextRound || step >= nextStep {
				x.Escalation.Waiting = append(x.Escalation.Waiting, rules.StepJob{Round: round, Step: step})
			}
		}
	}
	return x
}

func begun(round, step int, clock string, outcome rules.StepOutcome) rules.BegunStep {
	return rules.BegunStep{Round: round, Step: step, At: at(clock), Outcome: outcome}
}

// text returns a line in words: a point, and a bar in front of it if a silence leads to it.
func text(l *view.Line) string {
	if l == nil {
		return ""
	}
	var points []string
	silent := false
	for _, p := range l.Points {
		words := []string{string(p.Kind)}
		for _, w := range []string{p.Who, p.Words} {
			if w != "" {
				words = append(words, w)
			}
		}
		if !p.At.IsZero() {
			words = append(words, p.Clock)
		}
		if p.Note != "" {
			words = append(words, "("+p.Note+")")
		}
		if p.Band != silent {
			words = append(words, "WITHOUT A BAND")
		}
		if silent {
			words[0] = "=" + words[0]
		}
		silent = p.Silent
		points = append(points, strings.Join(words, " "))
	}
	return strings.NewReplacer("JSON ", "", ".example", "", " (1:oncall)", "", " (2:oncall)", "", " (3:boss)", "").
		Replace(strings.Join(points, " | "))
}

// silence is a silence of some steps, all if there are none.
type silence struct {
	from, until string
	steps       []int
}

// keeps is [Escalation.Keeps] for silences.
func keeps(all []silence) func(step int, at time.Time) *rules.Silence {
	return func(step int, now time.Time) (first *rules.Silence) {
		for _, s := range all {
			of := len(s.steps) == 0
			for _, n := range s.steps {
				of = of || n == step
			}
			x := rules.Silence{From: at(s.from), Until: at(s.until)}
			if of && !now.Before(x.From) && now.Before(x.Until) && (first == nil || x.Until.After(first.Until)) {
				first = &x
			}
		}
		return first
	}
}

// TestLine checks the line of an incident in each state that it can be in.
func TestLine(t *testing.T) {
	ann, bob, boss := begun(1, 1, "02:30", rules.StepTold), begun(1, 2, "02:35", rules.StepTold), begun(1, 3, "02:49", rules.StepTold)
	with := func(x *rules.Incident, f func(x *rules.Incident)) *rules.Incident {
		f(x)
		return x
	}
	acknowledged := func(until string) func(*rules.Incident) {
		return func(x *rules.Incident) {
			x.Escalation.Waiting, x.Escalation.Next = nil, time.Time{}
			x.Acknowledged = rules.Acknowledgement{By: "Jo", At: at("02:33")}
			if until != "" {
				x.Acknowledged.Until = at(until)
			}
		}
	}
	resolved := func(by string) func(*rules.Incident) {
		return func(x *rules.Incident) {
			x.State, x.Resolved, x.ResolvedBy, x.Escalation = notifier.Resolved, at("02:40"), by, rules.Escalation{}
		}
	}
	own := func(x *rules.Incident) { x.Own = true }
	silenced := func(x *rules.Incident) { x.Escalation.Silenced, x.Escalation.Waiting = true, nil }
	for name, c := range map[string]struct {
		x        *rules.Incident
		now      string
		silences []silence
		want     string
	}{
		"no steps": {&rules.Incident{State: notifier.Open}, "02:31", nil, ""},
		"the first step is told": {
			open(3, "02:35", 1, 2, ann), "02:31", nil,
			"told ann told 02:30 | now | next bob 02:35 | later boss 02:49 | again ann 03:03 (round 2 of 3)",
		},
		"the first step is being sent": {
			open(1, "02:35", 1, 2, begun(1, 1, "02:30", rules.StepSending)), "02:31", nil,
			"sending ann being sent 02:30 | now | next bob 02:35 | later boss 02:49 | nobody then nobody 03:03",
		},
		"the first step has failed, so the next one began at once": {
			open(1, "02:45", 1, 3, begun(1, 1, "02:30", rules.StepFailed), begun(1, 2, "02:31", rules.StepTold)), "02:32", nil,
			"failed ann not reached 02:30 | told bob told 02:31 | now | next boss 02:45 | nobody then nobody 02:59",
		},
		"a hold": {
			open(1, "02:40", 1, 1), "02:31", nil,
			"now | next ann 02:40 | later bob 02:45 | later boss 02:59 | nobody then nobody 03:13",
		},
		"a second round": {
			open(3, "03:08", 2, 2, ann, bob, boss, begun(2, 1, "03:03", rules.StepTold)), "03:04", nil,
			"told ann told 02:30 | told bob told 02:35 | told boss told 02:49 | told ann told 03:03 (round 2) | now | " +
				"next bob 03:08 | later boss 03:22 | again ann 03:36 (round 3 of 3)",
		},
		"the last step of a round": {
			open(2, "03:03", 2, 1, ann, bob, boss), "02:50", nil,
			"told ann told 02:30 | told bob told 02:35 | told boss told 02:49 | now | next ann 03:03 (round 2 of 2)",
		},
		"the last step of all": {
			open(0, "03:03", 1, 1, ann, bob, boss), "02:50", nil,
			"told ann told 02:30 | told bob told 02:35 | told boss told 02:49 | now | nobody then nobody 03:03",
		},
		"all rounds have ended": {
			with(open(0, "", 1, 1, ann, bob, boss), func(x *rules.Incident) { x.Escalation.Exhausted, x.Escalation.EndedAt = true, at("03:03") }),
			"03:30", nil,
			"told ann told 02:30 | told bob told 02:35 | told boss told 02:49 | nobody all rounds ended 03:03 | now",
		},
		"acknowledged": {
			with(open(3, "", 1, 2, ann), acknowledged("")), "02:34", nil,
			"told ann told 02:30 | taken Jo acknowledged 02:33 | untold bob not told | untold boss not told | now",
		},
		"acknowledged, for a time": {
			with(open(3, "", 1, 2, ann), acknowledged("06:33")), "02:34", nil,
			"told ann told 02:30 | taken Jo acknowledged 02:33 | untold bob not told | untold boss not told | now | " +
				"again ann 06:33 (if it is still open)",
		},
		"acknowledged until within a silence": {
			with(open(3, "", 1, 2, ann), acknowledged("06:33")), "02:34",
			[]silence{{"06:00", "08:00", nil}},
			"told ann told 02:30 | taken Jo acknowledged 02:33 | untold bob not told | untold boss not told | now | " +
				"begins silence begins 06:00 | =ends silence ends 08:00 | again ann 08:00 (if it is still open)",
		},
		"acknowledged while a step was being sent": {
			with(open(3, "", 1, 2, begun(1, 1, "02:30", rules.StepSending)), acknowledged("")), "02:34", nil,
			"untold ann not told 02:30 | taken Jo acknowledged 02:33 | untold bob not told | untold boss not told | now",
		},
		"an incident of its own, acknowledged": {
			with(with(with(open(3, "", 1, 2, ann), acknowledged("")), resolved("Jo")), own), "02:50", nil,
			"told ann told 02:30 | taken Jo acknowledged 02:33 | untold bob not told | untold boss not told",
		},
		"resolved by a message": {
			with(open(3, "02:49", 1, 3, ann, bob), resolved("")), "02:50", nil,
			"told ann told 02:30 | told bob told 02:35 | resolved resolved 02:40 | untold boss not told",
		},
		"resolved by somebody, after an acknowledgement": {
			with(with(open(3, "", 1, 2, ann), acknowledged("")), resolved("Eve")), "02:50", nil,
			"told ann told 02:30 | taken Jo acknowledged 02:33 | resolved Eve resolved 02:40 | untold bob not told | untold boss not told",
		},
		"it became a warning": {
			with(open(3, "", 1, 2, ann), func(x *rules.Incident) { x.Escalation = rules.Escalation{} }), "02:34", nil,
			"told ann told 02:30 | now",
		},
		"a silence that ends before the next step": {
			open(1, "02:35", 1, 2, ann), "02:31",
			[]silence{{"02:20", "02:33", nil}},
			"begins silent since 02:20 | =told ann told 02:30 | =now | =ends silence ends 02:33 | next bob 02:35 | later boss 02:49 | " +
				"nobody then nobody 03:03",
		},
		"a silence that stops what waits": {
			open(3, "02:35", 1, 2, ann), "02:32",
			[]silence{{"02:31", "04:35", nil}},
			"told ann told 02:30 | begins silent since 02:31 | =now | =ends silence ends 04:35 | again ann 04:35 (if it is still open)",
		},
		"a silence that has stopped the steps": {
			with(open(3, "02:36", 1, 1, ann), silenced), "02:36",
			[]silence{{"02:31", "04:35", nil}},
			"told ann told 02:30 | begins silent since 02:31 | =now | =ends silence ends 04:35 | again ann 04:35 (if it is still open)",
		},
		"a silence that has just ended": {
			with(open(3, "02:37", 1, 1, ann), silenced), "02:36", nil,
			"told ann told 02:30 | now | again ann 02:37 (if it is still open)",
		},
		"a silence from before the beginning": {
			with(open(3, "02:36", 1, 1), silenced), "02:35",
			[]silence{{"02:00", "08:00", nil}},
			"begins silent since 02:00 | =now | =ends silence ends 08:00 | again ann 08:00 (if it is still open)",
		},
		"a silence after another": {
			with(open(3, "02:36", 1, 1), silenced), "02:35",
			[]silence{{"02:00", "03:00", nil}, {"03:00", "08:00", nil}},
			"begins silent since 02:00 | =now | =ends silence ends 08:00 | again ann 08:00 (if it is still open)",
		},
		"a silence of an incident of its own goes on where it was": {
			with(open(3, "02:35", 1, 2, ann), own), "02:32",
			[]silence{{"02:31", "04:35", nil}},
			"told ann told 02:30 | begins silent since 02:31 | =now | =ends silence ends 04:35 | again bob 04:35 (if it is still open)",
		},
		"a planned silence": {
			open(3, "02:35", 1, 2, ann), "02:32",
			[]silence{{"02:40", "04:00", nil}},
			"told ann told 02:30 | now | next bob 02:35 | begins silence begins 02:40 | =ends silence ends 04:00 | " +
				"again ann 04:00 (if it is still open)",
		},
		"a planned silence between two steps keeps nothing back": {
			open(1, "02:35", 1, 2, ann), "02:32",
			[]silence{{"02:36", "02:48", nil}},
			"told ann told 02:30 | now | next bob 02:35 | later boss 02:49 | nobody then nobody 03:03",
		},
		"a silence of the next step": {
			open(1, "02:35", 1, 2, ann), "02:32",
			[]silence{{"02:00", "04:00", []int{2}}},
			"told ann told 02:30 | now | silent bob silent until 04:00 | next boss 02:35 | nobody then nobody 02:49",
		},
		"a silence of a step that was left out": {
			open(1, "02:45", 1, 3, ann, begun(1, 2, "02:31", rules.StepSilenced)), "02:32",
			[]silence{{"02:00", "04:00", []int{2}}},
			"told ann told 02:30 | silent bob silenced 02:31 | now | next boss 02:45 | nobody then nobody 02:59",
		},
	} {
		e := Escalation{Incident: c.x, Keeps: keeps(c.silences), Now: at(c.now)}
		if got := text(e.Line(key(t), true)); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// TestLineWithoutNames checks the line for readers who may not know destinations, and of a key that is gone.
func TestLineWithoutNames(t *testing.T) {
	e := Escalation{Incident: open(1, "02:35", 1, 2, begun(1, 1, "02:30", rules.StepTold)), Keeps: keeps(nil), Now: at("02:31")}
	want := "told step 1 told 02:30 | now | next step 2 02:35 | later step 3 02:49 | nobody then nobody 03:03"
	if got := text(e.Line(key(t), false)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := text(e.Line(nil, true)), "told step 1 told 02:30 | now"; got != want { // nobody knows when
		t.Errorf("the key is gone: %s, want %s", got, want)
	}
}

// TestShort checks that a row shows the points around now, and how many it leaves out.
func TestShort(t *testing.T) {
	var steps []rules.BegunStep
	for i := range 12 {
		s := begun(i/3+1, i%3+1, "02:30", rules.StepTold)
		s.At = s.At.Add(time.Duration(i) * 5 * time.Minute)
		steps = append(steps, s)
	}
	e := Escalation{Incident: open(6, "03:30", 5, 1, steps...), Keeps: keeps(nil), Now: at("03:26")}
	l := e.Line(key(t), true).Short()
	want := "told ann told 03:15 (round 4) | told bob told 03:20 | told boss told 03:25 | now | next ann 03:30 (round 5 of 6)"
	if got := text(l); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if l.Before != 9 || l.After != 0 || !l.Brief {
		t.Errorf("it leaves out %d and %d", l.Before, l.After)
	}
	if (*view.Line)(nil).Short() != nil {
		t.Error("no line has a short one")
	}
}
