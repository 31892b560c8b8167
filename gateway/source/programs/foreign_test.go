package programs_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// disguised is a link whose text hides its address, in Markdown.
const disguised = "[click](https://evil.example)"

// TestForeignPayloads checks that no text of a payload becomes a link that hides its
// address, for every text in the samples of every source with templates.
func TestForeignPayloads(t *testing.T) {
	racetest.SkipIfSlow(t)
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops")+"?format=markdown")}}})
	for _, f := range source.Formats() {
		if f.IsAPI() || f.Signed {
			continue
		}
		files, err := filepath.Glob("testdata/" + f.Name + "/*.json")
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
