package rules

import (
	"testing"
	"time"
	_ "time/tzdata"
)

func parse(t *testing.T, zone, text string) time.Time {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.ParseInLocation("2006-01-02 15:04", text, location)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestWindows checks when windows end, also over both changes of the clock.
func TestWindows(t *testing.T) {
	for _, tt := range []struct {
		args []string
		zone string
		at   string
		end  string // in UTC; "" if the time is not in the window
	}{
		{[]string{"22:00-07:00", "UTC"}, "UTC", "2026-06-01 21:59", ""},
		{[]string{"22:00-07:00", "UTC"}, "UTC", "2026-06-01 22:00", "2026-06-02 07:00"},
		{[]string{"22:00-07:00", "UTC"}, "UTC", "2026-06-02 06:59", "2026-06-02 07:00"},
		{[]string{"22:00-07:00", "UTC"}, "UTC", "2026-06-02 07:00", ""},
		{[]string{"09:00-17:00", "mon-fri", "UTC"}, "UTC", "2026-06-05 10:00", "2026-06-05 17:00"},
		{[]string{"09:00-17:00", "mon-fri", "UTC"}, "UTC", "2026-06-06 10:00", ""},
		// The days are those on which the window begins.
		{[]string{"22:00-07:00", "fri", "UTC"}, "UTC", "2026-06-06 03:00", "2026-06-06 07:00"},
		{[]string{"22:00-07:00", "fri", "UTC"}, "UTC", "2026-06-05 03:00", ""},
		// A window is followed by another one.
		{[]string{"00:00-24:00", "sat,sun", "UTC"}, "UTC", "2026-06-06 10:00", "2026-06-08 00:00"},
		{[]string{"22:00-07:00", "Europe/Berlin"}, "Europe/Berlin", "2026-07-01 23:00", "2026-07-02 05:00"},
		// In one night of spring an hour is missing; in one night of autumn an hour comes twice.
		{[]string{"22:00-07:00", "Europe/Berlin"}, "Europe/Berlin", "2026-03-28 23:00", "2026-03-29 05:00"},
		{[]string{"22:00-07:00", "Europe/Berlin"}, "Europe/Berlin", "2026-10-24 23:00", "2026-10-25 06:00"},
		// The window ends in the gap: at 03:00, not at 03:30.
		{[]string{"22:00-02:30", "Europe/Berlin"}, "Europe/Berlin", "2026-03-28 23:00", "2026-03-29 01:00"},
		// The clock shows a time in the window once more after it was put back.
		{[]string{"22:00-02:30", "Europe/Berlin"}, "Europe/Berlin", "2026-10-24 23:00", "2026-10-25 00:30"},
		{[]string{"03:00-04:00", "America/New_York"}, "America/New_York", "2026-03-08 03:10", "2026-03-08 08:00"},
		{[]string{"00:00-08:00", "Australia/Lord_Howe"}, "Australia/Lord_Howe", "2026-04-05 00:30", "2026-04-04 21:30"},
	} {
		w, err := ParseWindow(tt.args)
		if err != nil {
			t.Fatal(tt.args, err)
		}
		at := parse(t, tt.zone, tt.at)
		if in := w.Has(at); in != (tt.end != "") {
			t.Errorf("%v at %s: %v", tt.args, tt.at, in)
			continue
		}
		if tt.end == "" {
			continue
		}
		if end := w.After(at.Add(25 * time.Second)).UTC().Format("2006-01-02 15:04"); end != tt.end {
			t.Errorf("%v at %s ends at %s, want %s", tt.args, tt.at, end, tt.end)
		}
	}
}

// TestWindowsEnd checks for each minute around changes of the clock that a window holds
// until the time that After returns, and no longer.
func TestWindowsEnd(t *testing.T) {
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/St_Johns", "Asia/Kathmandu"} {
		for _, args := range [][]string{
			{"22:00-07:00"},
			{"01:30-02:30"},
			{"02:30-02:45", "sun"},
			{"00:00-24:00", "sat"},
			{"23:30-00:30", "sun,mon"},
		} {
			w, err := ParseWindow(append(args, zone))
			if err != nil {
				t.Fatal(err)
			}
			for _, from := range []string{
				"2026-03-07 12:00", "2026-03-28 12:00", "2026-04-04 12:00",
				"2026-10-03 12:00", "2026-10-24 12:00", "2026-10-31 12:00",
			} {
				start := parse(t, zone, from)
				for minute := 0; minute < 36*60; minute += 7 {
					at := start.Add(time.Duration(minute) * time.Minute)
					if !w.Has(at) {
						continue
					}
					end := w.After(at)
					if w.Has(end) || !w.Has(end.Add(-time.Minute)) || !end.After(at) {
						t.Fatalf("%v in %s at %s: ends at %s", args, zone, at, end)
					}
				}
			}
		}
	}
}

// TestMoments checks the next moment of a digest.
func TestMoments(t *testing.T) {
	for _, tt := range []struct {
		args     []string
		zone, at string
		next     string // in UTC
	}{
		{[]string{"08:00", "UTC"}, "UTC", "2026-06-01 07:59", "2026-06-01 08:00"},
		{[]string{"08:00", "UTC"}, "UTC", "2026-06-01 08:00", "2026-06-02 08:00"},
		{[]string{"mon", "08:00", "UTC"}, "UTC", "2026-06-01 08:00", "2026-06-08 08:00"},
		{[]string{"mon", "08:00", "UTC"}, "UTC", "2026-06-06 08:00", "2026-06-08 08:00"},
		{[]string{"08:00", "Europe/Berlin"}, "Europe/Berlin", "2026-03-28 12:00", "2026-03-29 06:00"},
		{[]string{"08:00", "Europe/Berlin"}, "Europe/Berlin", "2026-10-24 12:00", "2026-10-25 07:00"},
		{[]string{"02:30", "Europe/Berlin"}, "Europe/Berlin", "2026-03-28 12:00", "2026-03-29 01:00"}, // in the gap
		{[]string{"02:30", "Europe/Berlin"}, "Europe/Berlin", "2026-10-24 12:00", "2026-10-25 00:30"}, // the first of two
		{[]string{"00:00", "America/Sao_Paulo"}, "America/Sao_Paulo", "2018-11-03 12:00", "2018-11-04 03:00"},
	} {
		m, err := ParseDigest(tt.args)
		if err != nil {
			t.Fatal(tt.args, err)
		}
		if next := m.Next(parse(t, tt.zone, tt.at)).UTC().Format("2006-01-02 15:04"); next != tt.next {
			t.Errorf("%v after %s: %s, want %s", tt.args, tt.at, next, tt.next)
		}
	}
}
