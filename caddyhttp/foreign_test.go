package caddyhttp

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// disguised is a link whose text hides its address, in Markdown. A destination that
// takes Markdown gets it as disguisedShown if another program has written it.
const (
	disguised      = "[click](https://evil.example)"
	disguisedShown = `\[click\](https://evil.example)`
)

// TestForeignText checks for every way in whether a text counts as that of another
// program.
func TestForeignText(t *testing.T) {
	s := gatewaytest.NewStation(t)
	to := s.NotifyURL("/ops") + "?format=markdown"
	h := newGateway(t, `
		key ops {
			url `+to+`
		}
		from backup {
			title "{{.name}}"
			body "{{.text}}"
		}
		from trusted {
			body "{{.text}}"
			mentions on
		}
		from gitea {
			mentions on
		}
		from slack {
			mentions off
		}`, "")
	mapped := "?:alert.text=body&:name=title"
	for _, tt := range []struct {
		name, target, contentType, body string
		want                            string
	}{
		{"JSON", "/notify/ops", typeJSON, `{"title":"` + disguised + `","body":"` + disguised + `"}`, disguised},
		{"form", "/notify/ops", typeForm, "body=" + url.QueryEscape(disguised), disguised},
		{"text", "/notify/ops", "text/plain", disguised, disguised},
		{"mapped type", "/notify/ops?:state=type", typeJSON, `{"state":"down","body":"` + disguised + `"}`, disguised},
		{"mapped JSON", "/notify/ops" + mapped, typeJSON, `{"alert":{"text":"` + disguised + `"}}`, disguisedShown},
		{"mapped title", "/notify/ops" + mapped, typeJSON, `{"name":"x","body":"` + disguised + `"}`, disguisedShown},
		{"mapped form", "/notify/ops?:msg=body", typeForm, "msg=" + url.QueryEscape(disguised), disguisedShown},
		{"own templates", "/notify/ops/backup", typeJSON, `{"name":"x","text":"` + disguised + `"}`, disguisedShown},
		{"own templates with mentions", "/notify/ops/trusted", typeJSON, `{"text":"` + disguised + `"}`, disguised},
		{"source with mentions", "/notify/ops/gitea", typeJSON, strings.ReplaceAll(sample(t, "gitea/push"), "Fix the cart", disguised), disguised},
		{"API of Slack without mentions", "/notify/ops/slack", typeJSON, `{"text":"` + disguised + `"}`, "click (https://evil.example)"},
		{"API of Discord", "/notify/ops/discord", typeJSON, `{"content":"` + disguised + `"}`, disguised},
		{"API of Gotify", "/notify/ops/gotify/message", typeJSON, `{"message":"` + disguised + `"}`, disguised},
		{"API of ntfy", "/notify/ops/ntfy/topic", "text/plain", disguised, disguised},
		{"API of PagerDuty", "/notify/ops/pagerduty", typeJSON, `{"event_action":"trigger","payload":{"summary":"x","custom_details":{"log":"` + disguised + `"}}}`, disguisedShown},
		{"API of Opsgenie", "/notify/ops/opsgenie/v2/alerts", typeJSON, `{"message":"x","alias":"x","description":"` + disguised + `"}`, disguisedShown},
	} {
		if got := post(t, h, tt.target, tt.contentType, tt.body); got.status/100 != 2 {
			t.Errorf("%s: status %d: %s", tt.name, got.status, got.body)
			continue
		}
		if got := s.One(t); !strings.Contains(got.Message, tt.want) {
			t.Errorf("%s: got %q", tt.name, got.Message)
		}
	}
}

