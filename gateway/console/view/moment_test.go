package view

import (
	"testing"
	"time"
)

// TestMoment checks that a time to come is rounded up and one that lasts is rounded down, and that
// the clock is added from an hour on. Four hours from now were once "in 3 h".
func TestMoment(t *testing.T) {
	t.Parallel()
	now := time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		after     time.Duration // after now
		text, For string
	}{
		{0, "now", "for 1 s"},
		{-999 * time.Millisecond, "now", "for 1 s"},
		{time.Millisecond, "in 1 s", ""},
		{1500 * time.Millisecond, "in 2 s", ""},
		{-1500 * time.Millisecond, "1 s ago", "for 1 s"},
		{59*time.Second + time.Millisecond, "in 1 min", ""},
		{-59*time.Second - 999*time.Millisecond, "59 s ago", "for 59 s"},
		{time.Minute, "in 1 min", ""},
		{time.Minute + time.Second, "in 2 min", ""},
		{-119 * time.Second, "1 min ago", "for 1 min"},
		{59*time.Minute + time.Second, "in 1 h (12:59 UTC)", ""},
		{-59*time.Minute - 59*time.Second, "59 min ago", "for 59 min"},
		{time.Hour, "in 1 h (13:00 UTC)", ""},
		{4*time.Hour - time.Second, "in 4 h (15:59 UTC)", ""},
		{4 * time.Hour, "in 4 h (16:00 UTC)", ""},
		{-4*time.Hour + time.Second, "3 h ago (08:00 UTC)", "for 3 h (since 08:00 UTC)"},
		{-13 * time.Hour, "13 h ago (31 Dec, 23:00 UTC)", "for 13 h (since 31 Dec, 23:00 UTC)"},
		{47*time.Hour + time.Second, "in 2 days (3 Jan, 11:00 UTC)", ""},
		{-49 * time.Hour, "2 days ago (30 Dec, 11:00 UTC)", "for 2 days (since 30 Dec, 11:00 UTC)"},
	} {
		if m := NewMoment(now.Add(tt.after), now); m.Text != tt.text || m.For != tt.For {
			t.Errorf("%v: %q, %q; want %q, %q", tt.after, m.Text, m.For, tt.text, tt.For)
		}
	}
}
