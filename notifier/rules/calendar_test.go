package rules

import (
	"strings"
	"testing"
	"time"
)

// TestCalendarNext checks what is due after a time, also where the clock on the wall is
// changed: at the end of the gap, and once where an hour comes twice.
func TestCalendarNext(t *testing.T) {
	const form = "2006-01-02 15:04:05 -0700"
	for _, x := range []struct {
		fields, zone, after string
		want                []string
	}{
		{"15 3 * * 1-5", "Europe/Berlin", "2026-05-07 12:00:00 +0000", []string{"2026-05-08 03:15:00 +0200", "2026-05-11 03:15:00 +0200"}},
		{"15 3 * * *", "UTC", "2026-05-07 03:15:00 +0000", []string{"2026-05-08 03:15:00 +0000"}},
		{"15 3 * * *", "UTC", "2026-05-07 03:14:59 +0000", []string{"2026-05-07 03:15:00 +0000"}},
		// The gap in Berlin is from 02:00 to 03:00 on 29 March 2026.
		{
			"30 2 * * *", "Europe/Berlin", "2026-03-28 00:00:00 +0100",
			[]string{"2026-03-28 02:30:00 +0100", "2026-03-29 03:00:00 +0200", "2026-03-30 02:30:00 +0200"},
		},
		{"30 2 * * *", "Europe/Berlin", "2026-03-29 01:59:59 +0100", []string{"2026-03-29 03:00:00 +0200", "2026-03-30 02:30:00 +0200"}},
		{
			"*/20 * * * *", "Europe/Berlin", "2026-03-29 01:30:00 +0100",
			[]string{"2026-03-29 01:40:00 +0100", "2026-03-29 03:00:00 +0200", "2026-03-29 03:20:00 +0200"},
		},
		{"0 2,3 * * *", "Europe/Berlin", "2026-03-29 00:00:00 +0100", []string{"2026-03-29 03:00:00 +0200", "2026-03-30 02:00:00 +0200"}},
		// The hour from 02:00 comes twice on 25 October 2026.
		{"30 2 * * *", "Europe/Berlin", "2026-10-24 12:00:00 +0200", []string{"2026-10-25 02:30:00 +0200", "2026-10-26 02:30:00 +0100"}},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25 02:15:00 +0100", []string{"2026-10-26 02:30:00 +0100"}},
		{"0 2,3 * * *", "Europe/Berlin", "2026-10-25 00:00:00 +0200", []string{"2026-10-25 02:00:00 +0200", "2026-10-25 03:00:00 +0100"}},
		{"*/30 * * * *", "Europe/Berlin", "2026-10-25 02:00:00 +0200", []string{"2026-10-25 02:30:00 +0200", "2026-10-25 03:00:00 +0100"}},
		{"* * * * *", "Europe/Berlin", "2026-10-25 02:59:30 +0200", []string{"2026-10-25 03:00:00 +0100"}},
		// The clock of Lord Howe is put back by half an hour at 02:00, and forward at 02:00.
		{"45 1 * * *", "Australia/Lord_Howe", "2026-04-04 12:00:00 +1100", []string{"2026-04-05 01:45:00 +1100", "2026-04-06 01:45:00 +1030"}},
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00:00 +1030", []string{"2026-10-04 02:30:00 +1100", "2026-10-05 02:15:00 +1100"}},
		// São Paulo had no midnight on 4 November 2018, Samoa no 30 December 2011.
		{"0 0 * * *", "America/Sao_Paulo", "2018-11-03 12:00:00 -0300", []string{"2018-11-04 01:00:00 -0200", "2018-11-05 00:00:00 -0200"}},
		{"0 12 * * *", "Pacific/Apia", "2011-12-29 12:00:00 -1000", []string{"2011-12-31 00:00:00 +1400", "2011-12-31 12:00:00 +1400"}},
		// Days of the month and of the week are alternatives, unless one has a star.
		{"0 4 1 * 1", "UTC", "2026-05-29 12:00:00 +0000", []string{"2026-06-01 04:00:00 +0000", "2026-06-08 04:00:00 +0000"}},
		{"0 4 13 * 5", "UTC", "2026-05-09 12:00:00 +0000", []string{"2026-05-13 04:00:00 +0000", "2026-05-15 04:00:00 +0000"}},
		{"0 4 */2 * 1", "UTC", "2026-05-01 12:00:00 +0000", []string{"2026-05-11 04:00:00 +0000", "2026-05-25 04:00:00 +0000"}},
		{"0 4 * * 7", "UTC", "2026-05-04 12:00:00 +0000", []string{"2026-05-10 04:00:00 +0000"}},
		{
			"0 4 * * sat-sun", "UTC", "2026-05-04 12:00:00 +0000",
			[]string{"2026-05-09 04:00:00 +0000", "2026-05-10 04:00:00 +0000", "2026-05-16 04:00:00 +0000"},
		},
		{"0 0 29 feb *", "UTC", "2026-05-04 12:00:00 +0000", []string{"2028-02-29 00:00:00 +0000", "2032-02-29 00:00:00 +0000"}},
	} {
		c, err := ParseCalendar(x.fields, x.zone)
		if err != nil {
			t.Errorf("%s %s: %v", x.fields, x.zone, err)
			continue
		}
		at, err := time.Parse(form, x.after)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range x.want {
			at = c.Next(at)
			if got := at.Format(form); got != want {
				t.Errorf("%s after %s: %s, want %s", c, x.after, got, want)
				break
			}
		}
	}
}

