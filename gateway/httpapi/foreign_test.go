package httpapi_test

import (
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
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
	t.Parallel()
	s := gatewaytest.NewStation(t)
	to := s.NotifyURL("/ops") + "?format=markdown"
	sources := map[string]*source.Source{}
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
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", to)}, Sources: sources}})
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
		{"source with mentions", "/notify/ops/gitea", gatewaytest.TypeJSON, strings.ReplaceAll(string(push), "Fix the cart", disguised), disguised},
		{"API of Slack without mentions", "/notify/ops/slack", gatewaytest.TypeJSON, `{"text":"` + disguised + `"}`, "click (https://evil.example)"},
		{"API of Discord", "/notify/ops/discord", gatewaytest.TypeJSON, `{"content":"` + disguised + `"}`, disguised},
		{"API of Gotify", "/notify/ops/gotify/message", gatewaytest.TypeJSON, `{"message":"` + disguised + `"}`, disguised},
		{"API of ntfy", "/notify/ops/ntfy/topic", "text/plain", disguised, disguised},
		{"API of PagerDuty", "/notify/ops/pagerduty", gatewaytest.TypeJSON, `{"event_action":"trigger","payload":{"summary":"x","custom_details":{"log":"` + disguised + `"}}}`, disguisedShown},
		{"API of Opsgenie", "/notify/ops/opsgenie/v2/alerts", gatewaytest.TypeJSON, `{"message":"x","alias":"x","description":"` + disguised + `"}`, disguisedShown},
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
