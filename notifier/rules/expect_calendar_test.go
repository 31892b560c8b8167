package rules

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// calendarOf returns the schedule with the fields, in Berlin.
func calendarOf(t *testing.T, fields string) Calendar {
	t.Helper()
	c, err := ParseCalendar(fields, "Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestBeatsByCalendar checks that nothing is told of a job that runs by its calendar, over
// week-ends and both changes of the clock, and that a missed one is told once its grace is
// over.
func TestBeatsByCalendar(t *testing.T) {
	racetest.SkipIfSlow(t)
	for _, x := range []struct {
		day, fields, clock string
		want               []string
	}{
		{"2026-03-24", "15 3 * * 1-5", "03:20", nil},
		{"2026-10-20", "15 3 * * 1-5", "03:20", nil},
		{"2026-03-24", "30 2 * * *", "03:10", nil}, // the job runs for 40 minutes, but not on the day without 02:30
		{"2026-10-20", "30 2 * * *", "02:40", nil}, // it comes twice on one day
		{
			"2026-05-04", "15 3 * * *", "04:30",
			[]string{"late Tue 04:15", "back Tue 04:30", "late Wed 04:15", "back Wed 04:30", "late Thu 04:15", "back Thu 04:30"},
		},
		// A beat that comes early counts for the time before.
		{"2026-05-04", "15 3 * * 3", "03:10", []string{"late Wed 04:15", "back Thu 03:10"}},
	} {
		from := berlin(t, x.day)
		days := 10
		if x.want != nil {
			days = 4
		}
		w := watchedBeat{e: Expect{Name: "nightly", Calendar: calendarOf(t, x.fields), Grace: time.Hour}}
		comes := once(daily(x.clock))
		if x.want != nil {
			comes = func(now time.Time) bool { return now.After(from.AddDate(0, 0, 1)) && once(daily(x.clock))(now) }
		}
		w.run(from.Add(4*time.Hour), from.AddDate(0, 0, days), step, comes, nil)
		w.expectTold(t, x.want...)
	}
}

// TestCalendarGatewayDown checks that nobody is told of a beat that was due while no gateway ran,
// and that the next one is expected. A later time without a gateway moves the deadline; an earlier
// one does not.
func TestCalendarGatewayDown(t *testing.T) {
	from := berlin(t, "2026-05-04") // a Monday
	for _, x := range []struct {
		name       string
		begin, end time.Duration // of the time without a gateway, after midnight of Tuesday
		want       string
	}{
		{"none", 0, 0, "late Tue 05:15"},
		{"before", time.Hour, 3 * time.Hour, "late Tue 05:15"},
		{"over the time", 3 * time.Hour, 4 * time.Hour, "late Wed 05:15"},
		{"over the deadline", 3 * time.Hour, 12 * time.Hour, "late Wed 05:15"},
		{"after the time", 3*time.Hour + 20*time.Minute, 3*time.Hour + 50*time.Minute, "late Tue 07:45"},
		{"for two days", time.Hour, 49 * time.Hour, "late Thu 05:15"},
		{"too short", 3*time.Hour + 14*time.Minute + 30*time.Second, 3*time.Hour + 15*time.Minute + 10*time.Second, "late Tue 05:15"},
	} {
		w := watchedBeat{e: Expect{Name: "nightly", Calendar: calendarOf(t, "15 3 * * *"), Grace: 2 * time.Hour}}
		gone := func(now time.Time) bool {
			since := now.Sub(from.AddDate(0, 0, 1))
			return x.begin < since && since < x.end
		}
		w.run(from.Add(4*time.Hour), from.AddDate(0, 0, 5), step, func(time.Time) bool { return false }, gone)
		if len(w.told) != 1 || w.told[0] != x.want {
			t.Errorf("%s: told %q, want %s", x.name, w.told, x.want)
		}
	}
	// A short grace counts shorter times without a gateway.
	u, b, now := Uptime{}, Beat{}, from.Add(3*time.Hour+14*time.Minute+30*time.Second)
	e := Expect{Name: "nightly", Calendar: calendarOf(t, "15 3 * * *"), Grace: time.Minute}
	u.See(now, maxSeeEvery, false)
	b.Arm(now, &u, &e)
	u.See(now.Add(40*time.Second), maxSeeEvery, false)
	b.Arm(now.Add(40*time.Second), &u, &e)
	if want := from.Add(27*time.Hour + 16*time.Minute); !b.Deadline(&u).Equal(want) {
		t.Errorf("late at %v, want %v", b.Deadline(&u), want)
	}
}

// TestArmCalendarAgain checks that an unchanged schedule keeps its deadline, that another
// one has another, and that a clock that was wrong does not put it off.
func TestArmCalendarAgain(t *testing.T) {
	now := berlin(t, "2026-05-04")
	var b Beat
	var u Uptime
	e := Expect{Name: "nightly", Calendar: calendarOf(t, "0 3 * * *"), Grace: time.Hour}
	expect := func(want string) {
		t.Helper()
		b.Arm(now, &u, &e)
		if got := b.Due(&u).Format("Mon 15:04"); got != want {
			t.Errorf("due %s, want %s", got, want)
		}
	}
	expect("Mon 03:00")
	now = now.Add(3*time.Hour + 30*time.Minute)
	e.Calendar = calendarOf(t, " 0  3 * * * ")
	expect("Mon 03:00")
	e.MaxRun = time.Hour
	expect("Mon 03:00")
	e.Calendar = calendarOf(t, "0 4 * * *")
	expect("Mon 04:00")
	b.Came(now.AddDate(0, 1, 0), &u, &e, false, "")
	expect("Mon 04:00")
	e.Calendar, e.Every = Calendar{}, time.Hour
	expect("Mon 04:30")
}

// TestRuns checks from a start to its end: how long it takes, that it is told once if it takes
// too long, and that a start is no beat.
func TestRuns(t *testing.T) {
	now := berlin(t, "2026-05-04")
	var b Beat
	var u Uptime
	e := Expect{Name: "nightly", Every: 24 * time.Hour, Grace: 2 * time.Hour, MaxRun: time.Hour}
	b.Arm(now, &u, &e)
	deadline := b.Deadline(&u)
	again := 10 * time.Minute
	b.Start(now, &u, &e)
	if now = now.Add(50 * time.Minute); b.Running(now) != 50*time.Minute ||
		b.TooLong(now, &u) || b.Deadline(&u) != deadline || !b.Last.IsZero() {
		t.Errorf("after 50 minutes: %+v", b)
	}
	b.Start(now, &u, &e) // once more
	if now = now.Add(59 * time.Minute); b.TooLong(now, &u) || !b.NextLook(now, &u, again).Equal(now.Add(time.Minute)) {
		t.Errorf("after 59 minutes of the second one: %+v", b)
	}
	now = now.Add(time.Minute)
	if !b.TooLong(now, &u) {
		t.Errorf("after an hour: %+v", b)
	}
	b.Overrun(now)
	if b.TooLong(now, &u) || b.State != BeatTooLong || !b.NextLook(now, &u, again).Equal(deadline) {
		t.Errorf("told: %+v", b)
	}
	if told := b.Came(now.Add(5*time.Minute), &u, &e, false, ""); !told ||
		b.State != BeatOK || b.Ran != 65*time.Minute || !b.Started.IsZero() {
		t.Errorf("ended: told %v, %+v", told, b)
	}
	if told := b.Came(now.Add(6*time.Minute), &u, &e, false, ""); told || b.Ran != 0 {
		t.Errorf("an end without a start: told %v, %+v", told, b)
	}

	// A time without a gateway moves the deadline of a run, once by the grace.
	b = Beat{}
	u.See(now, maxSeeEvery, false)
	b.Start(now, &u, &e)
	u.See(now.Add(5*time.Minute), maxSeeEvery, false)
	if want := now.Add(5*time.Minute + e.MaxRun + e.Grace); !b.RunDeadline(&u).Equal(want) {
		t.Errorf("too long at %v, want %v", b.RunDeadline(&u), want)
	}
	e.MaxRun = 30 * time.Minute // a reload changes only that
	due := b.Due(&u)
	b.Arm(now, &u, &e)
	if want := now.Add(5*time.Minute + e.MaxRun + e.Grace); !b.RunDeadline(&u).Equal(want) || b.Due(&u) != due {
		t.Errorf("too long at %v, want %v; due at %v, want %v", b.RunDeadline(&u), want, b.Due(&u), due)
	}
	e.MaxRun = 0
	if b.Arm(now, &u, &e); !b.RunDeadline(&u).IsZero() || b.TooLong(now.AddDate(1, 0, 0), &u) {
		t.Error("a run without max_run takes too long")
	}
	if b.Came(now, &u, &e, true, "3"); b.State != BeatFailed || b.Exit != "3" {
		t.Errorf("failed: %+v", b)
	}
}

// TestEarlierBeat checks that a beat that an earlier version has stored keeps its deadline.
func TestEarlierBeat(t *testing.T) {
	data, err := hex.DecodeString("0a017312036f70731a076e696768746c792080a5dadbdbffad062880c1f694dcffad06" +
		"32046c6174653880dd92cedcffad064001488080bc8ac9d2135080c0e285e3685880f9ae87ddffad066080b09dc2df01")
	if err != nil {
		t.Fatal(err)
	}
	b, err := decode(data, (*Beat).Fields)
	if err != nil {
		t.Fatal(err)
	}
	u := Uptime{Down: time.Minute}
	due := b.Due(&u)
	b.Arm(due.Add(-time.Hour), &u, &Expect{Name: "nightly", Every: 24 * time.Hour, Grace: time.Hour})
	if b.Due(&u) != due || !b.Missed {
		t.Errorf("due at %v, want %v", b.Due(&u), due)
	}
}
