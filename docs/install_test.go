package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// hash is the hash of a password, as caddy hash-password prints it.
const hash = "$2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG"

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestDeployCaddyfile loads the Caddyfile of deploy with the variables that the
// unit and the Compose file set.
func TestDeployCaddyfile(t *testing.T) {
	l := newLoader(t)
	writeFile(t, filepath.Join(l.dir, "ops"), environment["DISCORD_URL"]+"\n")
	text := readFile(t, "deploy/caddy/Caddyfile")
	for _, site := range []string{"", "alerts.example.com"} {
		t.Setenv("NOTIFY_SECRETS", l.dir)
		t.Setenv("NOTIFY_PASSWORD_HASH", hash)
		if site != "" {
			t.Setenv("NOTIFY_SITE", site)
		}
		if err := l.loadCaddyfile(text); err != nil {
			t.Errorf("site %q: %v", site, err)
		}
	}
	if err := os.Remove(filepath.Join(l.dir, "ops")); err != nil {
		t.Fatal(err)
	}
	if err := l.loadCaddyfile(text); err == nil {
		t.Error("it loads without the secret")
	}
}

// TestDeployVariables reports a variable of the Caddyfile that the unit or the
// Compose file does not know, and one that nothing reads.
func TestDeployVariables(t *testing.T) {
	variable := regexp.MustCompile(`NOTIFY_[A-Z_]+`)
	used := map[string]bool{}
	for _, name := range variable.FindAllString(readFile(t, "deploy/caddy/Caddyfile"), -1) {
		used[name] = true
	}
	used["NOTIFY_HTTP_PORT"], used["NOTIFY_HTTPS_PORT"] = true, true // ports of the Compose file
	for _, file := range []string{"deploy/caddy-notify.service", "deploy/compose.yaml", "deploy/notify.env"} {
		text := readFile(t, file)
		for _, name := range variable.FindAllString(text, -1) {
			if !used[name] {
				t.Errorf("%s: the Caddyfile does not use %s", file, name)
			}
		}
		for _, name := range []string{"NOTIFY_SITE", "NOTIFY_PASSWORD_HASH"} {
			if strings.HasSuffix(file, ".service") {
				continue // its variables are in notify.env
			}
			if !strings.Contains(text, name) {
				t.Errorf("%s does not mention %s", file, name)
			}
		}
	}
}

// TestUnit lets systemd check the unit, and reports a unit that may do more
// than it needs.
func TestUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^(Exec\w+=)caddy `).ReplaceAllString(readFile(t, "deploy/caddy-notify.service"), "${1}"+program+" ")
	unit := filepath.Join(t.TempDir(), "caddy-notify.service")
	writeFile(t, unit, text)
	for _, args := range [][]string{
		{"verify", unit},
		{"security", "--offline=true", "--threshold=20", unit},
	} {
		out, err := exec.Command(analyze, args...).CombinedOutput() //nolint:gosec // the arguments are ours
		if err != nil {
			t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, out)
		}
		if args[0] == "verify" && strings.Contains(string(out), "caddy-notify.service") {
			t.Errorf("systemd-analyze verify: %s", out)
		}
	}
}

// TestBuildsAlike compares the command that builds the program wherever it
// stands: in the script, the Dockerfile and the script for releases.
func TestBuildsAlike(t *testing.T) {
	build := regexp.MustCompile(`go build (.*) -o `)
	want := build.FindStringSubmatch(readFile(t, "xcaddy.sh"))
	if want == nil {
		t.Fatal("xcaddy.sh has no go build")
	}
	for _, file := range []string{"deploy/Dockerfile", ".ci/release"} {
		got := build.FindStringSubmatch(readFile(t, file))
		if got == nil || got[1] != want[1] {
			t.Errorf("%s: %q, want go build %s", file, got, want[1])
		}
	}
}
