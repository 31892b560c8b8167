package notifier

import (
	"testing"
	"time"
)

func TestOpenTime(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                     "",
		-time.Minute:                          "",
		time.Millisecond:                      "1 s",
		59*time.Second + 900*time.Millisecond: "59 s",
		time.Minute:                           "1 min",
		14*time.Minute + 50*time.Second:       "14 min",
		time.Hour + 20*time.Second:            "1 h",
		2*time.Hour + 5*time.Minute:           "2 h 5 min",
		24 * time.Hour:                        "1 d",
		76*time.Hour + 59*time.Minute:         "3 d 4 h",
	} {
		if got := (Incident{OpenFor: d}).OpenTime(); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}
