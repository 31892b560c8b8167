package alerting_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestWorstFirst checks that the order of incidents is that of all keys, before the limit: those
// whose next step begins soonest, failures before warnings, the newest first, and last those of
// which a silence tells nobody. The list once had the incidents of one key after those of another,
// so that 200 of one key hid the one that wakes people.
func TestWorstFirst(t *testing.T) {
	gatewaytest.InNight(t, func(t *testing.T, n *gatewaytest.Night) {
		var places []string
		for name := range n.Resolved.Keys {
			places = append(places, placeOfKey(n.Gateway, name))
		}
		want := []string{"Payments fail", "The shop is down"}
		for i := gatewaytest.NightIncidents; i > 0; i-- {
			want = append(want, fmt.Sprintf("Disk full on web-%03d", i))
		}
		want = append(want, "The lab is hot", "The attic is wet")
		for _, limit := range []int{1, 7, 100, 1000} {
			var got []string
			for by := (alerting.IncidentQuery{Limit: limit}); ; {
				list, next, err := n.Rooms().Alerts.Incidents.List(t.Context(), places, &by)
				if err != nil {
					t.Fatal(err)
				}
				for _, x := range list {
					got = append(got, x.Incident.Title)
				}
				if by.After = next; next == (alerting.IncidentCursor{}) {
					break
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("pages of %d: %q", limit, got)
			}
		}
	})
}

// TestEqualIncidents checks that equal incidents of a key are one row, which has its place among the
// others, on pages of each length.
func TestEqualIncidents(t *testing.T) {
	gatewaytest.InNight(t, func(t *testing.T, n *gatewaytest.Night) {
		var places []string
		for name := range n.Resolved.Keys {
			places = append(places, placeOfKey(n.Gateway, name))
		}
		want := []string{
			`1 "Payments fail"`, `1 "The shop is down"`, `200 "Disk full on web-"`, `1 "The lab is hot"`, `1 "The attic is wet"`,
		}
		for limit := 1; limit < 7; limit++ {
			var got []string
			for by := (alerting.IncidentQuery{Limit: limit, Fold: true}); ; {
				rows, next, err := n.Rooms().Alerts.Incidents.Rows(t.Context(), places, &by)
				if err != nil {
					t.Fatal(err)
				}
				for _, x := range rows {
					got = append(got, fmt.Sprintf("%d %q", x.Count, x.Prefix))
					if x.Count > 1 && (len(x.Equal) != x.Count || x.Equal[0].Incident.Title != "Disk full on web-200" ||
						x.Worst.Incident != x.Equal[0].Incident || !x.Newest.Equal(x.Worst.Incident.Opened)) {
						t.Errorf("the row has %d incidents, the first is %+v", len(x.Equal), x.Worst.Incident)
					}
				}
				if by.After = next; next == (alerting.IncidentCursor{}) {
					break
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("pages of %d: %q", limit, got)
			}
		}
	})
}
