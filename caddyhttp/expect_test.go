package caddyhttp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
)

// TestExpectMistakes checks that the Caddyfile is refused with the line and what to write.
func TestExpectMistakes(t *testing.T) {
	queue := "queue {\npath " + t.TempDir() + "\n}\n"
	for line, want := range map[string]string{
		"expect nightly":                               "wrong arguments; expected expect <name> every <duration>",
		"expect nightly 24h 2h":                        "expect: wrong arguments; expected expect <name> every <duration>",
		"expect nightly grace 2h":                      "expect: wrong arguments",
		"expect nightly every 24h 2h":                  "expect: wrong arguments",
		"expect nightly every 24h each 2h":             "expect: wrong arguments",
		"expect nightly every 24h every 2h":            "expect: every occurs twice",
		"expect nightly every day":                     "expect: every: it must be a duration above 0",
		"expect nightly every 500d":                    "expect: every: the time must be from 1s to 400d",
		"expect nightly every 100ms":                   "expect: every: the time must be from 1s to 400d",
		"expect nightly every 1d grace 1ms":            "expect: grace: the time must be from 1s to 400d",
		"expect nightly every 24h cron \"15 3 * * *\"": "expect: every and cron exclude each other; remove one",
		"expect nightly cron":                          "wrong arguments",
		"expect nightly cron \"\"":                     "expect: cron: \" \" is not five fields, but 0",
		"expect nightly cron 15 3 * * 1-5 grace 2h": "expect: cron: \"15\" is not five fields, " +
			"but 1; write minute, hour, day of the month, month and day of the week in quotes",
		"expect nightly cron \"15 3 * *\"":    "expect: cron: \"15 3 * *\" is not five fields, but 4",
		"expect nightly cron @daily UTC":      "expect: cron: \"@daily\" does not have five fields",
		"expect nightly cron \"15 24 * * *\"": "above maximum (23)",
		"expect nightly cron \"0 0 30 2 *\"": "expect: cron: " +
			"\"0 0 30 2 *\": no day ever has this date; correct the day of the month or the month",
		"expect nightly cron \"15 3 * * *\" Europe/Paname":       "expect: cron: there is no time zone \"Europe/Paname\"",
		"expect nightly cron \"15 3 * * *\" UTC UTC":             "expect: wrong arguments; expected expect <name> every <duration>|cron",
		"expect nightly cron \"15 3 * * *\" cron \"15 4 * * *\"": "expect: cron occurs twice",
		"expect nightly every 1d max_run 1ms":                    "expect: max_run: the time must be from 1s to 400d",
		"expect nightly every 1d max_run 1h max_run 2h":          "expect: max_run occurs twice",
		"expect a/b every 1d":                                    "expect: the name of a beat must be 1 to 64 letters, digits, _, - and .",
		"expect a every 1d\nexpect a every 2d":                   "expect: the name a occurs twice",
		"expect a every 1d {\ntag nobody\n}": "key ops: " +
			"expect a: tag: none of the 1 destinations of the key has the tag nobody",
		"expect a every 1d {\ntypes info\n}": `unknown subdirective "types" in expect`,
		"queue off\nexpect a every 1d": "key ops: expect a: " +
			"beats are kept in the queue, which the key does not use; remove queue off",
		"accept expect\nexpect a every 1d":                "expect cannot be the name of a source",
		"expect a every 1d grace 1h\nexpect b every 1d z": "expect: wrong arguments",
	} {
		_, err := loadCaddyfile(t, withOptions(queue+keyWith("ops", line), ""))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Caddyfile:") {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	if _, err := loadCaddyfile(t, withOptions(keyWith("ops", "expect a every 1d"), "")); err == nil ||
		!strings.Contains(err.Error(),
			"Caddyfile:5: key ops: expect a: beats are kept in the queue, and there is none; add queue to the global option notify") {
		t.Errorf("without a queue: %v", err)
	}
	if _, err := loadCaddyfile(t, withOptions(queue+opsKey+"configs {\nexpect a every 1d\n}", "")); err == nil ||
		!strings.Contains(err.Error(), `unknown subdirective "expect" in configs`) {
		t.Errorf("in configs: %v", err)
	}
	for _, line := range []string{
		"expect a every 1d", "expect a every 90s grace 1s", "expect a.b-c_1 grace 2h every 24h",
		"expect a every 1h\nexpect b every 1h", `expect a cron "15 3 * * 1-5" Europe/Berlin grace 2h max_run 1h`,
		`expect a max_run 1h cron "*/5 * * * *"`,
	} {
		if warnings, err := loadCaddyfile(t, withOptions(queue+keyWith("ops", line), "")); err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v %q", line, err, warnings)
		}
	}
}

// TestExpectJSON checks that JSON is held to the same.
func TestExpectJSON(t *testing.T) {
	many := make([]*Expect, 101)
	for i := range many {
		many[i] = &Expect{Name: fmt.Sprint("b", i), Every: 1e9}
	}
	for name, c := range map[string][]*Expect{
		"it is null":            {nil},
		"the name of a beat":    {{Every: 1e9}},
		"every: the time":       {{Name: "a"}},
		"grace: the time":       {{Name: "a", Every: 1e9, Grace: -1}},
		"the name occurs":       {{Name: "a", Every: 1e9}, {Name: "a", Every: 1e9}},
		"tag: it names no tag":  {{Name: "a", Every: 1e9, Tag: ","}},
		"it may occur":          many,
		"every and cron exclud": {{Name: "a", Every: 1e9, Cron: "15 3 * * *"}},
		"cron: \"x\" is no":     {{Name: "a", Cron: "x"}},
		"cron: there is no tim": {{Name: "a", Cron: "15 3 * * *", Zone: "Nowhere"}},
		"zone: it belongs to c": {{Name: "a", Every: 1e9, Zone: "UTC"}},
		"max_run: the time mus": {{Name: "a", Every: 1e9, MaxRun: -1}},
	} {
		s := Settings{Keys: map[string]*Key{"k": {URLs: []KeyURL{{URL: "json://localhost"}}, Expect: c}}}
		if _, err := s.resolve(nil, nil, parseUnshared, zap.NewNop()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
}

// TestExpectSettings checks what the Caddyfile makes of expectations.
func TestExpectSettings(t *testing.T) {
	h := newGateway(t, "", "queue {\npath "+t.TempDir()+"\n}\nkey k {\nurl json://localhost phone\nurl json://localhost other\n"+
		"expect nightly every 20m grace 5m {\ntag phone\n}\nexpect daily every 1d\n"+
		"expect backup cron \"15  3 * * 1-5\" Europe/Berlin max_run 1h\n}")
	k := h.app.gateway.Conf.Global.Keys["k"]
	for name, want := range map[string]struct {
		how           string
		grace, maxRun time.Duration
		told          int // destinations of the key that its tag matches
	}{
		"nightly": {"every 20m", 5 * time.Minute, 0, 1},
		"daily":   {"every 1d", 144 * time.Minute, 0, 2},
		"backup":  {"cron 15 3 * * 1-5 Europe/Berlin", 144 * time.Minute, time.Hour, 2},
	} {
		x := k.Expect(name)
		if x == nil || x.How() != want.how || x.Grace != want.grace || x.MaxRun != want.maxRun || len(k.Select(x.Tag)) != want.told {
			t.Errorf("%s is %+v, want %+v", name, x, want)
		}
	}
}
