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