// TestForeignPayloads checks that no text of a payload becomes a link that hides its
// address, for every text in the samples of every source with templates.
func TestForeignPayloads(t *testing.T) {
	racetest.SkipIfSlow(t)
	t.Parallel()
	ownShared(t)
	s := gatewaytest.NewStation(t)
	h := newGateway(t, "key ops {\nurl "+s.NotifyURL("/ops")+"?format=markdown\n}", "")
	for _, f := range source.Formats() {
		if f.IsAPI() || f.Signed {
			continue
		}
		files, err := filepath.Glob("../gateway/source/programs/testdata/" + f.Name + "/*.json")
		if err != nil || len(files) == 0 {
			t.Fatal("no samples of "+f.Name, err)
		}
		shown := 0
		for _, file := range files {
			text := sample(t, strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "../gateway/source/programs/testdata/"), ".json"))
			for _, payload := range withHostileTexts(t, text) {
				if got := post(t, h, "/notify/ops/"+f.Name, typeJSON, payload); got.status != 200 {
					continue // the text was needed to recognize the payload
				}
				for _, got := range s.Take() {
					if strings.Contains(got.Message+got.Title, "evil.example") {
						shown++
					}
					if strings.Contains(got.Message, disguised) {
						t.Errorf("%s: %s arrives as %q", file, payload, got.Message)
					}
				}
			}
		}
		if shown == 0 {
			t.Errorf("%s: no text of the payloads arrives", f.Name)
		}
	}
}

// withHostileTexts returns the payload once for each text in it, of which at most
// maxHostile, with disguised after that text.
func withHostileTexts(t *testing.T, payload string) (out []string) {
	t.Helper()
	const maxHostile = 60
	var root any
	if err := json.Unmarshal([]byte(payload), &root); err != nil {
		t.Fatal(err)
	}
	add := func() {
		text, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		if len(out) < maxHostile {
			out = append(out, string(text))
		}
	}
	var walk func(v any, set func(any))
	walk = func(v any, set func(any)) {
		switch v := v.(type) {
		case string:
			set(v + " " + disguised)
			add()
			set(v)
		case []any:
			for i := range v {
				walk(v[i], func(x any) { v[i] = x })
			}
		case map[string]any:
			for name := range v {
				walk(v[name], func(x any) { v[name] = x })
			}
		}
	}
	walk(root, func(x any) { root = x })
	return out
}

// TestForeignMail checks that mails count as texts of another program, with plain
// text and with HTML.
func TestForeignMail(t *testing.T) {
	s := gatewaytest.NewStation(t)
	_, address := newMailServer(t, "key ops {\nurl "+s.NotifyURL("/ops")+"?format=markdown\n}", "")
	for mail, want := range map[string]string{
		"Subject: x\n\n" + disguised + "\n": disguisedShown,
		"Subject: x\nContent-Type: text/html\n\n<a href=\"https://evil.example\">click</a> &#91;click](https://evil.example)\n": `click (https://evil.example) \[click](https://evil.example)`,
	} {
		if got := sendMail(t, address, mail, "ops@mail.example.com"); !strings.HasPrefix(got, "250") {
			t.Error(got)
		}
		if got := s.One(t); got.Message != want {
			t.Errorf("got %q, want %q", got.Message, want)
		}
	}
}

// TestForeignEvents checks that the default text of an event counts as that of another
// program, and a text of the operator does not.
func TestForeignEvents(t *testing.T) {
	s := gatewaytest.NewStation(t)
	notify, _ := startEventApps(t, `
	notify {
		key k {
			url `+s.NotifyURL("/a")+`?format=markdown
		}
	}
	events {
		on default notify k
		on titled notify k {
			title "Event"
		}
		on texts notify k {
			body "**{event.name}** {event.data.text}"
		}
	}`)
	for event, want := range map[string]string{
		"default": "Module: notify\ntext: " + disguisedShown,
		"titled":  "Module: notify\ntext: " + disguisedShown,
		"texts":   "**texts** " + disguised,
	} {
		emitAs(notify, event, map[string]any{"text": disguised})
		sent(t, notify)
		if got := s.One(t); got.Message != want {
			t.Errorf("%s: got %q, want %q", event, got.Message, want)
		}
	}
}

// TestForeignLog checks that log entries count as texts of another program. They
// contain the addresses of requests.
func TestForeignLog(t *testing.T) {
	replaceShared(t) // Caddy keeps its log open
	s := gatewaytest.NewStation(t)
	caddyhttptest.StartCaddy(t, logging(s.NotifyURL("/log")+"?format=markdown", anInterval()), broken)
	resp, err := caddyhttptest.Client.Get(caddyhttptest.Server + "/" + disguised)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	got := s.Arrives(t, "ERROR")
	if !strings.Contains(got.Message, "evil.example") || strings.Contains(got.Message, disguised) {
		t.Errorf("got %q", got.Message)
	}
	caddyhttptest.StartCaddy(t, "", emptySite)
}