// TestCalendarOverYears checks that the times of schedules rise, that each day has one, and
// that the one after a time does not depend on when one asks.
func TestCalendarOverYears(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"} {
		c, err := ParseCalendar("30 2 * * *", zone)
		if err != nil {
			t.Fatal(err)
		}
		at := c.Next(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
		for range 3 * 365 {
			next := c.Next(at)
			if days := wall(next).Truncate(24 * time.Hour).Sub(wall(at).Truncate(24 * time.Hour)); days != 24*time.Hour {
				t.Fatalf("%s: %v after %v", zone, next, at)
			}
			for _, between := range []time.Duration{time.Second, time.Hour, 12 * time.Hour, next.Sub(at) - time.Nanosecond} {
				if got := c.Next(at.Add(between)); !got.Equal(next) {
					t.Fatalf("%s: %v after %v, want %v", zone, got, at.Add(between), next)
				}
			}
			at = next
		}
	}
}

// TestCalendarMistakes checks that a schedule is refused with what to write.
func TestCalendarMistakes(t *testing.T) {
	for _, x := range []struct{ fields, zone, want string }{
		{"", "", "is not five fields, but 0"},
		{
			"15 3 * *", "",
			`is not five fields, but 4; write minute, hour, day of the month, month and day of the week in quotes, as in "15 3 * * 1-5"`,
		},
		{"0 15 3 * * *", "", "is not five fields, but 6"},
		{"@daily", "", "does not have five fields"},
		{"@every 1h", "", "does not have five fields"},
		{"TZ=UTC 15 3 * * *", "", "and the time zone after them"},
		{"60 3 * * *", "", "above maximum (59)"},
		{"x 3 * * *", "", "write the fields as in a crontab"},
		{"0 0 L * *", "", "L, W and # are not possible here"},
		{"H 0 * * *", "", "write the fields as in a crontab"},
		{"0 0 * * 5#2", "", "L, W and # are not possible here"},
		{"0 0 15W * *", "", "L, W and # are not possible here"},
		{"0 0 * * 5L", "", "L, W and # are not possible here"},
		{"0 0 * * WEN", "", `"0 0 * * WEN": failed to parse`},
		{"0 0 30 2 *", "", "no day ever has this date; correct the day of the month or the month"},
		{", 0 * * *", "", "no day ever has this date"},
		{"15 3 * * *", "Europe/Berln", `there is no time zone "Europe/Berln"; write one such as Europe/Berlin`},
		{"15 3 * * *", "Local", `there is no time zone "Local"`},
	} {
		if _, err := ParseCalendar(x.fields, x.zone); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q %q: %v, want %q", x.fields, x.zone, err, x.want)
		}
	}
}

// TestCalendarGrace checks the default grace: a share of the shortest time between two beats.
func TestCalendarGrace(t *testing.T) {
	for fields, want := range map[string]time.Duration{
		"15 3 * * 1-5":  144 * time.Minute,
		"*/5 * * * *":   30 * time.Second,
		"0,10 3 * * *":  time.Minute,
		"0 0 1 * *":     28 * 24 * time.Hour / 10,
		"59 23 * * 6":   7 * 24 * time.Hour / 10,
		"0 0 29 2 *":    1461 * 24 * time.Hour / 10,
		"0 9-17 * * 1":  6 * time.Minute,
		"0 0 31 12 1-7": 144 * time.Minute,
	} {
		c, err := ParseCalendar(fields, "UTC")
		if err != nil {
			t.Fatal(err)
		}
		if got := (&Expect{Calendar: c}).DefaultGrace(); got != want {
			t.Errorf("%s: %v, want %v", fields, got, want)
		}
	}
}
