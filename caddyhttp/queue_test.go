package caddyhttp

import (
	"strings"
	"testing"
	"time"
)

func TestQueueMistakes(t *testing.T) {
	for config, want := range map[string]string{
		"queue {\nsecret short\n}":                                "16 or more characters",
		"queue postgres postgres://localhost/x":                   "needs a secret",
		"queue postgres":                                          "expected queue [postgres <dsn>]",
		"queue mysql x":                                           "expected queue [postgres <dsn>]",
		"queue {\nwait 0s\n}":                                     "wait: it must be a duration above 0",
		"queue {\npath {http.request.host}\n}":                    "has no value when the configuration loads",
		"queue postgres x {\npath /x\nsecret " + t.Name() + "\n}": "the store is set twice",
		"queue postgres postgres://u:hunter2@[/x {\nsecret " + t.Name() + "\n}": "connection string",
		"key messages {\nurl json://localhost\n}":                               "choose another name",
	} {
		_, err := provision(t, "", config)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s\nerror %v\nwant %s", config, err, want)
		}
	}
	if _, err := provision(t, "queue", ""); err == nil || !strings.Contains(err.Error(), "global option") {
		t.Errorf("in a site: %v", err)
	}
}

// TestQueueFallbackMistakes checks that a fallback that gets nothing does not load.
func TestQueueFallbackMistakes(t *testing.T) {
	keys := func(fallbacks ...string) (out string) {
		for _, f := range fallbacks {
			name, to, _ := strings.Cut(f, " ")
			out += "key " + name + " {\nurl json://127.0.0.1\n"
			if to != "" {
				out += "fallback " + to + "\n"
			}
			out += "}\n"
		}
		return out
	}
	for _, tt := range []struct{ site, global, want string }{
		{"", keys("a b", "b"), "fallback: it has no effect without a queue"},
		{"", "queue\n" + keys("a b", "b"), ""},
		{"", "queue\n" + keys("a b", "b c", "c"), ""},
		{"", "queue\n" + keys("a b"), "there is no key b here"},
		{"", "queue\n" + keys("a a"), "it leads back to the key a in a circle"},
		{"", "queue\n" + keys("a b", "b c", "c a"), "it leads back to the key a in a circle"},
		{keys("b a"), "queue\n" + keys("a b", "b"), "in a circle"},
		{keys("a b"), "queue\n" + keys("b"), ""},
		{"", "queue\nkey a {\nurl json://127.0.0.1\nqueue off\nfallback b\n}\n" + keys("b"), "fallback: it has no effect"},
	} {
		_, err := provision(t, tt.site, tt.global)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s%s\nerror %v\nwant %s", tt.global, tt.site, err, tt.want)
		}
	}
}

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
	s := h.app.gateway.Conf.QueueSettings
	if s.MaxAge != 8*time.Second || s.MaxSize != 8<<10 || s.Wait != 10*time.Millisecond || s.Keep != 48*time.Hour {
		t.Errorf("the queue is %+v", s)
	}
	if w := s.Watchdog; w == nil || w.URL.String() != "https://host.example/ping/s3cret" || w.Interval != 90*time.Second {
		t.Errorf("the watchdog is %+v", w)
	}
	h = newGateway(t, "", "queue {\npath "+t.TempDir()+"\n}")
	if w := h.app.gateway.Conf.QueueSettings.Watchdog; w != nil {
		t.Errorf("without beat, the watchdog is %+v", w)
	}
}
