package rules

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// modelGroup is a group as it should be: what each alert is, and what is told, without a
// record and without a memory of its own for repetitions.
type modelGroup struct {
	ends     map[string]time.Time // of the alerts whose latest post says that they fire
	told     map[string]bool      // alerts that were told as firing
	resolved map[string]bool      // alerts whose latest post says that they are over
	lost     map[string]bool      // told, since the group was opened, to be no longer reported
	opened   bool
	next     time.Time
}

func (m *modelGroup) fires(now time.Time, name string) bool { return m.ends[name].After(now) }

func (m *modelGroup) news(now time.Time) bool {
	for _, name := range alertNames {
		if m.fires(now, name) != m.told[name] {
			return true
		}
	}
	return false
}

func (m *modelGroup) look(now time.Time) {
	if m.news(now) && m.next.IsZero() {
		m.next = now.Add(groupTimes.Wait)
		if m.opened {
			m.next = now.Add(groupTimes.Interval)
		}
	}
}

// tell returns the message that is due, or "".
func (m *modelGroup) tell(now time.Time) string {
	if m.next.IsZero() || m.next.After(now) {
		return ""
	}
	news := m.news(now)
	var firing, resolved, lost, known []string
	for _, name := range alertNames {
		switch fires := m.fires(now, name); {
		case fires:
			firing = append(firing, name)
			delete(m.lost, name)
		case m.told[name] && m.resolved[name]:
			resolved = append(resolved, name)
		case m.told[name]:
			lost = append(lost, name)
		case m.lost[name] && !m.resolved[name]:
			known = append(known, name)
		}
	}
	for _, name := range lost {
		m.lost[name] = true
	}
	if len(firing) == 0 {
		lost = append(lost, known...)
	}
	m.next, m.told = time.Time{}, map[string]bool{}
	for _, name := range firing {
		m.told[name] = true
	}
	if !news {
		return ""
	}
	m.opened = true
	if len(firing) == 0 {
		*m = *newModelGroup()
	}
	slices.Sort(lost)
	return fmt.Sprint(firing, resolved, lost)
}

func newModelGroup() *modelGroup {
	return &modelGroup{ends: map[string]time.Time{}, told: map[string]bool{}, resolved: map[string]bool{}, lost: map[string]bool{}}
}

var (
	alertNames = []string{"a", "b", "c"}
	groupTimes = GroupTimes{Wait: 30 * time.Second, Interval: 5 * time.Minute}
)

func names(alerts []RulerAlert) (out []string) {
	for _, a := range alerts {
		out = append(out, a.Fingerprint)
	}
	slices.Sort(out)
	return out
}

// TestAlertGroup runs random posts through a group, which is stored after each step, and
// compares what is told with the model. Posts that repeat what is known are kept back until
// half of the time has passed. In some worlds, the alerts are so large that they are in pieces.
func TestAlertGroup(t *testing.T) {
	for seed := range uint64(racetest.Amount(300, 60)) {
		random := rand.New(rand.NewPCG(seed, 1))
		now, u := time.Unix(1e9, 0), new(Uptime)
		g, m := new(AlertGroup), newModelGroup()
		kept, until := map[string]RulerAlert{}, time.Time{}
		flush := func() {
			var posts []RulerAlert
			for _, p := range kept {
				posts = append(posts, p)
			}
			g.Post(now, u, posts, groupTimes)
			clear(kept)
		}
		var text []string
		if seed%15 == 0 {
			text = []string{"summary", strings.Repeat("x", maxPiece/2)}
		}
		told, most := 0, 0
		for range 600 {
			now = now.Add(time.Duration(random.IntN(40)) * time.Second)
			if len(kept) > 0 && !until.After(now) {
				flush()
			}
			m.look(now)
			if due := g.Due(u); !due.IsZero() && !due.After(now) {
				flush()
			}
			g.Look(now, u, groupTimes)
			state, tells := g.Tell(now, u)
			got := ""
			if tells {
				told++
				got = fmt.Sprint(names(state.Firing), names(state.Resolved), names(state.Lost))
			}
			if want := m.tell(now); got != want {
				t.Fatalf("seed %d: told %q, want %q", seed, got, want)
			}
			if g.Over(now, u) {
				g = new(AlertGroup)
			}
			name := alertNames[random.IntN(len(alertNames))]
			p := RulerAlert{Fingerprint: name, At: now, Ends: now.Add(4 * time.Minute), Annotations: text}
			switch random.IntN(8) {
			case 0:
				p.Resolved, p.Ends = true, now
			case 1:
				continue // silence
			}
			delete(m.ends, name)
			if m.resolved[name] = p.Resolved; !p.Resolved {
				m.ends[name] = p.Ends
			}
			half, repeats := g.Repeats(now, u, []RulerAlert{p})
			switch {
			case !repeats:
				delete(kept, name)
				g.Post(now, u, []RulerAlert{p}, groupTimes)
			case half.IsZero():
			default:
				if kept[name] = p; len(kept) == 1 || half.Before(until) {
					until = half
				}
			}
			m.look(now)
			g = restored(t, g)
			most = max(most, g.Pieces())
		}
		if (most > 0) != (text != nil) {
			t.Errorf("seed %d: %d pieces", seed, most)
		}
		if told < 5 {
			t.Errorf("seed %d: only %d messages", seed, told)
		}
	}
}

