package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestScriptSaysThatItBuilds runs xcaddy.sh with programs in place of go and xcaddy. It says
// that it builds, and how long that takes, when it has to, and otherwise nothing.
func TestScriptSaysThatItBuilds(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no shell")
	}
	const (
		goCommand = `#!/bin/sh
case "$GOFLAGS" in
*-n) cat commands >&2 ;;
*) printf '#!/bin/sh\necho "ran $*"\n' >caddy && chmod +x caddy ;;
esac
`
		compile = "/usr/local/go/pkg/tool/linux_amd64/compile -o $WORK/b001/_pkg_.a -trimpath \"$WORK/b001=>\" -p main\n"
		link    = "GOROOT='/usr/local/go' /usr/local/go/pkg/tool/linux_amd64/link -o $WORK/b001/exe/a.out -importcfg $WORK/b001/importcfg.link\n"
		other   = "mkdir -p $WORK/b001/\ncat >$WORK/b001/importcfg << 'EOF' # internal\n" +
			"packagefile github.com/compile/link=$WORK/b002/_pkg_.a\nEOF\n"
	)
	script := readFile(t, "xcaddy.sh")
	for name, tt := range map[string]struct {
		commands string // what go would have to do; "" if there is no ./caddy yet
		xcaddy   bool
		want     string
	}{
		"the first time":       {"", false, "building ./caddy, which takes two to four minutes the first time"},
		"nothing to do":        {"touch x\n", false, ""},
		"one file has changed": {other + compile + link, false, "building ./caddy anew, which takes less than a minute"},
		"only to link":         {link, false, "building ./caddy anew, which takes less than a minute"},
		"another Caddy":        {strings.Repeat(other+compile, 300) + link, false, "building ./caddy anew, which takes two to four minutes"},
		"xcaddy":               {"touch x\n", true, "building ./caddy with xcaddy, which takes two to four minutes the first time"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, bin := t.TempDir(), t.TempDir()
			files := map[string]string{
				filepath.Join(dir, "xcaddy.sh"): script, filepath.Join(bin, "go"): goCommand,
				filepath.Join(dir, "newest.mod"): readFile(t, "newest.mod"),
			}
			if tt.commands != "" {
				files[filepath.Join(dir, "caddy")], files[filepath.Join(dir, "commands")] = "#!/bin/sh\n", tt.commands
			}
			if tt.xcaddy {
				files[filepath.Join(bin, "xcaddy")] = goCommand
			}
			for file, text := range files {
				if err := os.WriteFile(file, []byte(text), 0o700); err != nil { //nolint:gosec // a program
					t.Fatal(err)
				}
			}
			cmd := exec.Command(filepath.Join(dir, "xcaddy.sh"), "run", "a b")
			var stdout, stderr strings.Builder
			cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), &stdout, &stderr
			cmd.Env = append(os.Environ(), "PATH="+bin+":/usr/bin:/bin", "GOFLAGS=")
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s", err, stderr.String())
			}
			if stdout.String() != "ran run a b\n" {
				t.Errorf("the output is %q", stdout.String())
			}
			if text := stderr.String(); tt.want == "" && text != "" || !strings.Contains(text, tt.want) {
				t.Errorf("it says %q, want %q", text, tt.want)
			}
		})
	}
}
