package alerting_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// dayAt returns a time of a day, so many days ago.
func dayAt(now time.Time, days, hour int) time.Time {
	y, m, d := now.Local().Date()
	return time.Date(y, m, d-days, hour, 0, 0, 0, time.Local)
}

// putIncidents stores incidents of the key with a place.
func putIncidents(t testing.TB, g *gatewaytest.Gateway, place string, all []rules.Incident) {
	t.Helper()
	q := g.Rooms().Outbox.Queue
	records := outbox.Typed[rules.Incident]{Kind: alerting.KindIncident, Fields: (*rules.Incident).Fields}
	for begin := 0; begin < len(all); begin += 500 {
		u := &queue.Ruled{}
		for i := begin; i < min(begin+500, len(all)); i++ {
			u.Names = append(u.Names, q.Hash(fmt.Sprint("incident of a test ", place, i)))
		}
		u.Decide = func(tx *queue.Tx) error {
			for i, name := range u.Names {
				x := &all[begin+i]
				records.Put(tx, name, x, time.Now().Add(time.Hour), q.Hash("incidents\x00"+place+"\x00"+string(x.Stage())))
			}
			return nil
		}
		if err := q.Records.Apply(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWeek checks that each incident of the last seven days is counted on the day of its last
// opening, whatever its state, and that the list of a day has the same ones.
func TestWeek(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	g := newGateway(t, t.TempDir(), gatewaytest.RuledKey("ops", rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}, p.NotifyURL()))
	place, now := placeOfKey(g, "ops"), time.Now()
	begun := rules.BegunSteps{{Step: 1, Round: 1}, {Step: 2, Round: 1}}
	putIncidents(t, g, place, []rules.Incident{
		{ID: "a", Type: notifier.Failure, State: notifier.Open, Opened: dayAt(now, 0, 0)},
		{ID: "b", Type: notifier.Failure, State: notifier.Resolved, Opened: dayAt(now, 1, 23), Resolved: now},
		{ID: "c", Type: notifier.Warning, State: notifier.Resolved, Opened: dayAt(now, 1, 0), Resolved: now},
		{ID: "d", Type: notifier.Failure, State: notifier.Open, Opened: dayAt(now, 1, 5), Begun: begun},
		{ID: "e", Type: notifier.Failure, State: notifier.Open, Opened: dayAt(now, 1, 6), Begun: begun[:1]},
		{ID: "f", Type: notifier.Warning, State: notifier.Open, Opened: dayAt(now, 6, 0), Begun: begun},
		{ID: "g", Type: notifier.Failure, State: notifier.Resolved, Opened: dayAt(now, 7, 23), Resolved: now},
	})
	week, err := g.Rooms().Alerts.Incidents.Week(t.Context(), []string{place, place})
	if err != nil || week.Cut {
		t.Fatal(week, err)
	}
	want := alerting.Week{}
	for i := range want.Days {
		want.Days[i].Begin = dayAt(now, alerting.WeekDays-1-i, 0)
	}
	want.Days[6].Failures = 1
	want.Days[5].Failures, want.Days[5].Others, want.Days[5].Escalated = 2, 1, 1
	want.Days[0].Escalated = 1
	if week != want {
		t.Errorf("%+v, want %+v", week, want)
	}
	for _, d := range week.Days {
		list, _, err := g.Rooms().Alerts.Incidents.List(t.Context(), []string{place}, &alerting.IncidentQuery{Day: d.Begin, Limit: 100})
		if err != nil || len(list) != d.Opened() {
			t.Errorf("%v: the list has %d incidents, and %d are counted; %v", d.Begin, len(list), d.Opened(), err)
		}
		at := "/notify/incidents?day=" + d.Begin.Format(time.DateOnly)
		by, err := alerting.ParseIncidentQuery(gatewaytest.NewRequest(http.MethodGet, at, "").URL.Query())
		if err != nil || !by.Day.Equal(d.Begin) || by.Address("/notify/incidents", alerting.IncidentCursor{}) != at {
			t.Errorf("%s: %+v, %v", at, by, err)
		}
	}
	if _, err := alerting.ParseIncidentQuery(map[string][]string{"day": {"yesterday"}}); err == nil {
		t.Error("yesterday is a date")
	}
}

// TestWeekIsBounded checks that a page does not read all incidents of a key each time, and never more
// than a bound.
func TestWeekIsBounded(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	g := newGateway(t, t.TempDir(), gatewaytest.RuledKey("ops", rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}, p.NotifyURL()))
	place, now := placeOfKey(g, "ops"), time.Now()
	all := make([]rules.Incident, 20_500)
	for i := range all {
		all[i] = rules.Incident{ID: fmt.Sprint(i), Type: notifier.Failure, State: notifier.Open, Opened: now.Add(-time.Second)}
	}
	week := func() alerting.Week {
		t.Helper()
		w, err := g.Rooms().Alerts.Incidents.Week(t.Context(), []string{place})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	putIncidents(t, g, place, all[:500])
	if w := week(); w.Days[6].Failures != 500 || w.Cut {
		t.Errorf("of 500: %+v", w)
	}
	putIncidents(t, g, place, all[:900])
	if w := week(); w.Days[6].Failures != 900 || w.Cut {
		t.Errorf("of 900, which are read each time: %+v", w)
	}
	racetest.SkipIfSlow(t)
	putIncidents(t, g, place, all)
	first := week()
	if n := first.Days[6].Failures; n != 20_000 || !first.Cut {
		t.Errorf("of %d: %+v", len(all), first)
	}
	changed := all[:1000] // of which at least 500 were read
	for i := range changed {
		changed[i].Type = notifier.Warning
	}
	putIncidents(t, g, place, changed)
	if w := week(); w != first {
		t.Errorf("a minute has not passed, and all are read again: %+v", w)
	}
}
