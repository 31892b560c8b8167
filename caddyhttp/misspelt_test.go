package caddyhttp

import (
	"strings"
	"testing"
)

// TestMisspelt checks that the error about a misspelt word names the one that was meant.
func TestMisspelt(t *testing.T) {
	const key = "key a {\nurl json://127.0.0.1:9\n"
	for block, want := range map[string]string{
		key + "inbxo 7d\n}":                                "inbox",
		key + "escalte {\n}\n}":                            "escalate",
		key + "quite 22:00-07:00\n}":                       "quiet",
		key + "expct a every 1h\n}":                        "expect",
		"psuh {\n}":                                        "push",
		"push {\ncontct x\n}":                              "contact",
		"queue {\nmaxage 1h\n}":                            "max_age",
		"services {\ndeny telegram\n}":                     "tgram",
		"key a {\nurl gotify://127.0.0.1/tok?prio=high\n}": "priority",
	} {
		if _, err := loadCaddyfile(t, withOptions(block, "")); err == nil || !strings.Contains(err.Error(), "you may mean "+want) {
			t.Errorf("%s: the error is %v, want it to name %s", block, err, want)
		}
	}
}
