package gatewaytest_test

import (
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestNight checks that the worst night has what it promises, so that tests of pages can build on it.
func TestNight(t *testing.T) {
	gatewaytest.InNight(t, func(t *testing.T, n *gatewaytest.Night) {
		if got := len(n.Resolved.Keys); got != gatewaytest.NightKeys {
			t.Errorf("%d keys", got)
		}
		for key, want := range map[string]int{"many": gatewaytest.NightIncidents, "duty": 2, "lab": 1, "attic": 1} {
			open := 0
			for _, x := range n.ListIncidents(key) {
				if x.Stage() == notifier.Open {
					open++
				}
			}
			if open != want {
				t.Errorf("%s has %d open incidents, want %d", key, open, want)
			}
		}
		states, err := n.Rooms().Outbox.Queue.Destinations.All(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		down, failing := 0, 0
		for i := range states {
			switch s := &states[i]; {
			case s.Down():
				down++
			case s.Failing():
				failing++
			}
		}
		if down != 2 || failing != 1 {
			t.Errorf("%d destinations are down, %d are failing", down, failing)
		}
		beats, err := n.Rooms().Beats.AllBeats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		outcomes := map[rules.RunOutcome]bool{}
		for i := range beats {
			for _, r := range beats[i].Runs {
				outcomes[r.Outcome] = true
			}
		}
		if len(beats) != 6 || len(outcomes) != 6 {
			t.Errorf("%d beats have runs with the outcomes %v", len(beats), outcomes)
		}
		for _, a := range n.Fine.Got() {
			if a.Title == "The lab is hot" || a.Title == "The attic is wet" {
				t.Errorf("a silence did not keep %q back", a.Title)
			}
		}
	})
}
