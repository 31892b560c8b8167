package httpapi_test

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// disguised is a link whose text hides its address, in Markdown. A destination that
// takes Markdown gets it as disguisedShown if another program has written it.
const (
	disguised      = "[click](https://evil.example)"
	disguisedShown = `\[click\](https://evil.example)`
)

// TestForeignText checks, for every way in which messages arrive, whether the text counts as
// another program's.
func TestForeignText(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	to := s.NotifyURL("/ops") + "?format=markdown"
	sources := source.Set{}
	for _, c := range []source.Config{
		{Name: "backup", Templates: source.Templates{Title: "{{.name}}", Body: "{{.text}}"}},
		{Name: "trusted", Templates: source.Templates{Body: "{{.text}}"}, Mentions: new(true)},
		{Name: "gitea", Mentions: new(true)},
		{Name: "slack", Mentions: new(false)},
	} {
		x, err := source.New(c)
		if err != nil {
			t.Fatal(err)
		}
		sources[c.Name] = x
	}
	push, err := os.ReadFile("../source/programs/testdata/gitea/push.json")
	if err != nil {
		t.Fatal(err)
	}
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", to)}}, Sources: sources})
	mapped := "?:alert.text=body&:name=title"
	for _, tt := range []struct {
		name, target, contentType, body string
		want                            string
	}{
		{"JSON", "/notify/ops", gatewaytest.TypeJSON, `{"title":"` + disguised + `","body":"` + disguised + `"}`, disguised},
		{"form", "/notify/ops", gatewaytest.TypeForm, "body=" + url.QueryEscape(disguised), disguised},
		{"text", "/notify/ops", "text/plain", disguised, disguised},
		{"mapped type", "/notify/ops?:state=type", gatewaytest.TypeJSON, `{"state":"down","body":"` + disguised + `"}`, disguised},
		{"mapped JSON", "/notify/ops" + mapped, gatewaytest.TypeJSON, `{"alert":{"text":"` + disguised + `"}}`, disguisedShown},
		{"mapped title", "/notify/ops" + mapped, gatewaytest.TypeJSON, `{"name":"x","body":"` + disguised + `"}`, disguisedShown},
		{"mapped form", "/notify/ops?:msg=body", gatewaytest.TypeForm, "msg=" + url.QueryEscape(disguised), disguisedShown},
		{"own templates", "/notify/ops/backup", gatewaytest.TypeJSON, `{"name":"x","text":"` + disguised + `"}`, disguisedShown},
		{"own templates with mentions", "/notify/ops/trusted", gatewaytest.TypeJSON, `{"text":"` + disguised + `"}`, disguised},
		{
			"source with mentions", "/notify/ops/gitea", gatewaytest.TypeJSON, strings.ReplaceAll(string(push), "Fix the cart", disguised),
			disguised,
		},
		{
			"API of Slack without mentions", "/notify/ops/slack", gatewaytest.TypeJSON, `{"text":"` + disguised + `"}`,
			"click (https://evil.example)",
		},
		{"API of Discord", "/notify/ops/discord", gatewaytest.TypeJSON, `{"content":"` + disguised + `"}`, disguised},
		{"API of Gotify", "/notify/ops/gotify/message", gatewaytest.TypeJSON, `{"message":"` + disguised + `"}`, disguised},
		{"API of ntfy", "/notify/ops/ntfy/topic", "text/plain", disguised, disguised},
		{
			"API of PagerDuty", "/notify/ops/pagerduty", gatewaytest.TypeJSON,
			`{"event_action":"trigger","payload":{"summary":"x","custom_details":{"log":"` + disguised + `"}}}`, disguisedShown,
		},
		{
			"API of Opsgenie", "/notify/ops/opsgenie/v2/alerts", gatewaytest.TypeJSON,
			`{"message":"x","alias":"x","description":"` + disguised + `"}`, disguisedShown,
		},
	} {
		if got := g.Post(tt.target, tt.contentType, tt.body); got.Status/100 != 2 {
			t.Errorf("%s: status %d: %s", tt.name, got.Status, got.Body)
			continue
		}
		if got := s.One(t); !strings.Contains(got.Message, tt.want) {
			t.Errorf("%s: got %q", tt.name, got.Message)
		}
	}
}

// TestForeignPayloads checks, for every text in the samples of every source with templates, that it
// does not become a link that hides its address.
func TestForeignPayloads(t *testing.T) {
	racetest.SkipIfSlow(t)
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t,
		gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops")+"?format=markdown")}}})
	for _, f := range source.Formats() {
		if f.IsAPI() || f.Signed {
			continue
		}
		files, err := filepath.Glob("../source/programs/testdata/" + f.Name + "/*.json")
		if err != nil || len(files) == 0 {
			t.Fatal("no samples of "+f.Name, err)
		}
		shown := 0
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, payload := range withHostileTexts(t, string(text)) {
				if got := g.Post("/notify/ops/"+f.Name, gatewaytest.TypeJSON, payload); got.Status != 200 {
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

// withHostileTexts returns the payload once for each of its texts, at most maxHostile, with
// disguised after that text.
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
