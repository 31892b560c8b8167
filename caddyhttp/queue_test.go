package caddyhttp

import (
	"strings"
	"testing"
)

func TestQueueMistakes(t *testing.T) {
	for config, want := range map[string]string{
		"queue {\nsecret short\n}":                                "16 or more characters",
		"queue postgres postgres://localhost/x":                   "needs a secret",
		"queue postgres":                                          "expected queue [postgres <dsn>]",
		"queue mysql x":                                           "expected queue [postgres <dsn>]",
		"queue {\nwait 0s\n}":                                     "wait: it must be a duration above 0",
		"queue {\npath {http.request.host}\n}":                    "has no value when the configuration loads",
		"queue postgres x {\npath /x\nsecret " + t.Name() + "\n}": "path has no effect with postgres",
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
