package timetext_test

import (
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/timetext"
)

// TestTimes checks that times are written with their zone, and read back. A day begins in the zone of
// the server.
func TestTimes(t *testing.T) {
	server := time.Local
	t.Cleanup(func() { time.Local = server })
	time.Local = time.FixedZone("", -3*3600)
	at := time.Date(2026, 11, 28, 17, 25, 14, 0, time.FixedZone("", 3600))
	if got := timetext.Format(at); got != "28 Nov 2026, 16:25 UTC" {
		t.Error(got)
	}
	if got := timetext.FormatSeconds(at); got != "28 Nov 2026, 16:25:14 UTC" {
		t.Error(got)
	}
	for text, want := range map[string]time.Time{
		timetext.FormatSeconds(at):  at,
		timetext.Format(at):         at.Truncate(time.Minute),
		at.Format(time.RFC3339):     at,
		"2026-11-28":                time.Date(2026, 11, 28, 3, 0, 0, 0, time.UTC),
		"28 Nov 2026":               {},
		"28 Nov 2026, 16:25:14 CET": {},
	} {
		if got, err := timetext.Parse(text); err == nil != !want.IsZero() || err == nil && !got.Equal(want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}