// TestFullAlertGroup checks that new texts cannot make a group larger than MaxGroup, and that
// its alerts are still kept up and resolved.
func TestFullAlertGroup(t *testing.T) {
	now, u := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), new(Uptime)
	g := new(AlertGroup)
	text := func(n int) []string { return []string{"summary", strings.Repeat("x", n)} }
	alert := func(name string, n int) RulerAlert {
		return RulerAlert{Fingerprint: name, Labels: []string{"alertname", name}, Annotations: text(n), At: now, Ends: now.Add(time.Hour)}
	}
	if left := g.Post(now, u, []RulerAlert{alert("a", MaxGroup/2), alert("b", 10), alert("c", MaxGroup/2)},
		GroupTimes{}); left != 1 || len(g.Alerts) != 2 {
		t.Fatalf("%d left out, %d alerts; want 1 and 2", left, len(g.Alerts))
	}
	if g.Grows([]RulerAlert{alert("a", 1)}) || !g.Grows([]RulerAlert{alert("c", 1)}) {
		t.Error("Grows is wrong")
	}
	now = now.Add(time.Minute)
	later := alert("b", MaxGroup)
	if left := g.Post(now, u, []RulerAlert{later}, GroupTimes{}); left != 0 ||
		len(g.Alerts[1].Annotations[1]) != 10 || !g.Alerts[1].Ends.Equal(later.Ends) {
		t.Errorf("%d left out; the alert has %d bytes of text and ends at %v", left, len(g.Alerts[1].Annotations[1]), g.Alerts[1].Ends)
	}
	later.Annotations, later.Resolved = text(5), true
	if g.Post(now, u, []RulerAlert{later}, GroupTimes{}); !g.Alerts[1].Resolved || len(g.Alerts[1].Annotations[1]) != 5 {
		t.Errorf("the alert is %+v", g.Alerts[1])
	}
}

// TestGroupWrittenAhead checks that an alert that was posted when the clock was ahead is due as if
// it was posted now, wherever its end is, and that nothing is due later than the times of the group
// say.
func TestGroupWrittenAhead(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	ahead := now.Add(25 * time.Hour)
	for lasts, want := range map[time.Duration]time.Duration{4 * time.Minute: 4 * time.Minute, 70 * 365 * 24 * time.Hour: maxKept} {
		var g AlertGroup
		u := &Uptime{Seen: ahead}
		g.Post(ahead, u, []RulerAlert{{Fingerprint: "a", At: ahead, Ends: ahead.Add(lasts)}}, groupTimes)
		if g.IsAhead(ahead) || !g.IsAhead(now) {
			t.Errorf("%s: it is ahead: %v, %v", lasts, g.IsAhead(ahead), g.IsAhead(now))
		}
		u.See(now, maxSeeEvery, true)
		g.Post(now, u, nil, groupTimes)
		if got := g.Due(u).Sub(now); g.IsAhead(now) || got != groupTimes.Wait {
			t.Errorf("%s: a new group is due in %s", lasts, got)
		}
		at := now.Add(groupTimes.Wait)
		if _, ok := g.Tell(at, u); !ok || g.Due(u).Sub(now) != want {
			t.Errorf("%s: it is told %v, and due in %s", lasts, ok, g.Due(u).Sub(now))
		}
	}
}
