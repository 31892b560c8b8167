// Package timetext writes times as people read them, with their zone, and reads them and days.
package timetext

import "time"

const (
	minutes = "2 Jan 2006, 15:04 UTC"
	seconds = "2 Jan 2006, 15:04:05 UTC"
)

// Format returns a time to the minute, such as "28 Nov 2026, 16:25 UTC".
func Format(t time.Time) string { return t.UTC().Format(minutes) }

// FormatSeconds returns a time to the second, such as "28 Nov 2026, 16:25:14 UTC".
func FormatSeconds(t time.Time) string { return t.UTC().Format(seconds) }

// Parse reads what [Format] and [FormatSeconds] have written, a time in the form of RFC 3339, or a day as
// [ParseDay] does.
func Parse(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, minutes, seconds} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return ParseDay(text)
}

// ParseDay returns when a day such as 2026-11-28 begins in the server's zone, in which its users live.
func ParseDay(text string) (time.Time, error) {
	return time.ParseInLocation(time.DateOnly, text, time.Local) //nolint:gosmopolitan // see above
}
