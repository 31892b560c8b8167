package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/caddyhttp/source"
)

const addressOfOps = "https://alerts.example.com/notify/ops"

// TestPrograms reports built-in sources whose address docs/programs.md lacks, and
// posts the samples of the sources to their addresses.
func TestPrograms(t *testing.T) {
	g := startGateway(t)
	page := readPage(t, "docs/programs.md").prose
	for _, f := range source.Formats() {
		address := addressOfOps + "/" + f.Name
		if !regexp.MustCompile(regexp.QuoteMeta(address) + "[`/?]").MatchString(page) {
			t.Errorf("the page has no address of %s", f.Name)
		}
		files, err := filepath.Glob(filepath.Join(root, "caddyhttp/source/testdata", f.Name, "*.json"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no samples", f.Name)
		}
		for _, file := range files {
			payload, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if f.Name == "gotify" {
				address = addressOfOps + "/gotify/message"
			}
			err = g.post(address, strings.ReplaceAll(string(payload), `"attach"`, `"ignored"`))
			if signed := f.Signed; signed != (err != nil) && f.Name != "discord" { // discord answers 204
				t.Errorf("%s: %v", file, err)
			}
			if got := g.take(); !f.Signed && got.Message == "" {
				t.Errorf("%s: no message arrived", file)
			}
		}
	}
	for _, m := range regexp.MustCompile("notify/ops/([a-z_]+)").FindAllStringSubmatch(page, -1) {
		if source.Lookup(m[1]) == nil {
			t.Errorf("the page has an address with the unknown source %s", m[1])
		}
	}
}

// TestMappings posts what programs send to the addresses with mappings that
// docs/programs.md gives.
func TestMappings(t *testing.T) {
	g := startGateway(t)
	for _, tt := range []struct {
		name, query, body string
		want              message
	}{
		{
			"JSON of its own", ":message=body&:type=failure", `{"message": "91% full"}`,
			message{"", "91% full", "failure"},
		},
		// https://www.home-assistant.io/integrations/notify.rest/
		{
			"Home Assistant", "", `{"body": "The garage is open", "title": "Door", "target": null}`,
			message{"Door", "The garage is open", "info"},
		},
		// https://github.com/Sonarr/Sonarr, NzbDrone.Core/Notifications/Apprise
		{
			"Sonarr, its Apprise connection", "", `{"title": "Sonarr - Test Notification", "body": "Success!", "type": "info"}`,
			message{"Sonarr - Test Notification", "Success!", "info"},
		},
	} {
		if !strings.Contains(readPage(t, "docs/programs.md").prose, tt.query) {
			t.Errorf("the page has no address ?%s", tt.query)
		}
		if err := g.post(addressOfOps+"?"+tt.query, tt.body); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := g.take(); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// TestTemplates posts the bodies that docs/programs.md gives for programs in
// which the user writes the request.
func TestTemplates(t *testing.T) {
	g := startGateway(t)
	placeholders := regexp.MustCompile(`\{\{[^}]*\}\}|\*\w+\*|\$STATUS|…`)
	p := readPage(t, "docs/programs.md")
	bodies := regexp.MustCompile("(?m)`(\\{\".*\\})` \\|$").FindAllStringSubmatch(p.prose, -1)
	if len(bodies) < 4 {
		t.Fatalf("%s has only %d bodies", p.path, len(bodies))
	}
	for _, m := range bodies {
		body := placeholders.ReplaceAllString(m[1], "some text")
		body = strings.ReplaceAll(body, "$NAME_JSON", `"a \"name\""`)
		address := addressOfOps
		switch {
		case strings.Contains(body, `"monitorURL"`):
			address += "/uptimerobot"
		case !strings.Contains(body, `"body"`):
			address += "/proxmox"
		}
		if err := g.post(address, body); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
		if got := g.take(); got.Title == "" || !strings.Contains(got.Message, "some text") {
			t.Errorf("%s: got %+v", m[1], got)
		}
	}
}
