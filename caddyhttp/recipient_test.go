package caddyhttp

import (
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-notify/caddy-notify/caddyhttp/events"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/caddyhttp/logs"
)

// TestUnknownRecipients checks that an unknown key or tag is an error when the
// configuration loads, in any order in which Caddy loads its modules.
func TestUnknownRecipients(t *testing.T) {
	caddyhttptest.ReplaceShared(t) // Caddy keeps its log open
	const notify = "notify {\nkey k {\nurl json://h a\n}\n}\n"
	for options, want := range map[string]string{
		notify + "events {\non x notify other\n}":                "on x notify: the global option notify has no key other",
		notify + "events {\non x notify k\non y notify other\n}": "on y notify: the global option notify has no key other",
		notify + "events {\non * notify other\n}":                "on * notify: the global option notify has no key other",
		"log x {\noutput notify k\n}":                            "the global option notify is missing",
		"log {\noutput notify k\n}\nevents {\non x notify k\n}":  "the global option notify is missing",
		"events {\non x notify other\n}":                         "the global option notify has no key other",
		notify + "events {\non x notify k {\ntag b\n}\n}":        "none of the 1 destinations of the key k has the tag b",
		notify + "log x {\noutput notify other\n}":               "log output notify: the global option notify has no key other",
		notify + "log x {\noutput notify k {\ntag b\n}\n}": "log output notify: " +
			"none of the 1 destinations of the key k has the tag b",
		notify + "events {\non x notify k\n}\nlog x {\noutput notify k\n}": "",
	} {
		for range 5 { // the order is random
			err := caddy.Validate(adapted(t, "{\nadmin off\npersist_config off\n"+options+"\n}\n"))
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Fatalf("%s\nerror %v, want %q", options, err, want)
			}
		}
	}
}

// TestUnknownRecipientsBesideSites checks the same for a configuration in which
// a site has the gateway.
func TestUnknownRecipientsBesideSites(t *testing.T) {
	caddyhttptest.ReplaceShared(t) // Caddy keeps its log open
	const site = "http://localhost:9080 {\nroute {\nnotify\n}\n}\n"
	inbox := "notify {\nqueue {\npath " + t.TempDir() + "\n}\nkey k {\ninbox 1h\nreader reader-of-the-inbox\n}\n}\n"
	for options, want := range map[string]string{
		"notify {\nkey k {\nurl json://h a\n}\n}\nlog x {\noutput notify nope\n}":          "the global option notify has no key nope",
		"notify {\nkey k {\nurl json://h a\n}\n}\nlog x {\noutput notify k {\ntag b\n}\n}": "has the tag b",
		"log x {\noutput notify nope\n}":                                                   "the global option notify is missing",
		"notify {\nkey k {\nurl json://h a\n}\n}\nlog x {\noutput notify k\n}":             "",
		inbox + "events {\non x notify k\n}\nlog x {\noutput notify k\n}":                  "",
	} {
		for range 20 { // the order is random
			err := caddy.Validate(adapted(t, "{\nadmin off\npersist_config off\n"+options+"\n}\n"+site))
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Fatalf("%s\nerror %v, want %q", options, err, want)
			}
		}
	}
}

// TestRecipientMistakes checks that mistakes in the blocks of events and logs
// are reported with their line.
func TestRecipientMistakes(t *testing.T) {
	type unmarshaler = caddyfile.Unmarshaler
	both := []func() unmarshaler{func() unmarshaler { return new(events.Handler) }, func() unmarshaler { return new(logs.Writer) }}
	event, log := both[:1], both[1:]
	for _, tt := range []struct {
		to         []func() unmarshaler
		text, line string
		want       string
	}{
		{both, "notify", "1", "expected notify <key> [{ … }]"},
		{both, "notify a b", "1", "expected notify <key> [{ … }]"},
		{both, "notify a.b", "1", "1 to 128 letters"},
		{both, "notify k {\nkey x\n}", "2", `unknown subdirective "key" in notify`},
		{both, "notify k {\ntag\n}", "2", "expected tag <expression>"},
		{both, "notify k {\ntag $\n}", "2", "tag: "},
		{both, "notify k {\ntag ,\n}", "2", "tag: it names no tag; write a tag expression"},
		{both, "notify k {\ntype bad\n}", "2", "type: unknown type"},
		{both, "notify k {\ntype info\ntype info\n}", "3", "occurs twice in notify"},
		{both, "notify k {\ntitle a b\n}", "2", "expected title <text>"},
		{both, "notify k {\ntitle \"\"\n}", "2", "must not be empty"},
		{event, "notify k {\nbody\n}", "2", "expected body <text>"},
		{event, "notify k {\nformat\n}", "2", "expected format text|markdown|html"},
		{event, "notify k {\nbody x\nformat rtf\n}", "3", "unknown format"},
		{event, "notify k {\nformat html\n}", "1", "format has no effect without body"},
		{event, "notify k {\ninterval 1m\n}", "2", "unknown subdirective"},
		{log, "notify k {\nbody x\n}", "2", "unknown subdirective"},
		{log, "notify k {\ninterval 10\n}", "2", "one second or more"},
		{log, "notify k {\ninterval 10ms\n}", "2", "one second or more"},
		{log, "notify k {\nmax 0\n}", "2", "a whole number from 1 to 100"},
		{log, "notify k {\nmax 101\n}", "2", "a whole number from 1 to 100"},
		{log, "notify k {\nmax 1 {\n}\n}", "2", "max takes no block"},
	} {
		for _, to := range tt.to {
			m := to()
			err := m.UnmarshalCaddyfile(caddyfile.NewTestDispenser(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasSuffix(err.Error(), ", at Testfile:"+tt.line) {
				t.Errorf("%T: %q: %v\nwant %q and line %s", m, tt.text, err, tt.want, tt.line)
			}
		}
	}
	for module, configs := range map[string]map[string]string{
		"events.handlers.notify": {
			`{"key":"a.b"}`:                 "1 to 128 letters",
			`{"key":"k","type":"bad"}`:      "unknown type",
			`{"key":"k","format":"rtf"}`:    "unknown format",
			`{"key":"k","format":"html"}`:   "format has no effect without body",
			`{"key":"k","tag":"$"}`:         "tag: ",
			`{"key":"k","interval":"1000"}`: "unknown field",
		},
		"caddy.logging.writers.notify": {
			`{}`:                             "1 to 128 letters",
			`{"key":"k","type":"bad"}`:       "unknown type",
			`{"key":"k","interval":1000000}`: "interval: it must be a duration",
			`{"key":"k","interval":-1}`:      "interval: it must be a duration",
			`{"key":"k","max":-1}`:           "max: it must be a whole number",
			`{"key":"k","max":101}`:          "max: it must be a whole number",
		},
	} {
		for config, want := range configs {
			ctx, err := provisionContext(t, &caddy.Config{Admin: &caddy.AdminConfig{Disabled: true}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ctx.LoadModuleByID(module, []byte(config)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s: %v, want %q", module, config, err, want)
			}
		}
	}
}
