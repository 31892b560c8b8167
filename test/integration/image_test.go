package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hiccupHash is the hash of the password hiccup.
const hiccupHash = "$2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG"

// TestImage does by hand what the Dockerfile says, on a machine without Docker: it runs
// the commands of the first stage, copies what the second one copies into a folder that
// stands for /, and starts the program as the user of the image with its variables, until
// it is healthy and a message arrives.
func TestImage(t *testing.T) {
	text, err := os.ReadFile("../../deploy/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`(?m)^#.*\n`).ReplaceAll(text, nil)
	lines := strings.Split(strings.ReplaceAll(string(text), "\\\n", " "), "\n")
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // for the user of the image
		t.Fatal(err)
	}
	root, out := filepath.Join(dir, "root"), filepath.Join(dir, "out")
	var variables, entry, command []string
	var health, user, stage string
	for _, line := range lines {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "FROM":
			stage = strings.TrimPrefix(line[strings.LastIndex(line, " ")+1:], "AS ")
		case "RUN":
			if stage != "build" {
				t.Errorf("%s: another processor would need an emulator", line)
			} else if !strings.Contains(rest, " go mod download ") {
				buildStage(t, dir, strings.ReplaceAll(regexp.MustCompile(`--mount=\S+`).ReplaceAllString(rest, ""), "/out", out))
			}
		case "COPY":
			if stage != "build" {
				copyFile(t, root, out, strings.Fields(rest))
			}
		case "ENV":
			variables = append(variables, strings.Fields(strings.ReplaceAll(rest, "=/", "="+root+"/"))...)
		case "USER":
			user = rest
		case "HEALTHCHECK":
			health = regexp.MustCompile(`http://127\.0\.0\.1:2019([^"]*)"`).FindStringSubmatch(rest)[1]
		case "ENTRYPOINT":
			entry = words(t, rest)
		case "CMD":
			command = words(t, rest)
		}
	}
	if user != "10001:10001" || len(entry) != 1 || len(command) == 0 || health == "" {
		t.Fatalf("user %q, entry %q, command %q, health %q", user, entry, command, health)
	}

	for _, name := range []string{"LICENSES.txt", "sbom.cdx.json"} {
		text, err := os.ReadFile(filepath.Join(root, "usr/share/doc/caddy-notify", name))
		if err != nil || !strings.Contains(string(text), "github.com/caddyserver/caddy/v2") {
			t.Errorf("%s has %d bytes, %v", name, len(text), err)
		}
	}

	messages := make(chan string, 1)
	destination := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		messages <- string(b)
	}))
	t.Cleanup(destination.Close)
	secrets := filepath.Join(root, "run/secrets")
	if err := os.MkdirAll(secrets, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(secrets, "ops"),
		[]byte("json"+strings.TrimPrefix(destination.URL, "http")+"/\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	port, admin := freePort(t), freePort(t)
	for i, arg := range command {
		if strings.HasPrefix(arg, "/") {
			command[i] = root + arg
		}
	}
	cmd := exec.Command(filepath.Join(root, "usr/bin", entry[0]), command...)
	cmd.Env = append(variables, "NOTIFY_PASSWORD_HASH="+hiccupHash, "NOTIFY_SECRETS="+secrets,
		fmt.Sprintf("NOTIFY_SITE=http://:%d", port), fmt.Sprintf("CADDY_ADMIN=127.0.0.1:%d", admin))
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 10001, Gid: 10001}}
	}
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	eventually(t, "the container is healthy", func() bool {
		r, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", admin, health))
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
	r, err := http.NewRequest(http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/notify/ops", port), strings.NewReader("It works"))
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("monitoring", "hiccup")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("status %d", resp.StatusCode)
	}
	select {
	case m := <-messages:
		if !strings.Contains(m, "It works") {
			t.Errorf("the destination has %s", m)
		}
	case <-time.After(time.Minute):
		t.Error("no message arrives")
	}
}

// words reads a list of a Dockerfile.
func words(t *testing.T, text string) (list []string) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// buildStage runs the commands of a RUN.
func buildStage(t *testing.T, home, commands string) {
	t.Helper()
	folders, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	caches := strings.Fields(string(folders))
	cmd := exec.Command("sh", "-euc", commands)
	cmd.Dir = "../.."
	// What the Dockerfile does not set must not come from here. The configuration of
	// git that it writes is in another home folder.
	// The authority of these tests is not that of the network, from which the tool for SBOMs comes.
	network := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SSL_CERT_") })
	cmd.Env = append(network, "HOME="+home, "GOCACHE="+caches[0], "GOMODCACHE="+caches[1], "GOFLAGS=-buildvcs=false", "CGO_ENABLED=",
		"TARGETOS=", "TARGETARCH=", "TARGETVARIANT=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
}

// copyFile does a COPY of the last stage, from the context or from what the first one
// has built.
func copyFile(t *testing.T, root, out string, args []string) {
	t.Helper()
	from, owner := "../..", 0
	for strings.HasPrefix(args[0], "--") {
		if args[0] == "--from=build" {
			from = filepath.Dir(out)
		}
		_, _ = fmt.Sscanf(args[0], "--chown=%d:", &owner)
		args = args[1:]
	}
	target := filepath.Join(root, args[1])
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("cp", "-r", filepath.Join(from, args[0]), target).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(target, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
}
