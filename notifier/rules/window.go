package rules

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Days are days of the week. The zero value stands for all.
type Days [7]bool

// on reports whether d is one of the days.
func (d Days) on(day time.Weekday) bool { return d == Days{} || d[day] }

// TimeOfDay is a time on the clock on the wall, in minutes since midnight. 24:00 is
// the end of a day.
type TimeOfDay int

const dayMinutes = 24 * 60

// String returns the time as parseTimeOfDay reads it.
func (t TimeOfDay) String() string { return fmt.Sprintf("%02d:%02d", int(t)/60, int(t)%60) }

// parseTimeOfDay parses a time such as 07:30.
func parseTimeOfDay(s string) (TimeOfDay, error) {
	h, m, ok := strings.Cut(s, ":")
	hours, err1 := strconv.ParseUint(h, 10, 8)
	minutes, err2 := strconv.ParseUint(m, 10, 8)
	t := TimeOfDay(hours*60 + minutes)
	if !ok || err1 != nil || err2 != nil || len(h) > 2 || len(m) != 2 || minutes > 59 || t > dayMinutes {
		return 0, errors.New("a time of day is written as 07:30, from 00:00 to 24:00")
	}
	return t, nil
}

// weekdays are the short names of the days, beginning with Sunday as package time
// does.
var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// weekday returns the day with a name such as mon or Monday.
func weekday(s string) (time.Weekday, bool) {
	s = strings.ToLower(s)
	for i, short := range weekdays {
		if s == short || s == strings.ToLower(time.Weekday(i).String()) {
			return time.Weekday(i), true
		}
	}
	return 0, false
}

// addDays adds the days that s names: mon, mon-fri, or several with commas between
// them. ok reports whether s has the form of days.
func (d *Days) addDays(s string) (ok bool) {
	out := *d
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, known := weekday(first)
		to := from
		if isRange {
			var knownToo bool
			to, knownToo = weekday(last)
			known = known && knownToo
		}
		if !known {
			return false
		}
		for day := from; ; day = (day + 1) % 7 {
			out[day] = true
			if day == to {
				break
			}
		}
	}
	*d = out
	return true
}

// Zone is a time zone. The zero Zone is the server's.
type Zone struct{ location *time.Location }

// In returns t in the zone.
func (z Zone) In(t time.Time) time.Time {
	if z.location == nil {
		return t.Local() //nolint:gosmopolitan // the server's zone is the default
	}
	return t.In(z.location)
}

// Location returns the zone for package time.
func (z Zone) Location() *time.Location {
	if z.location == nil {
		return time.Local //nolint:gosmopolitan // the server's zone is the default
	}
	return z.location
}

// Words are the arguments of a rule with wall-clock times, in any order.
type Words struct {
	Times    []string // 07:30, or 22:00-07:00
	Days     Days
	DayNames []string // as written
	Zone     Zone
	ZoneName string // as written; "" for none
}

// ParseWords sorts the arguments of a rule.
func ParseWords(args []string) (w Words, err error) {
	for _, arg := range args {
		switch {
		case arg != "" && arg[0] >= '0' && arg[0] <= '9':
			w.Times = append(w.Times, arg)
		case w.Days.addDays(arg):
			w.DayNames = append(w.DayNames, arg)
		case w.ZoneName != "":
			return w, fmt.Errorf("%q is neither a weekday (mon, mon-fri, sat,sun) nor a time (07:00), and there is a time zone already", cut(arg))
		default:
			location, err := loadZone(arg)
			if err != nil {
				return w, err
			}
			w.Zone, w.ZoneName = Zone{location}, arg
		}
	}
	return w, nil
}

// loadZone returns the zone with a name such as Europe/Berlin.
func loadZone(name string) (*time.Location, error) {
	if location, err := time.LoadLocation(name); err == nil && name != "" && name != "Local" {
		return location, nil
	}
	if strings.Contains(name, "/") {
		return nil, fmt.Errorf("there is no time zone %q; write one such as Europe/Berlin, America/New_York or UTC", cut(name))
	}
	return nil, fmt.Errorf("%q is neither a weekday (mon, mon-fri, sat,sun) nor a time (07:00) nor a time zone (Europe/Berlin)", cut(name))
}

