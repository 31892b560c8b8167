package view

import (
	"slices"
	"testing"
	"time"
)

// TestShownDestinations checks that a key shows the first of many destinations, and all that
// somebody may have to look at, the worst first.
func TestShownDestinations(t *testing.T) {
	fine := &Health{State: Fine, Delivered: time.Unix(1, 0)}
	all := make([]Destination, 12)
	for i := range all {
		all[i] = Destination{Number: i + 1, Health: fine}
	}
	all[7].Health = &Health{State: Down, Waiting: 1}
	all[8].Waits = &Waits{}
	all[9].Status = "delivered" // a test
	all[10].Health = nil        // without a queue
	all[11].Health = &Health{State: Failing}
	for _, tt := range []struct {
		destinations  []Destination
		shown, folded []int
	}{
		{all[:6], []int{1, 2, 3, 4, 5, 6}, nil},
		{all[:7], []int{1, 2, 3, 4, 5, 6}, []int{7}},
		{all, []int{8, 12, 1, 2, 3, 4, 5, 6, 9, 10, 11}, []int{7}},
	} {
		p := KeyPage{KeyState: KeyState{Destinations: tt.destinations}}
		if shown, folded := numbers(p.ShownDestinations()), numbers(p.FoldedDestinations()); !slices.Equal(shown, tt.shown) ||
			!slices.Equal(folded, tt.folded) {
			t.Errorf("of %d: %v, and folded %v", len(tt.destinations), shown, folded)
		}
	}
}

func numbers(list []Destination) (out []int) {
	for _, d := range list {
		out = append(out, d.Number)
	}
	return out
}

// TestAsksForTest checks which destinations have a button Test beside their menu.
func TestAsksForTest(t *testing.T) {
	delivered := time.Unix(1, 0)
	for name, tt := range map[string]struct {
		Destination
		want bool
	}{
		"never used":      {Destination{Health: &Health{State: Silent}}, true},
		"refused":         {Destination{Health: &Health{State: Failing, Delivered: delivered}}, true},
		"something waits": {Destination{Health: &Health{State: Down}, Waits: &Waits{Count: 1}}, false},
		"well":            {Destination{Health: &Health{State: Fine, Delivered: delivered}}, false},
		"no queue":        {Destination{}, true},
	} {
		if got := tt.AsksForTest(); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
