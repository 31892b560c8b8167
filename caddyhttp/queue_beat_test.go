package caddyhttp

import (
	"strings"
	"testing"
	"time"
)

// TestWatchdogMistakes checks that the configuration is refused.
func TestWatchdogMistakes(t *testing.T) {
	t.Setenv("WATCHDOG_URL", "ftp://host/s3cret")
	for line, want := range map[string]string{
		"beat https://host":            "wrong number of arguments; expected beat <url> <interval>",
		"beat https://host x":          "beat: it must be a duration above 0",
		"beat https://host 1ms":        "queue: beat: the interval must be from 1s to 24h",
		"beat https://host 2d":         "queue: beat: the interval must be from 1s to 24h",
		"beat ftp://host/s3cret 1m":    "queue: beat: the address must begin with http:// or https:// and have a host",
		"beat {env.WATCHDOG_URL} 1m":   "queue: beat: the address must begin with http:// or https:// and have a host",
		"beat https:///s3cret 1m":      "queue: beat: the address must begin with http:// or https:// and have a host",
		"beat https://h%zz/s3cret 1m":  "queue: beat: the address must begin with http:// or https:// and have a host",
		"beat {file./no/s3cret/at} 1m": "queue: ",
	} {
		_, err := loadCaddyfile(t, withOptions("queue {\npath "+t.TempDir()+"\n"+line+"\n}\n"+opsKey, ""))
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "Caddyfile:") || strings.Contains(err.Error(), "//host/s3cret") {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// TestWatchdogSettings checks what the Caddyfile makes of the watchdog and of the times and
// the size of the queue.
func TestWatchdogSettings(t *testing.T) {
	t.Setenv("WATCHDOG_URL", "https://host.example/ping/s3cret")
	h := newGateway(t, "", "queue {\npath "+t.TempDir()+"\nmax_age 8s\nmax_size 8KiB\nwait 10ms\nkeep 2d\nbeat {env.WATCHDOG_URL} 90s\n}")
	s := h.app.gateway.Engine.QueueSettings
	if s.MaxAge != 8*time.Second || s.MaxSize != 8<<10 || s.Wait != 10*time.Millisecond || s.Keep != 48*time.Hour {
		t.Errorf("the queue is %+v", s)
	}
	if w := s.Watchdog; w == nil || w.URL.String() != "https://host.example/ping/s3cret" || w.Interval != 90*time.Second {
		t.Errorf("the watchdog is %+v", w)
	}
	h = newGateway(t, "", "queue {\npath "+t.TempDir()+"\n}")
	if w := h.app.gateway.Engine.QueueSettings.Watchdog; w != nil {
		t.Errorf("without beat, the watchdog is %+v", w)
	}
}
