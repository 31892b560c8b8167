package docs_test

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/porttest"
)

// TestLater runs the commands of docs/api.md that send a message later, at a gateway with a
// queue. A time within the bound replaces the one in the page.
func TestLater(t *testing.T) {
	var commands string
	for _, b := range readPage(t, "docs/api.md").blocks {
		if strings.Contains(b.text, "send_at") && strings.HasPrefix(b.text, "curl ") {
			commands = b.text
		}
	}
	g := &gateway{dir: t.TempDir(), client: &http.Client{Timeout: time.Minute}}
	address := porttest.Address()
	g.config = filepath.Join(g.dir, "Caddyfile")
	writeFile(t, g.config,
		fmt.Sprintf("{\n\tadmin off\n\tnotify {\n\t\tqueue {\n\t\t\tpath %s\n\t\t}\n\t}\n}\n"+
			"http://%s {\n\tnotify {\n\t\tkey ops {\n\t\t\turl json://127.0.0.1:1\n\t\t}\n\t}\n}\n",
			filepath.Join(g.dir, "queue"), address))
	if err := g.start(t, g.config, address); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(commands), "\n")
	if len(lines) != 2 {
		t.Fatalf("the page has the commands %q", commands)
	}
	soon := time.Now().Add(24 * time.Hour).Format("2006-01-02")
	for _, line := range lines {
		line = strings.NewReplacer("127.0.0.1:8080", address, "2026-12-24", soon,
			"curl ", "curl -sS -f -H 'Accept: application/json' ").Replace(line)
		out, err := exec.CommandContext(t.Context(), "sh", "-c", line).CombinedOutput()
		if err != nil || !strings.Contains(string(out), `"rule":"planned"`) {
			t.Errorf("%s: %v: %s", line, err, out)
		}
	}
}