// cut shortens what a user has written, for an error.
func cut(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

// Window is a part of some days by the wall clock. If End is not after Start, it ends on the next
// day.
type Window struct {
	Start, End TimeOfDay
	Days       Days // on which it begins
	Zone       Zone
}

// ParseWindow parses the arguments of quiet: 22:00-07:00, days and a zone.
func ParseWindow(args []string) (w Window, err error) {
	words, err := ParseWords(args)
	if err != nil {
		return w, err
	}
	if len(words.Times) != 1 {
		return w, errors.New("it needs one window, such as 22:00-07:00")
	}
	start, end, ok := strings.Cut(words.Times[0], "-")
	if !ok {
		return w, errors.New("it needs the end of the window, too, as in 22:00-07:00")
	}
	w.Days, w.Zone = words.Days, words.Zone
	if w.Start, err = parseTimeOfDay(start); err != nil {
		return w, err
	}
	if w.End, err = parseTimeOfDay(end); err != nil {
		return w, err
	}
	if w.Start == dayMinutes {
		return w, errors.New("a window cannot begin at 24:00; write 00:00 with the next day")
	}
	return w, nil
}

// has reports whether a wall-clock time is in the window.
func (w *Window) has(day time.Weekday, minute TimeOfDay) bool {
	if w.Start < w.End {
		return w.Days.on(day) && w.Start <= minute && minute < w.End
	}
	return w.Days.on(day) && w.Start <= minute || w.Days.on((day+6)%7) && minute < w.End
}

// Has reports whether t is in the window.
func (w *Window) Has(t time.Time) bool {
	t = w.Zone.In(t)
	return w.has(t.Weekday(), minuteOf(t))
}

// minuteOf returns the time of day of t.
func minuteOf(t time.Time) TimeOfDay { return TimeOfDay(60*t.Hour() + t.Minute()) }

// After returns the end of the window that contains t: the first minute at which the wall clock
// shows a time outside of the window, also across a change of the clock.
func (w *Window) After(t time.Time) time.Time { return w.walk(t, 1, true) }

// begun returns the start of the window that contains t.
func (w *Window) begun(t time.Time) time.Time { return w.walk(t, -1, true).Add(time.Minute) }

// next returns the next start of the window after t, which is outside of it.
func (w *Window) next(t time.Time) time.Time {
	for range 4 { // where the clock is put forward, a week may have no such time
		if t = w.walk(t, 1, false); w.Has(t) {
			break
		}
	}
	return t
}

// walk returns the first minute outside of the window, or inside of it if inside is false. It
// searches from t in steps of 1 or -1 minutes.
func (w *Window) walk(t time.Time, step int, inside bool) time.Time {
	t = w.Zone.In(t).Truncate(time.Minute)
	// The window may be followed by itself, as 00:00-24:00 is.
	minutes := 0
	for day, minute := t.Weekday(), minuteOf(t); w.has(day, minute) == inside && minutes <= 8*dayMinutes; minutes++ {
		switch minute += TimeOfDay(step); minute {
		case dayMinutes:
			day, minute = (day+1)%7, 0
		case -1:
			day, minute = (day+6)%7, dayMinutes-1
		}
	}
	by := time.Duration(step) * time.Minute
	end := t.Add(time.Duration(minutes) * by)
	if sameOffset(t, end) {
		return end
	}
	for end = t; w.Has(end) == inside && end.Sub(t).Abs() <= 9*24*time.Hour; end = end.Add(by) {
	}
	return end
}

// sameOffset reports whether two times have the same offset from UTC.
func sameOffset(a, b time.Time) bool {
	_, x := a.Zone()
	_, y := b.Zone()
	return x == y
}

// Moment is a wall-clock time on some days.
type Moment struct {
	At   TimeOfDay
	Days Days
	Zone Zone
}

// Next returns the next moment after t: the first minute of a day at which the clock
// on the wall shows At or, where the clock is put forward over it, a later time.
func (m *Moment) Next(t time.Time) time.Time {
	t = m.Zone.In(t)
	for n := range 9 {
		day := time.Date(t.Year(), t.Month(), t.Day()+n, 12, 0, 0, 0, t.Location())
		if at := m.on(day); m.Days.on(day.Weekday()) && at.After(t) {
			return at
		}
	}
	return t.Add(7 * 24 * time.Hour)
}

// on returns the moment on the day of noon.
func (m *Moment) on(noon time.Time) time.Time {
	date := noon.Format(time.DateOnly)
	at := time.Date(noon.Year(), noon.Month(), noon.Day(), int(m.At)/60, int(m.At)%60, 0, 0, noon.Location())
	const around = 3 * time.Hour // no change of the clock is larger
	before := at.Add(-around)
	if sameOffset(before, at.Add(around)) {
		return at
	}
	for at = before; ; at = at.Add(time.Minute) {
		if today := at.Format(time.DateOnly); today > date || today == date && minuteOf(at) >= m.At {
			return at
		}
	}
}

// coverWeek reports whether windows leave no minute of a week in winter, nor of one in summer.
func coverWeek(windows []Window) bool {
	for _, month := range []time.Month{time.January, time.July} {
		begin := time.Date(2026, month, 10, 0, 0, 0, 0, time.UTC)
		for n := range 7 * dayMinutes {
			at := begin.Add(time.Duration(n) * time.Minute)
			if !slices.ContainsFunc(windows, func(w Window) bool { return w.Has(at) }) {
				return false
			}
		}
	}
	return true
}
