package docs_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/porttest"
)

// TestMetricsAndStartPage asks the site of docs/apprise.md that answers /metrics and
// the start page.
func TestMetricsAndStartPage(t *testing.T) {
	var config string
	for _, b := range readPage(t, "docs/apprise.md").blocks {
		if b.language == "caddyfile" && strings.Contains(b.text, "/metrics") {
			config = b.text
		}
	}
	g := &gateway{dir: t.TempDir(), client: &http.Client{
		Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	address := porttest.Address()
	config = "{\n\tadmin off\n}\n" + strings.Replace(config, "alerts.example.com", "http://"+address, 1)
	g.config = filepath.Join(g.dir, "Caddyfile")
	writeFile(t, g.config, config)
	if err := g.start(t, g.config, address); err != nil {
		t.Fatal(err)
	}
	get := func(path string) (status int, location, body string) {
		t.Helper()
		r, err := http.NewRequest(http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("ann", "hiccup")
		resp, err := g.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header.Get("Location"), string(text)
	}
	if status, location, _ := get("/"); status != http.StatusFound || location != "/cfg" {
		t.Errorf("the start page answers %d and leads to %q", status, location)
	}
	if status, _, body := get("/metrics"); status != http.StatusOK || !strings.Contains(body, "caddy_notify_in_flight") {
		t.Errorf("/metrics answers %d %.300s", status, body)
	}
	for path, want := range map[string]int{"/cfg": http.StatusOK, "/status": http.StatusOK, "/other": http.StatusNotFound} {
		if status, _, _ := get(path); status != want {
			t.Errorf("%s answers %d, want %d", path, status, want)
		}
	}
}
