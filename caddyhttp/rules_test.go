package caddyhttp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestRuleMistakes checks that rules that cannot work do not load, and that the error
// has the line and says what to write.
func TestRuleMistakes(t *testing.T) {
	queue := "queue {\npath " + t.TempDir() + "\n}\n"
	for rule, want := range map[string]string{
		"dedupe 0s":                "dedupe: it must be a duration above 0",
		"hold 0s":                  "hold: it must be a duration above 0",
		"hold 25h":                 "hold: the time must be from 1s to 24h",
		"hold 5m 5m":               "wrong number of arguments; expected hold <duration>",
		"hold 5m {\ntypes info\n}": "hold: types: only a failure or a warning opens an incident",
		"queue off\nhold 5m": "key ops: hold: rules keep what they hold " +
			"and what was sent in the queue, which the key does not use; remove queue off",
		"dedupe 10m 5m": "wrong number of arguments; expected dedupe <duration> [{ types <type...>; tag <tag> }]",
		"dedupe 100d":   "dedupe: the time must be from 1s to 30d",
		"dedupe":        "expected dedupe <duration>",
		"escalate 5m": "escalate: after is missing; " +
			"write the times from each step to the next, as in escalate after 5m 15m",
		"escalate after":                       "escalate: after is missing",
		"escalate after soon":                  "escalate: ",
		"escalate after 40d":                   "escalate: after: the time must be from 1s to 30d",
		"escalate after 5m {\nack 40d\n}":      "escalate: ack: the time must be from 1s to 30d",
		"escalate after 5m {\nrepeat 21\n}":    "escalate: repeat: the number of rounds must be from 1 to 20",
		"escalate after 5m {\ntypes info\n}":   "escalate: types: info does not open an incident; write failure, or failure warning",
		"escalate after 5m\nescalate after 6m": "escalate occurs twice in key; remove one",
		"dedupe 10m\ndedupe 20m":               "dedupe occurs twice in key; remove one",
		"quiet":                                "expected quiet <from>-<to>",
		"quiet mon-fri":                        "quiet: it needs one window, such as 22:00-07:00",
		"quiet 22:00":                          "quiet: it needs the end of the window, too",
		"quiet 22:00-07:00 08:00-09:00":        "quiet: it needs one window",
		"quiet 25:00-07:00":                    "quiet: a time of day is written as 07:30",
		"quiet 22:60-07:00":                    "quiet: a time of day is written as 07:30",
		"quiet 22:00-07:00 mo":                 `quiet: "mo" is neither a weekday (mon, mon-fri, sat,sun) nor a time (07:00) nor a time zone`,
		"quiet 22:00-07:00 Europe/Berln":       `quiet: there is no time zone "Europe/Berln"; write one such as`,
		"quiet 22:00-07:00 UTC mo":             "and there is a time zone already",
		"quiet 00:00-24:00":                    "quiet: the windows cover the whole week",
		"quiet 07:00-07:00":                    "quiet: the windows cover the whole week",
		"quiet 24:00-07:00":                    "quiet: a window cannot begin at 24:00",
		"silence":                              "expected silence <from>-<to>",
		"silence sun":                          "silence: it needs one window",
		"silence 02:00-04:00 su":               `silence: "su" is neither a weekday`,
		"silence 00:00-24:00": "silence: the windows cover the whole week, " +
			"so that what they match would never be told; make one shorter",
		"silence 00:00-24:00 {\ntitle x\n}":                      "silence: the windows cover the whole week",
		"silence 00:00-12:00\nsilence 12:00-24:00 {\ntag all\n}": "silence: the windows cover the whole week",
		"silence 02:00-04:00\nsilence 02:00-04:00 {\ntell\n}": "silence: " +
			"two of the silences have the same times, tag and title; remove one",
		"silence 02:00-04:00 {\ntag 1:a\n}":                                 "tag: it must be one tag of URLs",
		"silence 02:00-04:00 {\ntypes info\n}":                              `unknown subdirective "types" in silence`,
		"silence 02:00-04:00 {\ntell yes\n}":                                "wrong number of arguments; expected tell",
		"silence 02:00-04:00 {\nreason " + strings.Repeat("x", 201) + "\n}": "reason: it is longer than 200 bytes",
		"queue off\nsilence 02:00-04:00": "key ops: silence: " +
			"rules keep what they hold and what was sent in the queue, which the key does not use",
		"quiet 22:00-07:00 {\ntypes info\n}\nsilence 07:00-22:00": "quiet: the windows cover the whole week",
		"digest mon":                      "digest: it needs one time, such as 30s or mon 08:00",
		"digest 24:00":                    "digest: a digest at 24:00 is one at 00:00 of the next day",
		"digest 0s":                       "digest: it must be a duration above 0",
		"digest 100ms":                    "digest: the time must be from 1s to 30d",
		"digest 30s mon":                  "digest: a time of day is written as 07:30",
		"rate 10":                         "rate: a rate is a number of messages and a time, such as 10/1m",
		"rate ten/1m":                     "rate: a rate is a number of messages and a time",
		"rate 0/1m":                       "rate: the number of messages must be from 1",
		"rate 10/1m 5":                    "wrong number of arguments; expected rate <n>/<duration>",
		"rate 1/1ms":                      "rate: the time must be from 1s to 30d",
		"dedupe 1m {\ntag nobody\n}":      "key ops: dedupe: tag: no URL of the key has the tag nobody",
		"dedupe 1m {\ntag 1:a\n}":         "tag: it must be a tag of URLs",
		"dedupe 1m {\ntypes fatal\n}":     `types: "fatal" is no type; write info, success, warning or failure`,
		"dedupe 1m {\ntypes info info\n}": "types: info occurs twice",
		"dedupe 1m {\ntype info\n}":       `unknown subdirective "type" in dedupe`,
		"queue off\ndedupe 1m": "key ops: dedupe: rules keep what they hold " +
			"and what was sent in the queue, which the key does not use; remove queue off",
	} {
		_, err := loadCaddyfile(t, withOptions(queue+keyWith("ops", rule), ""))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Caddyfile:") {
			t.Errorf("%s: %v, want %q", rule, err, want)
		}
	}
	for options, want := range map[string]string{
		keyWith("ops", "queue on\ndedupe 1m"): "no queue",
		keyWith("ops", "rate 1/m"): "Caddyfile:5: key ops: " +
			"rate: rules keep what they hold and what was sent in the queue, and there is none; " +
			"add queue to the global option notify",
		keyWith("ops", "silence 02:00-04:00"):                           "Caddyfile:5: key ops: silence: rules keep what they hold",
		queue + opsKey + "configs {\nsilence 02:00-04:00 {\ntell\n}\n}": "tell: tell would send to every saved key at once; remove it",
		opsKey + "configs {\ndigest 30s\n}":                             "Caddyfile:7: configs: digest: rules keep what they hold",
		queue + opsKey + "configs {\nquiet 00:00-24:00\n}":              "quiet: the windows cover the whole week",
		queue + opsKey + "configs {\nquiet 00:00-24:00 mon-sun\n}":      "quiet: the windows cover the whole week",
	} {
		if _, err := loadCaddyfile(t, withOptions(options, "")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", options, err, want)
		}
	}
}

