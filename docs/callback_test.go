package docs_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/porttest"
)

// TestCallback runs the Caddyfile of docs/events-and-logs.md that posts the outcome of
// messages to an address, and compares what arrives with the page.
func TestCallback(t *testing.T) {
	p := readPage(t, "docs/events-and-logs.md")
	var config, want string
	for i, b := range p.blocks {
		if b.language == "caddyfile" && strings.Contains(b.text, "/outcome?") {
			config, want = b.text, p.blocks[i+1].text
		}
	}
	outcomes := make(chan string, 10)
	status := http.StatusOK
	chat := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(chat.Close)
	callback := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		outcomes <- r.URL.Path + " " + string(body)
	}))
	t.Cleanup(callback.Close)

	g := &gateway{dir: t.TempDir(), client: &http.Client{Timeout: time.Minute}}
	address := porttest.Address()
	config = strings.NewReplacer(
		"{env.DISCORD_URL}", strings.Replace(chat.URL, "http", "json", 1),
		"jsons://status.example.com", strings.Replace(callback.URL, "http", "json", 1),
	).Replace(config)
	config = strings.Replace(config, "{\n", "{\n\tadmin off\n", 1) + "\nhttp://" + address + " {\n\tnotify {\n\t\tstateless off\n\t}\n}\n"
	g.config = filepath.Join(g.dir, "Caddyfile")
	writeFile(t, g.config, config)
	if err := g.start(t, g.config, address); err != nil {
		t.Fatal(err)
	}
	post := func(answer int) string {
		t.Helper()
		status = answer
		resp, err := g.client.Post("http://"+address+"/notify/ops", "text/plain", strings.NewReader("done"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		select {
		case got := <-outcomes:
			return got
		case <-time.After(time.Minute):
			t.Fatal("no outcome was posted")
		}
		return ""
	}
	// The destination is a Discord webhook on the page, and JSON here.
	if got := post(http.StatusOK); !strings.HasPrefix(got, "/outcome ") ||
		compareJSON(strings.Replace(want, "Discord", "JSON", 1), strings.TrimPrefix(got, "/outcome ")) != nil {
		t.Errorf("posted %s, want %s", got, want)
	}
	got := post(http.StatusForbidden)
	var failed struct{ Status, Output string }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(got, "/outcome ")), &failed); err != nil ||
		failed.Status != "failed" || !regexp.MustCompile(`^ops: .*403`).MatchString(failed.Output) {
		t.Errorf("after a failure, posted %s (%v)", got, err)
	}
	if len(outcomes) > 0 {
		t.Errorf("another outcome: %s", <-outcomes)
	}
}
