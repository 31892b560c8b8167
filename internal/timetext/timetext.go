// Package timetext writes times as people read them, with their zone.
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

// Parse reads what [Format] and [FormatSeconds] have written, a time in the form of RFC 3339, or a day
// such as 2026-11-28, which begins at midnight in UTC.
func Parse(text string) (t time.Time, err error) {
	for _, layout := range []string{time.RFC3339, minutes, seconds, time.DateOnly} {
		if t, err = time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return t, err
}
