package httpapi_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// TestHostileRequests checks that every source answers 2xx or 4xx to payloads with
// missing fields, wrong types or 100,000 items and to garbage, and that a source with
// required signatures never answers 2xx to them.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, gatewaytest.Options{
		Sources: sourcesWith(t, source.Config{Name: "grafana", Images: true}),
		Site:    site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops"))}},
	})
	many := "[" + strings.Repeat(`{"status":"firing","labels":{"a":"b"},"text":"x"},`, 99_999) + "{}]"
	replacements := []string{
		"null", `""`, `"text"`, "0", "-1", "true", "[]", `[null,1,"x",[],{}]`, "{}",
		`"` + strings.Repeat("x", 64<<10) + `"`,
	}
	garbage := []string{
		"", " ", "null", "true", "0", `"x"`, "[]", "[1]", "{}", `{"a":`, "\x00", "\xff\xfe", "a=b&c", "%",
		strings.Repeat("[", 20_000), many,
	}
	for _, f := range racetest.Part(source.Formats(), 15) {
		address := "/notify/ops/" + f.Name
		if f.Name == "gotify" {
			address += "/message"
		}
		check := func(media, body string) {
			t.Helper()
			got := g.Post(address, media, body)
			if class := got.Status / 100; class != 2 && class != 4 || f.Signed && class == 2 {
				t.Errorf("%s: %s %.300s: status %d: %s", f.Name, media, body, got.Status, got.Body)
			}
			s.Take()
		}
		for _, body := range garbage {
			for _, media := range []string{
				gatewaytest.TypeJSON, gatewaytest.TypeForm, "text/plain", "application/cloudevents-batch+json",
				"multipart/form-data; boundary=x", "nonsense", "",
			} {
				check(media, body)
				if len(body) > 1<<20 {
					break
				}
			}
		}
		files, err := filepath.Glob("../source/programs/testdata/" + f.Name + "/*.json")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no samples", f.Name)
		}
		seen := map[string]bool{}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(text, &fields); err != nil {
				continue // an array
			}
			for name := range fields {
				if seen[name] {
					continue
				}
				seen[name] = true
				changed := maps.Clone(fields)
				encode := func() string {
					body, err := json.Marshal(changed)
					if err != nil {
						t.Fatal(err)
					}
					return string(body)
				}
				delete(changed, name)
				check(gatewaytest.TypeJSON, encode())
				const replaced = `"the value to replace"`
				changed[name] = json.RawMessage(replaced)
				before, after, _ := strings.Cut(encode(), replaced)
				for _, value := range replacements {
					check(gatewaytest.TypeJSON, before+value+after)
				}
				if value := fields[name]; value[0] == '[' {
					check(gatewaytest.TypeJSON, before+many+after)
				}
			}
		}
	}
}