// TestRuleWords checks the ways to write the same rule.
func TestRuleWords(t *testing.T) {
	queue := "queue {\npath " + t.TempDir() + "\n}\n"
	for _, rule := range []string{
		"quiet 22:00-07:00", "quiet mon-fri 22:00-07:00 Europe/Berlin",
		"quiet Europe/Berlin Monday,wed 9:00-17:00", "quiet 00:00-24:00 sat sun UTC",
		"quiet 22:00-07:00 fri-mon {\ntypes failure warning\n}", "digest 30s",
		"digest 8:00", "digest mon-fri 08:00", "digest UTC sun 00:00", "digest 7d",
		"hold 5m", "hold 1d {\ntypes failure\n}", "rate 10/1m", "rate 10/m", "rate 100/h", "rate 5/10s\nrate 20/1h {\ntypes info\n}", "dedupe 1d",
		"quiet 00:00-12:00 mon\nquiet 12:00-24:00 mon",
		"silence sun 02:00-04:00 Europe/Berlin {\ntitle disk\nreason \"move of disks\"\ntell\n}\nsilence 12:00-13:00",
		"silence UTC 22:00-02:00 sat sun {\ntag all\n}",
	} {
		if warnings, err := loadCaddyfile(t, withOptions(queue+keyWith("ops", rule), "")); err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v %q", rule, err, warnings)
		}
	}
}

// TestRuleJSON checks that JSON is held to the same.
func TestRuleJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"hold":{}}`:        "hold: the time must be from 1s to 24h",
		`{"dedupe":{}}`:      "dedupe: the time must be from 1s to 30d",
		`{"quiet":[null]}`:   "quiet: it is null",
		`{"silence":[null]}`: "silence: it is null",
		`{"silence":[{}]}`:   "silence: it needs one window",
		`{"silence":[{"window":"02:00-04:00","title":"a\nb"}]}`: "silence: " +
			"title and reason are one line each",
		`{"silence":[{"window":"02:00-04:00","days":["sun"],"zone":"UTC","tag":"all","tell":true}]}`: "",
		`{"quiet":[{}]}`: "quiet: it needs one window",
		`{"quiet":[{"window":"22:00-07:00","days":["x"]}]}`: `"x" is neither a weekday`,
		`{"quiet":[{"window":"22:00-07:00","zone":"x/y"}]}`: "there is no time zone",
		`{"digest":{}}`: "digest: it needs one time",
		`{"digest":{"every":1000000000,"at":"08:00"}}`:          "digest: it needs either a duration",
		`{"digest":{"every":1000000000,"days":["mon"]}}`:        "digest: days and a time zone need a time of the day",
		`{"rate":[{"count":1}]}`:                                "rate: the time must be from 1s to 30d",
		`{"rate":[null]}`:                                       "rate: it is null",
		`{"rate":[{"per":1000000000,"count":1,"types":["x"]}]}`: `rate: types: "x" is no type`,
		`{}`: "",
		`{"quiet":[{"window":"22:00-07:00","days":["mon","tue"],"zone":"UTC"}]}`: "",
	} {
		var c Rules
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		var o site.KeyOptions
		err := (&Key{Rules: c}).to(&o)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if (text == "{}") != (o.Rules == nil) {
			t.Errorf("%s: %+v", text, o.Rules)
		}
	}
	many := Rules{}
	for range maxRules + 1 {
		many.Rate = append(many.Rate, &Rate{Count: 1, Per: 1e9})
	}
	if err := (&Key{Rules: many}).to(new(site.KeyOptions)); err == nil {
		t.Error("more rules than allowed")
	}
}
