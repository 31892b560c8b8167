package integration

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// buildModules builds Caddy with the gateway and the modules of docs/modules.md, once for
// each run.
var buildModules = sync.OnceValues(func() (string, error) {
	program := filepath.Join(scratch, "modules", "caddy")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, ".")
	build.Dir = "modules"
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
})

// blockOf returns the block of docs/modules.md that contains a text.
func blockOf(t *testing.T, text string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/modules.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```\\w+\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(block[1], text) {
			return block[1]
		}
	}
	t.Fatalf("docs/modules.md has no block with %s", text)
	return ""
}

// TestRateLimit checks that the limit of docs/modules.md counts users after the login, so
// that strangers do not use it up, and that 295 refused requests are one message.
func TestRateLimit(t *testing.T) {
	caddy, err := buildModules()
	if err != nil {
		t.Fatal(err)
	}
	station := newWebhook(t)
	t.Setenv("PHONE_URL", station.to("/phone"))
	port, admin := freePort(t), freePort(t)
	site := fmt.Sprintf("http://127.0.0.1:%d", port)
	text := strings.Replace(blockOf(t, "rate_limit {"), "{\n", fmt.Sprintf("{\n\tadmin 127.0.0.1:%d\n\tpersist_config off\n", admin), 1)
	config := writeFile(t, "Caddyfile", strings.Replace(text, "alerts.example.com {", site+" {", 1))
	start(t, port, caddy, "run", "--config", config, "--adapter", "caddyfile")
	send := func(password string) int {
		r := request(t, http.MethodPost, site+"/notify/phone", "body=hello")
		r.SetBasicAuth("monitoring", password)
		status, _ := ask(t, r)
		return status
	}
	if status := send("wrong"); status != http.StatusUnauthorized {
		t.Fatalf("a stranger gets %d", status)
	}
	for range 9 {
		r := request(t, http.MethodPost, site+"/notify/phone", "body=hello")
		if status, _ := ask(t, r); status != http.StatusUnauthorized {
			t.Fatalf("a stranger gets %d", status)
		}
	}
	statuses := map[int]int{}
	// Of the five equal messages, dedupe suppresses four; of the events, all but one. Only so
	// many events may wait, so that they are caused in parts.
	for n := range 300 {
		statuses[send("hiccup")]++
		if n%50 == 49 {
			eventually(t, "all events are decided about", func() bool {
				_, metrics := ask(t, request(t, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/metrics", admin), ""))
				return strings.Contains(metrics, fmt.Sprintf("caddy_notify_rules_total{outcome=\"suppressed\",rule=\"dedupe\"} %d\n", n-1))
			})
		}
	}
	if statuses[http.StatusOK] != 5 || statuses[http.StatusTooManyRequests] != 295 {
		t.Fatalf("the statuses are %v, want 5 of 200 and 295 of 429", statuses)
	}
	if got := station.paths(); got != "phone phone" {
		t.Errorf("arrived: %q, want the message and one about the limit", got)
	}
}

// TestForwardAuth checks with a server that answers as Authelia does that the Caddyfile of
// docs/modules.md asks for a login, except at the addresses of phones and links.
func TestForwardAuth(t *testing.T) {
	login := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/authz/forward-auth" || r.Header.Get("X-Forwarded-Uri") == "" {
			t.Errorf("asked for %s, with %v", r.URL, r.Header)
		}
		if c, err := r.Cookie("session"); err == nil && c.Value == "ann" {
			w.Header().Set("Remote-User", "ann")
			return
		}
		w.Header().Set("Location", "https://login.example.com/")
		w.WriteHeader(http.StatusFound)
	}))
	defer login.Close()
	station := newWebhook(t)
	t.Setenv("DISCORD_URL", station.to("/ops"))
	port := freePort(t)
	site := fmt.Sprintf("http://127.0.0.1:%d", port)
	text := strings.Replace(blockOf(t, "forward_auth @login"), "public_url https://alerts.example.com",
		"public_url https://alerts.example.com\n\t\tpush {\n\t\t\tcontact mailto:ann@example.com\n\t\t}\n\t\tqueue",
		1)
	text = strings.Replace(text, "127.0.0.1:9091", strings.TrimPrefix(login.URL, "http://"), 1)
	startGateway(t, port, strings.Replace(text, "alerts.example.com {", site+" {", 1))
	for _, path := range []string{"/notify/ops", "/notify/console", "/notify", "/notify/ops/messages", "/notify/incidents"} {
		if status, _ := ask(t, request(t, http.MethodGet, site+path, "")); status != http.StatusFound {
			t.Errorf("%s without a login: %d, want 302", path, status)
		}
	}
	for path, want := range map[string]int{"/notify/push.js": 200, "/notify/icon.svg": 200, "/notify/incidents/none": 404} {
		if status, body := ask(t, request(t, http.MethodGet, site+path, "")); status != want {
			t.Errorf("%s without a login: %d %.200s, want %d", path, status, body, want)
		}
	}
	r := request(t, http.MethodPost, site+"/notify/ops", "body=hello")
	r.AddCookie(&http.Cookie{Name: "session", Value: "ann"})
	if status, body := ask(t, r); status != http.StatusOK || station.paths() != "ops" {
		t.Errorf("with a login: %d %s", status, body)
	}
}

// docker is a server that answers as Docker does when one container has labels.
func docker(t *testing.T, labels string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Api-Version", "1.44")
		answer := "[]"
		switch path := r.URL.Path; {
		case strings.HasSuffix(path, "/_ping"):
			answer = "OK"
		case strings.HasSuffix(path, "/info"):
			answer = `{"Swarm": {"LocalNodeState": "inactive"}}`
		case strings.HasSuffix(path, "/version"):
			answer = `{"ApiVersion": "1.44"}`
		case strings.HasSuffix(path, "/containers/json"):
			answer = `[{"Id": "c1", "Names": ["/backup"], "State": "running", "Labels": {` + labels + `}, "NetworkSettings": {"Networks": {}}}]`
		case strings.HasSuffix(path, "/events"):
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.CloseClientConnections)
	return s
}

// TestDockerLabels checks that the labels of docs/modules.md are a key, with a server that
// answers as Docker does.
func TestDockerLabels(t *testing.T) {
	caddy, err := buildModules()
	if err != nil {
		t.Fatal(err)
	}
	station := newWebhook(t)
	port := freePort(t)
	site := fmt.Sprintf("http://127.0.0.1:%d", port)
	var labels bytes.Buffer
	for _, l := range regexp.MustCompile(`(?m)^ +(caddy[\w.]*): "?(.*?)"?$`).FindAllStringSubmatch(blockOf(t, "caddy.notify.key"), -1) {
		if labels.Len() > 0 {
			labels.WriteString(", ")
		}
		fmt.Fprintf(&labels, "%q: %q", l[1], strings.Replace(l[2], "alerts.example.com", site, 1))
	}
	d := docker(t, labels.String())
	t.Setenv("DOCKER_HOST", "tcp://"+strings.TrimPrefix(d.URL, "http://"))
	t.Setenv("PHONE_URL", station.to("/phone"))
	base := writeFile(t, "Caddyfile", fmt.Sprintf("{\n\tadmin 127.0.0.1:%d\n\tpersist_config off\n}\n", freePort(t)))
	const token = "1f0c5a0b7d5e4c1f9c5be1a2d4a90b11"
	t.Setenv("OPS_TOKEN", token)
	start(t, port, caddy, "docker-proxy", "--caddyfile-path", base)
	if status, _ := ask(t, request(t, http.MethodPost, site+"/notify/backup", "body=done")); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d, want 401", status)
	}
	r := request(t, http.MethodPost, site+"/notify/backup", "body=done")
	r.Header.Set("Authorization", "Bearer "+token)
	if status, body := ask(t, r); status != http.StatusOK || station.paths() != "phone" {
		t.Errorf("%d %s", status, body)
	}
}
