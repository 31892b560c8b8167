package docs_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/caddy-notify/caddy-notify/internal/porttest"
)

// TestKubernetes loads the Caddyfile of deploy/kubernetes, and starts a gateway with it, on a folder in
// place of PostgreSQL: it answers the probes of the Deployment, and has the time that it needs to
// stop. The manifests are checked in test/kubernetes.
func TestKubernetes(t *testing.T) {
	l := newLoader(t)
	secrets := filepath.Join(l.dir, "notify")
	if err := os.Mkdir(secrets, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"queue": strings.Repeat("5", 64), "ops": environment["DISCORD_URL"], "token": environment["OPS_TOKEN"],
	} {
		writeFile(t, filepath.Join(secrets, name), content+"\n")
	}
	t.Setenv("PUBLIC_URL", "https://alerts.example.com")
	text := readFile(t, "deploy/kubernetes/Caddyfile")
	if err := l.loadCaddyfile(text); err != nil {
		t.Fatal(err)
	}

	var deployment struct {
		Spec struct {
			Template struct {
				Spec struct {
					Grace      int `yaml:"terminationGracePeriodSeconds"`
					Containers []map[string]any
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(readFile(t, "deploy/kubernetes/deployment.yaml")), &deployment); err != nil {
		t.Fatal(err)
	}
	pod := deployment.Spec.Template.Spec
	for _, line := range []string{"grace_period 30s", "shutdown_delay 5s"} { // and 5 s for the queue
		if !strings.Contains(text, "\t"+line+"\n") {
			t.Errorf("the Caddyfile has no %s", line)
		}
	}
	if pod.Grace < 30+5+5 {
		t.Errorf("Kubernetes kills the gateway after %d s, before it has ended", pod.Grace)
	}

	address := porttest.Address()
	text = l.local(strings.NewReplacer(
		"queue postgres {env.DATABASE_URL} {", "queue {", ":8080 {", "http://"+address+" {", "shutdown_delay 5s", "admin off",
	).Replace(text))
	g := &gateway{
		dir: t.TempDir(), client: &http.Client{Timeout: time.Minute},
		variables: []string{"PUBLIC_URL=https://alerts.example.com"},
	}
	g.config = filepath.Join(g.dir, "Caddyfile")
	writeFile(t, g.config, text)
	if err := g.start(t, g.config, address); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
		probe, _ := pod.Containers[0][name].(map[string]any)
		get, _ := probe["httpGet"].(map[string]any)
		path, _ := get["path"].(string)
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			resp, err := g.client.Get("http://" + address + path)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				break
			}
			// Caddy answers before all of it has started, and Kubernetes asks again, too.
			if resp.StatusCode != http.StatusServiceUnavailable || time.Now().After(deadline) {
				t.Fatalf("%s: %s answers %s", name, path, resp.Status)
			}
		}
	}
	resp, err := g.client.Get("http://" + address + "/other")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("any other path answers %s", resp.Status)
	}
}
