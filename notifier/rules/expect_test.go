package rules

import (
	"testing"
	"time"
)

// watchedBeat is a beat that gateways look at, and what they told.
type watchedBeat struct {
	Beat
	Uptime
	e    Expect
	told []string // what was told, with the time since the beginning
}

// run lets the gateways run from one time to another. beats has when beats come, and
// gone when no gateway runs. It looks at the beat each step.
func (w *watchedBeat) run(from, to time.Time, step time.Duration, comes, gone func(time.Time) bool) {
	for now := from; now.Before(to); now = now.Add(step) {
		if gone != nil && gone(now) {
			continue
		}
		w.See(now, maxSeeEvery, false)
		w.Arm(now, &w.Uptime, &w.e)
		if comes(now) && w.Came(now, &w.Uptime, &w.e, false, "") {
			w.told = append(w.told, "back "+now.Format("Mon 15:04"))
		}
		if w.Late(now, &w.Uptime) {
			w.Miss(now)
			w.told = append(w.told, "late "+now.Format("Mon 15:04"))
		}
	}
}

func (w *watchedBeat) expectTold(t *testing.T, want ...string) {
	t.Helper()
	if len(w.told) != len(want) {
		t.Fatalf("told %q, want %q", w.told, want)
	}
	for i := range want {
		if w.told[i] != want[i] {
			t.Errorf("told %q, want %q", w.told, want)
		}
	}
}

