package rules

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/netresearch/go-cron"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// Calendar is a schedule by wall-clock time, as in a line of a crontab. The zero value is no
// schedule.
type Calendar struct {
	fields string // with one space between them; "" for none
	name   string // of the zone, as written; "" for the server's zone
	zone   Zone
	times  cron.Schedule // of a clock that is never changed
}

// starBit is set in a field of a [cron.SpecSchedule] that allows all days.
const starBit = 1 << 63

// cronFields is the number of fields of a schedule.
const cronFields = 5

var cronParser = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom)

// quartzDay matches forms of the day field that other programs allow: L for the last day, W for a
// working day, and # for one of several.
var quartzDay = lazyregexp.New(`(?i)^(L(-\d+|W)?|\d+[LW]|\w+#\d)$`)

// errNeverDue is returned for a schedule without a day, such as 30 February.
var errNeverDue = errors.New("no day ever has this date; correct the day of the month or the month")

// calendarBase is the start of a period in which every schedule that is ever due is due at least
// once.
var calendarBase = time.Date(2001, time.January, 1, 0, 0, 0, 0, time.UTC)

// ParseCalendar parses the five fields of a schedule, and the name of a zone. An empty name
// stands for the zone of the server.
func ParseCalendar(text, zone string) (c Calendar, err error) {
	fields := strings.Fields(text)
	switch {
	case strings.HasPrefix(text, "@") || strings.Contains(text, "TZ="):
		return c, fmt.Errorf(`%q does not have five fields; write minute, hour, day of the month, `+
			`month and day of the week, as in "15 3 * * 1-5", and the time zone after them`, cut(text))
	case len(fields) != cronFields:
		return c, fmt.Errorf(`%q is not five fields, but %d; write minute, hour, day of the month, `+
			`month and day of the week in quotes, as in "15 3 * * 1-5"`, cut(text), len(fields))
	}
	c.fields, c.name = strings.Join(fields, " "), zone
	if zone != "" {
		location, err := loadZone(zone)
		if err != nil {
			return Calendar{}, fmt.Errorf("there is no time zone %q; write one such as Europe/Berlin, America/New_York or UTC", cut(zone))
		}
		c.zone = Zone{location}
	}
	times, err := cronParser.Parse(c.fields)
	if err != nil {
		if quartzDay.MatchString(fields[2]) || quartzDay.MatchString(fields[4]) {
			return Calendar{}, fmt.Errorf(`%q: L, W and # are not possible here; `+
				`write the fields as in a crontab, such as "15 3 * * 1-5"`, cut(text))
		}
		return Calendar{}, fmt.Errorf(`%q: %w; write the fields as in a crontab, such as "15 3 * * 1-5"`, cut(text), err)
	}
	if s, ok := times.(*cron.SpecSchedule); ok {
		// The days of the month and of the week are alternatives, unless one of the fields
		// begins with a star. The parser takes */2 for one without.
		if strings.HasPrefix(fields[2], "*") {
			s.Dom |= starBit
		}
		if strings.HasPrefix(fields[4], "*") {
			s.Dow |= starBit
		}
	}
	if c.times = times; times.Next(calendarBase).IsZero() {
		return Calendar{}, fmt.Errorf("%q: %w", cut(text), errNeverDue)
	}
	return c, nil
}

// IsZero reports whether c is no schedule.
func (c Calendar) IsZero() bool { return c.fields == "" }

// Fields returns the five fields.
func (c Calendar) Fields() string { return c.fields }

// Zone returns the name of the zone; "" stands for the server's zone.
func (c Calendar) Zone() string { return c.name }

// String returns the fields, and the zone if one is set.
func (c Calendar) String() string { return strings.TrimSpace(c.fields + " " + c.name) }

// wall returns the wall-clock time at t, as a time in UTC.
func wall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// firstAt returns the first time at which the wall clock of a zone shows w. If the clock is put
// forward past w, firstAt returns the end of the gap.
func firstAt(w time.Time, zone *time.Location) time.Time {
	t := time.Date(w.Year(), w.Month(), w.Day(), w.Hour(), w.Minute(), w.Second(), 0, zone)
	start, end := t.ZoneBounds()
	switch shows := wall(t); {
	case shows.After(w): // t is after the gap
		return start
	case shows.Before(w): // t is before the gap
		return end
	case start.IsZero():
		return t
	}
	_, now := t.Zone()
	_, before := start.Add(-1).Zone()
	if first := t.Add(time.Duration(now-before) * time.Second); first.Before(start) {
		return first // the clock is put back between first and t
	}
	return t
}

// maxNext is the number of times after which [Calendar.Next] gives up. An hour has 60 times, and no
// zone repeats more than a day.
const maxNext = 25 * 60

// Next returns the first time after t that is in the schedule. A time in the gap of a clock that is
// put forward moves to the end of the gap, and of a time that comes twice, the first counts.
func (c Calendar) Next(t time.Time) time.Time {
	t = c.zone.In(t)
	w := wall(t)
	for range maxNext {
		if w = c.times.Next(w); w.IsZero() {
			break
		}
		if at := firstAt(w, t.Location()); at.After(t) {
			return at
		}
	}
	return t.AddDate(5, 0, 0) // the search ends there, over a century without a leap day
}

// shortest returns the shortest interval between the first times of the schedule.
func (c Calendar) shortest() time.Duration {
	const times = 2000 // more than a day has minutes
	short, last := time.Duration(0), c.times.Next(calendarBase)
	for range times {
		next := c.times.Next(last)
		if next.IsZero() {
			break
		}
		short = min(cmp.Or(short, next.Sub(last)), next.Sub(last))
		last = next
	}
	return cmp.Or(short, maxEvery)
}
