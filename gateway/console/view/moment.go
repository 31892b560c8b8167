package view

import (
	"strconv"
	"time"
)

// Moment is a time and its distance from the time of its page. What is still to come is rounded up
// and what lasts is rounded down, so that neither promises too much. The clock is added to what is
// an hour away or more. page.js does the same in the time zone of the reader.
type Moment struct {
	Time time.Time
	Text string // such as "12 s ago" or "in 4 h (16:00 UTC)"
	For  string // such as "for 14 min"; "" for a future time
}

// NewMoment returns the time t as a page of the time now shows it.
func NewMoment(t, now time.Time) Moment {
	switch d := now.Sub(t); {
	case d < 0:
		text, long := rounded(-d, true)
		return Moment{Time: t, Text: "in " + text + clock(t, now, long, "")}
	default:
		text, long := rounded(d, false)
		m := Moment{Time: t, Text: text + " ago" + clock(t, now, long, ""), For: "for " + text + clock(t, now, long, "since ")}
		if d < time.Second {
			m.Text = "now"
		}
		return m
	}
}

// rounded returns a duration in one unit, such as "14 min", rounded up or down. long reports whether
// it is an hour or more.
func rounded(d time.Duration, up bool) (text string, long bool) {
	count := func(unit time.Duration) int {
		if up {
			return int((d + unit - 1) / unit)
		}
		return int(d / unit)
	}
	switch s, m, h := count(time.Second), count(time.Minute), count(time.Hour); {
	case s < 60:
		return strconv.Itoa(max(s, 1)) + " s", false
	case m < 60:
		return strconv.Itoa(m) + " min", false
	case h < 48:
		return strconv.Itoa(h) + " h", true
	}
	return strconv.Itoa(count(24*time.Hour)) + " days", true
}

// clock returns the time of the clock in parentheses, with the day if it is another one.
func clock(t, now time.Time, long bool, before string) string {
	if !long {
		return ""
	}
	form := "15:04 UTC"
	if t, now = t.UTC(), now.UTC(); t.Format(time.DateOnly) != now.Format(time.DateOnly) {
		form = "2 Jan, 15:04 UTC"
	}
	return " (" + before + t.Format(form) + ")"
}

// Length returns a duration in words: "7 days", "36 hours", or "90 min".
func Length(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= day && d%day == 0:
		return Count(int(d/day), "day", "days")
	case d >= time.Hour && d%time.Hour == 0:
		return Count(int(d/time.Hour), "hour", "hours")
	case d >= time.Minute && d%time.Minute == 0:
		return strconv.Itoa(int(d/time.Minute)) + " min"
	}
	return d.String()
}

// The forms of a time in a page: for readers, to the minute or to the second, and for scripts.
func readableTime(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04 UTC") }
func exactTime(t time.Time) string    { return t.UTC().Format("2 Jan 2006, 15:04:05 UTC") }
func machineTime(t time.Time) string  { return t.UTC().Format("2006-01-02T15:04:05Z") }
