package integration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// nfpm is the tool that makes packages, with the version that .ci/release uses.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.4"

// TestPackage makes the packages of a release from a program, and installs, upgrades and removes
// the one for Debian in a folder that stands for /. Scripts, which note how they were called,
// stand for the commands that make the user and for systemd.
func TestPackage(t *testing.T) {
	dpkg, dpkgDeb := program(t, "dpkg", "dpkg"), program(t, "dpkg-deb", "dpkg")
	release, err := os.ReadFile("../../.ci/release")
	if err != nil || !strings.Contains(string(release), "nfpm="+nfpm+"\n") {
		t.Errorf(".ci/release uses another nfpm: %v", err)
	}
	dir, bin, root := t.TempDir(), t.TempDir(), t.TempDir()
	calls := filepath.Join(dir, "calls")
	for name, text := range map[string]string{"getent": "exit 2", "useradd": "", "systemctl": "", "caddy": "echo program"} {
		text = "#!/bin/sh\necho \"" + name + " $*\" >>" + calls + "\n" + text + "\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string, args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // the first time, nfpm is compiled
		defer cancel()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = "../.."
		// Modules come from a server that the authority of these tests has not signed.
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SSL_CERT_") })
		cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH")+":/usr/sbin:/sbin")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	pack := func(version, packager string) {
		t.Helper()
		t.Setenv("PROGRAM", filepath.Join(bin, "caddy"))
		t.Setenv("CONTENTS", dir)
		t.Setenv("ARCH", "amd64")
		t.Setenv("VERSION", version)
		run("go", "run", nfpm, "package", "--config", "deploy/package/nfpm.yaml", "--packager", packager, "--target", dir)
	}
	for _, script := range []string{"postinstall", "preremove", "postremove"} {
		run("sh", "-n", "deploy/package/"+script+".sh")
	}
	for _, name := range []string{"LICENSES.txt", "sbom.cdx.json"} { // .ci/contents writes them
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pack("v1.0.0", "deb")
	pack("v1.1.0", "deb")
	pack("v1.0.0", "rpm")
	old, renewed := filepath.Join(dir, "caddy-notify_1.0.0_amd64.deb"), filepath.Join(dir, "caddy-notify_1.1.0_amd64.deb")
	if _, err := os.Stat(filepath.Join(dir, "caddy-notify-1.0.0-1.x86_64.rpm")); err != nil {
		t.Error(err)
	}
	contents := run(dpkgDeb, "--contents", old)
	for _, want := range []string{
		"-rwxr-xr-x root/root", "./usr/bin/caddy\n", "./usr/lib/systemd/system/caddy-notify.service\n",
		"./etc/caddy/Caddyfile\n", "./etc/caddy/notify.env\n", "./etc/caddy/secrets/\n", "./usr/share/doc/caddy-notify/copyright\n",
		"./usr/share/doc/caddy-notify/LICENSES.txt\n", "./usr/share/doc/caddy-notify/sbom.cdx.json\n",
	} {
		if !strings.Contains(contents, want) {
			t.Errorf("the package lacks %q:\n%s", want, contents)
		}
	}
	if control := run(dpkgDeb, "--field", old); !strings.Contains(control, "Conflicts: caddy\n") ||
		!strings.Contains(control, "Version: 1.0.0\n") {
		t.Errorf("the fields are\n%s", control)
	}

	noted := func() string {
		t.Helper()
		content, err := os.ReadFile(calls)
		if err == nil {
			err = os.Remove(calls)
		}
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(content)
	}
	for _, sub := range []string{"info", "updates", "triggers", "alternatives"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"status", "available"} {
		if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg", name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	manage := func(args ...string) {
		t.Helper()
		run(dpkg, append([]string{
			"--root=" + root, "--log=/dev/null", "--force-script-chrootless",
			"--force-not-root", "--force-depends", "--force-bad-path", "--force-architecture",
		}, args...)...)
	}
	env := filepath.Join(root, "etc/caddy/notify.env")
	manage("--install", old)
	if text := noted(); !strings.Contains(text,
		"useradd --system --user-group --home-dir /var/lib/caddy --shell /usr/sbin/nologin caddy\n") || strings.Contains(text, " enable") {
		t.Errorf("the installation calls\n%s", text)
	}
	for path, want := range map[string]os.FileMode{
		"etc/caddy/notify.env": 0o600, "etc/caddy/secrets": 0o700,
		"etc/caddy/Caddyfile": 0o644, "usr/bin/caddy": 0o755,
	} {
		if info, err := os.Stat(filepath.Join(root, path)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, want the mode %v", path, err, want)
		}
	}
	if err := os.WriteFile(env, []byte("NOTIFY_SITE=mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat("/run/systemd/system")
	systemd := err == nil // the scripts call systemctl
	manage("--install", renewed)
	if text := noted(); strings.Contains(text, "disable") || systemd && !strings.Contains(text, "systemctl try-restart caddy-notify\n") {
		t.Errorf("the upgrade calls\n%s", text)
	}
	manage("--remove", "caddy-notify")
	if text := noted(); systemd && !strings.Contains(text, "systemctl disable --now caddy-notify\n") {
		t.Errorf("the removal calls\n%s", text)
	}
	if _, err := os.Stat(filepath.Join(root, "usr/bin/caddy")); err == nil {
		t.Error("the program is still there")
	}
	if text, err := os.ReadFile(env); err != nil || string(text) != "NOTIFY_SITE=mine\n" {
		t.Errorf("notify.env is %q, %v", text, err)
	}
}