func berlin(t *testing.T, day string) time.Time {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.ParseInLocation(time.DateOnly, day, zone)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// daily reports whether the clock on the wall shows a time.
func daily(clock string) func(time.Time) bool {
	return func(t time.Time) bool { return t.Format("15:04") == clock }
}

const step = 10 * time.Second // between two looks, no more than maxSeeEvery

// once makes a beat come once in each minute in which f is true.
func once(f func(time.Time) bool) func(time.Time) bool {
	return func(t time.Time) bool { return t.Second() == 0 && f(t) }
}

// TestBeatsOfWeeks checks that nothing is told of a daily job over both changes of the
// clock, also one that waits 24 hours from run to run.
func TestBeatsOfWeeks(t *testing.T) {
	for _, day := range []string{"2026-03-24", "2026-10-20"} {
		from := berlin(t, day)
		to := from.AddDate(0, 0, 10)
		w := watchedBeat{e: Expect{Name: "nightly", Every: 24 * time.Hour, Grace: 10 * time.Minute}}
		w.run(from, to, step, once(daily("04:30")), nil)
		w.expectTold(t)

		var next time.Time
		every24h := func(now time.Time) bool {
			if now.Before(next) {
				return false
			}
			next = now.Add(24 * time.Hour)
			return true
		}
		w = watchedBeat{e: Expect{Name: "timer", Every: 24 * time.Hour, Grace: 10 * time.Minute}}
		w.run(from, to, step, every24h, nil)
		w.expectTold(t)
	}
}

// TestMissedBeat checks that a miss is told once, and again after the next beat.
func TestMissedBeat(t *testing.T) {
	from := berlin(t, "2026-05-04")
	w := watchedBeat{e: Expect{Name: "nightly", Every: 24 * time.Hour, Grace: 2 * time.Hour}}
	missing := func(now time.Time) bool {
		return now.Day() != 6 && now.Day() != 7 && now.Day() != 10 && daily("02:00")(now)
	}
	w.run(from, from.AddDate(0, 0, 10), step, once(missing), nil)
	w.expectTold(t, "late Wed 04:00", "back Fri 02:00", "late Sun 04:00", "back Mon 02:00")
}

// TestBeatNeverCame checks that a beat is expected from the moment in which it is armed.
func TestBeatNeverCame(t *testing.T) {
	from := berlin(t, "2026-05-04")
	w := watchedBeat{e: Expect{Name: "nightly", Every: 24 * time.Hour, Grace: 2 * time.Hour}}
	w.run(from, from.AddDate(0, 0, 9), step, func(time.Time) bool { return false }, nil)
	w.expectTold(t, "late Tue 02:00")
	if !w.Last.IsZero() || w.State != BeatLate {
		t.Errorf("%+v", w.Beat)
	}
}

// TestGatewayDown checks that nobody is told of beats that could not come because no gateway ran,
// but of a job that does not run afterwards. Many short times without a gateway move the deadline
// by at most their sum and one grace.
func TestGatewayDown(t *testing.T) {
	from := berlin(t, "2026-05-04")
	down := func(now time.Time) bool { // from Wed 01:00 to Thu 12:00
		return now.After(from.AddDate(0, 0, 2).Add(time.Hour)) && now.Before(from.AddDate(0, 0, 3).Add(12*time.Hour))
	}
	hourly := func(now time.Time) bool { return now.Minute() == 0 }
	w := watchedBeat{e: Expect{Name: "hourly", Every: time.Hour, Grace: 10 * time.Minute}}
	w.run(from, from.AddDate(0, 0, 7), step, once(hourly), down)
	w.expectTold(t)

	gone := func(now time.Time) bool { return now.Before(from.AddDate(0, 0, 2)) && hourly(now) }
	w = watchedBeat{e: Expect{Name: "hourly", Every: time.Hour, Grace: 10 * time.Minute}}
	w.run(from, from.AddDate(0, 0, 7), step, once(gone), down)
	// The last beat came on Tue 23:00, so it was told at 00:10, before.
	w.expectTold(t, "late Wed 00:10")

	last := func(now time.Time) bool { return now.Before(from.AddDate(0, 0, 2).Add(time.Hour)) && hourly(now) }
	w = watchedBeat{e: Expect{Name: "hourly", Every: time.Hour, Grace: 10 * time.Minute}}
	w.run(from, from.AddDate(0, 0, 7), step, once(last), down)
	if len(w.told) != 1 || w.told[0] < "late Thu 12:20" || w.told[0] > "late Thu 13:20" {
		t.Errorf("told %q", w.told)
	}

	restarts := func(now time.Time) bool { return now.Minute()%10 == 5 } // a minute of ten
	w = watchedBeat{e: Expect{Name: "hourly", Every: time.Hour, Grace: 10 * time.Minute}}
	w.run(from, from.AddDate(0, 0, 1), step, func(time.Time) bool { return false }, restarts)
	if len(w.told) != 1 || w.told[0] > "late Mon 01:40" {
		t.Errorf("told %q", w.told)
	}
}

// TestFailingBeat checks that each failure is told, and the first success after it.
func TestFailingBeat(t *testing.T) {
	now := berlin(t, "2026-05-04")
	var b Beat
	var u Uptime
	e := Expect{Name: "nightly", Every: time.Hour, Grace: time.Minute}
	b.Arm(now, &u, &e)
	for i, x := range []struct {
		failed, told bool
		state        BeatState
	}{{false, false, BeatOK}, {true, true, BeatFailed}, {true, true, BeatFailed}, {false, true, BeatOK}, {false, false, BeatOK}} {
		now = now.Add(time.Hour)
		if told := b.Came(now, &u, &e, x.failed, ""); told != x.told || b.State != x.state || b.Last != now {
			t.Errorf("beat %d: told %v, %+v", i, told, b)
		}
		if b.Late(now.Add(time.Hour), &u) || !b.Late(now.Add(61*time.Minute), &u) {
			t.Errorf("beat %d: late at the wrong time", i)
		}
	}
}

// TestArmAgain checks that an unchanged expectation keeps its deadline, that a changed one begins
// anew, and that a wrong clock does not put it off.
func TestArmAgain(t *testing.T) {
	now := berlin(t, "2026-05-04")
	var b Beat
	var u Uptime
	e := Expect{Name: "nightly", Every: 24 * time.Hour, Grace: time.Hour}
	b.Arm(now, &u, &e)
	first := b.Deadline(&u)
	b.Arm(now.Add(20*time.Hour), &u, &e)
	if b.Deadline(&u) != first {
		t.Error("an unchanged one has another deadline")
	}
	e.Every = 12 * time.Hour
	b.Arm(now.Add(20*time.Hour), &u, &e)
	if want := now.Add(33 * time.Hour); !b.Deadline(&u).Equal(want) {
		t.Errorf("deadline %v, want %v", b.Deadline(&u), want)
	}
	b.Came(now.AddDate(10, 0, 0), &u, &e, false, "") // the clock is wrong
	b.Arm(now, &u, &e)
	if want := now.Add(13 * time.Hour); !b.Deadline(&u).Equal(want) {
		t.Errorf("deadline %v, want %v", b.Deadline(&u), want)
	}
	u.Seen = now.AddDate(-50, 0, 0) // a board without a battery has just got the time
	u.See(now, maxSeeEvery, false)
	b.Arm(now, &u, &e)
	if want := now.Add(13 * time.Hour); b.Deadline(&u).After(want) {
		t.Errorf("deadline %v, want %v", b.Deadline(&u), want)
	}
}

// TestUptime checks what counts as a time without a gateway: what is longer than half of the
// grace of the beat, or than a minute.
func TestUptime(t *testing.T) {
	now := berlin(t, "2026-05-04")
	for _, x := range []struct {
		gap     time.Duration
		started bool
		grace   time.Duration
		counts  bool
		every   time.Duration // of the gateway that ran; 0 for an earlier version
	}{
		{maxSeeEvery, false, time.Second, false, 0},
		{14 * time.Second, false, time.Second, false, 0}, // it runs, and is late
		{16 * time.Second, false, time.Second, true, 0},
		{16 * time.Second, false, 32 * time.Second, false, 0},
		{5 * time.Second, true, time.Second, true, 0},
		{5 * time.Second, true, 10 * time.Second, false, 0},
		{5*time.Second + time.Millisecond, true, 10 * time.Second, true, 0},
		{500 * time.Millisecond, true, time.Second, false, 0},
		{501 * time.Millisecond, true, time.Second, true, 0},
		{time.Minute, true, time.Hour, false, 0},
		{time.Minute + time.Millisecond, true, time.Hour, true, 0},
		{time.Minute + time.Millisecond, false, 24 * time.Hour, true, 0},
		{-time.Hour, true, time.Second, false, 0},
		{time.Hour, false, time.Second, true, 0},
		// A database is away for less than 15 s.
		{6 * time.Second, false, 4 * time.Second, false, SeeEvery(4 * time.Second)},
		{13 * time.Second, false, 4 * time.Second, true, SeeEvery(4 * time.Second)},
		{13 * time.Second, false, 40 * time.Second, false, SeeEvery(4 * time.Second)},
		// The other gateway of the database expects no such beat.
		{13 * time.Second, false, 4 * time.Second, false, SeeEvery(time.Hour)},
	} {
		u := Uptime{Seen: now, Every: x.every}
		e := Expect{Name: "n", Every: time.Hour, Grace: x.grace}
		var b Beat
		b.Arm(now, &u, &e)
		u.See(now.Add(x.gap), maxSeeEvery, x.started)
		var want time.Duration
		if x.counts {
			want = x.gap
		}
		if got := u.down(e.Grace); got != want || u.Seen != now.Add(x.gap) {
			t.Errorf("%+v: %v counts, want %v; seen at %v", x, got, want, u.Seen)
		}
		late := now.Add(e.Every + e.Grace)
		if x.counts {
			late = late.Add(x.gap + e.Grace)
		}
		if got := b.Deadline(&u); !got.Equal(late) {
			t.Errorf("%+v: late at %v, want %v", x, got, late)
		}
	}
	var u Uptime
	if u.See(now, maxSeeEvery, true); u.down(time.Second) != 0 {
		t.Error("the first gateway was not missed")
	}
}

// TestUptimeClockSetBack checks that a time that only the clock has passed does not count as one without
// a gateway when the clock is set back, and that a time before and after it does.
func TestUptimeClockSetBack(t *testing.T) {
	t.Parallel()
	now := berlin(t, "2026-05-04")
	u := Uptime{Seen: now}
	const jump = 25 * time.Hour
	see := func(after, clock, want time.Duration) {
		t.Helper()
		now = now.Add(after)
		if u.See(now.Add(clock), maxSeeEvery, true); u.down(time.Second) != want {
			t.Errorf("after %s, with a clock that is %s ahead, %s count; want %s", after, clock, u.down(time.Second), want)
		}
	}
	see(10*time.Minute, 0, 10*time.Minute)
	see(20*time.Minute, jump, 30*time.Minute+jump)
	see(5*time.Second, jump, 30*time.Minute+jump+5*time.Second)
	see(10*time.Second, 0, 30*time.Minute+10*time.Second+5*time.Second)
	see(10*time.Minute, 0, 40*time.Minute+10*time.Second+5*time.Second)
	see(0, -time.Second, 40*time.Minute+10*time.Second+5*time.Second)
}

// TestRestarts checks that gateways which are killed every few seconds tell a missed beat, and that
// the time that they were away moves the deadline.
func TestRestarts(t *testing.T) {
	const startup = 500 * time.Millisecond
	for _, e := range []Expect{
		{Name: "short", Every: 5 * time.Second, Grace: time.Second},
		{Name: "second", Every: time.Second, Grace: time.Second},
		{Name: "minute", Every: time.Minute, Grace: 6 * time.Second},
		{Name: "hour", Every: time.Hour, Grace: 6 * time.Minute},
		{Name: "day", Every: 24 * time.Hour, Grace: time.Hour},
	} {
		for _, every := range []time.Duration{2 * time.Second, 4 * time.Second, 13 * time.Second} {
			began := berlin(t, "2026-05-04")
			now, late := began, false
			var u Uptime
			var b Beat
			for !late && now.Sub(began) < 3*(e.Every+2*e.Grace)+time.Minute {
				ends := now.Add(every - startup)
				for started := true; !late && now.Before(ends); started = false {
					if started || now.Sub(u.Seen) >= SeeEvery(e.Grace) {
						u.See(now, SeeEvery(e.Grace), started)
					}
					b.Arm(now, &u, &e)
					late = b.Late(now, &u)
					now = now.Add(time.Second) // the queue looks each second at what is due
				}
				now = ends.Add(startup)
			}
			if !late {
				t.Errorf("%+v, killed each %v: not late after %v", e, every, now.Sub(began))
			}
			if now.Sub(began) < e.Every+e.Grace {
				t.Errorf("%+v, killed each %v: late after %v", e, every, now.Sub(began))
			}
		}
	}
}

// TestCheckExpect checks the bounds.
func TestCheckExpect(t *testing.T) {
	for _, x := range []struct {
		e  Expect
		ok bool
	}{
		{Expect{Name: "nightly.db-1_x", Every: time.Hour, Grace: time.Minute}, true},
		{Expect{Name: "", Every: time.Hour, Grace: time.Minute}, false},
		{Expect{Name: "a b", Every: time.Hour, Grace: time.Minute}, false},
		{Expect{Name: "ä", Every: time.Hour, Grace: time.Minute}, false},
		{Expect{Name: "n", Every: time.Millisecond, Grace: time.Minute}, false},
		{Expect{Name: "n", Every: 401 * 24 * time.Hour, Grace: time.Minute}, false},
		{Expect{Name: "n", Every: time.Hour, Grace: 0}, false},
		{Expect{Name: "n", Every: time.Hour, Grace: time.Minute, MaxRun: time.Hour}, true},
		{Expect{Name: "n", Every: time.Hour, Grace: time.Minute, MaxRun: time.Millisecond}, false},
		{Expect{Name: "n", Calendar: calendarOf(t, "15 3 * * *"), Grace: time.Minute}, true},
		{Expect{Name: "n", Calendar: calendarOf(t, "15 3 * * *"), Every: time.Hour, Grace: time.Minute}, false},
		{Expect{Name: "n", Every: time.Hour, Grace: 401 * 24 * time.Hour}, false},
	} {
		if err := x.e.Check(); (err == nil) != x.ok {
			t.Errorf("%+v: %v", x.e, err)
		}
	}
	if DefaultGrace(24*time.Hour) != 144*time.Minute || DefaultGrace(2*time.Second) != time.Second {
		t.Error("default grace")
	}
}
