package view

import (
	"testing"
	"time"
)

// TestWeekWords checks what stands beside the bars of a week, and that each bar says what it shows.
func TestWeekWords(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	for want, d := range map[string]IncidentDay{
		"Saturday 28 November: none":                                        {},
		"Saturday 28 November: 1 warning":                                   {Others: 1},
		"Saturday 28 November: 1 failure, 2 warnings":                       {Failures: 1, Others: 2},
		"Saturday 28 November: 3 escalated, 2 other failures":               {Escalated: 3, Failures: 2},
		"Saturday 28 November: 1 escalated, 1 other failure, 1 warning":     {Escalated: 1, Failures: 1, Others: 1},
		"Saturday 28 November: 12 escalated, 200 other failures, 1 warning": {Escalated: 12, Failures: 200, Others: 1},
	} {
		if d.Begin = day; d.Name() != want {
			t.Errorf("%q, want %q", d.Name(), want)
		}
	}
	w := IncidentWeek{Keep: 7 * 24 * time.Hour}
	w.Days[0].Failures, w.Days[6].Failures = 2, 3
	if got := w.Sum(); got != "5 failures" {
		t.Errorf("%q", got)
	}
	w.Cut, w.Keep = true, 48*time.Hour
	if got := w.Sum(); got != "at least 5 failures; those that are resolved are kept for 2 days" {
		t.Errorf("%q", got)
	}
}

// TestWeekBars checks that a bar stays inside its picture, that each part of it can be seen, and that
// higher bars mean more.
func TestWeekBars(t *testing.T) {
	t.Parallel()
	var w IncidentWeek
	w.Days[0] = IncidentDay{Escalated: 1, Failures: 5000, Others: 1}
	w.Days[1] = IncidentDay{Failures: 2500}
	w.Days[2] = IncidentDay{Others: 1}
	bars := w.Bars()
	for i := range bars {
		b := &bars[i]
		if b.Label < 8 || len(b.Parts) == 0 != (b.Opened() == 0) || i > 0 && i < 4 && b.Top < bars[i-1].Top {
			t.Errorf("bar %d: %+v", i, b)
		}
		for _, p := range b.Parts {
			if p.Height < weekLeast || p.Y+p.Height > weekBottom {
				t.Errorf("bar %d: %+v", i, p)
			}
		}
	}
	if bars[0].Parts[0].Class != "escalated" || bars[0].Parts[2].Class != "other" {
		t.Errorf("%+v", bars[0].Parts)
	}
}
