package docs_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/caddy-notify/caddy-notify/internal/porttest"
)

// TestInstall follows each way of install.md: a shell runs the commands as they are
// written, in a folder that stands for /, until the message of the page arrives at a
// destination. Programs that change the machine are replaced by scripts, which note how
// they were called: sudo, systemctl, useradd, apt and docker. The service or the
// container is then run as the unit, the package, the image or the Compose file say.
func TestInstall(t *testing.T) {
	sections := installSections(t)
	example := startGateway(t) // of Caddyfile.example, which some ways run
	for name, start := range map[string]func(w *installation){
		"How do I install it?": nil,
		"A program":            (*installation).runInit,
		"A package":            (*installation).runService,
		"A service of systemd": (*installation).runService,
		"A container":          (*installation).runContainer,
		"Docker Compose":       (*installation).runCompose,
		"A NAS":                (*installation).runCompose,
		"add-package":          (*installation).runCaddyfile,
		"Build it":             nil,
	} {
		t.Run(name, func(t *testing.T) {
			blocks := sections[name]
			var send block
			for i, b := range blocks {
				if b.language == "sh" && strings.HasPrefix(b.text, "curl ") {
					send = b
					if i+1 == len(blocks) || blocks[i+1].language != "text" {
						t.Fatalf("%s: the answer is missing", b)
					}
					blocks = append(blocks[:i:i], blocks[i+1])
					break
				}
			}
			if send.text == "" {
				t.Fatal("the way does not end with a message")
			}
			answer := blocks[len(blocks)-1]
			g := example
			if start != nil {
				w := newInstallation(t, blocks[:len(blocks)-1])
				start(w)
				g = w.g
				host := regexp.MustCompile(`http://((?:localhost|127\.0\.0\.1)(?::\d+)?)/`).FindStringSubmatch(send.text)
				if host == nil || host[1] != w.published {
					t.Errorf("%s: the message goes to %q, the gateway is at %s", send, host, w.published)
				}
			}
			g.take()
			lines, err := splitShell(send.text)
			if err != nil {
				t.Fatal(err)
			}
			out := &output{}
			if err := g.runCurl(lines[0][0], out); err != nil || out.failure != nil {
				t.Fatalf("%s: %v, %v", send, err, out.failure)
			}
			if err := compare(answer, g.asInPages(out.text)); err != nil {
				t.Errorf("%s: %v\ngot:\n%s", answer, err, out.text)
			}
			if start == nil {
				return // the example logs the message
			}
			if m := g.take(); m.Message != "It works" {
				t.Errorf("%s: the destination has %+v", send, m)
			}
		})
	}
}

// installSections returns the blocks of install.md by the heading above them.
func installSections(t *testing.T) map[string][]block {
	t.Helper()
	headings := map[int]string{}
	for i, line := range strings.Split(readFile(t, "docs/install.md"), "\n") {
		if m := regexp.MustCompile(`^##? (.*)`).FindStringSubmatch(line); m != nil {
			headings[i+1] = m[1]
		}
	}
	sections := map[string][]block{}
	for _, b := range readPage(t, "docs/install.md").blocks {
		n := b.line
		for headings[n] == "" {
			n--
		}
		sections[headings[n]] = append(sections[headings[n]], b)
	}
	return sections
}

// installation is a way of install.md that is followed.
type installation struct {
	t         *testing.T
	root      string // stands for /
	dir       string // the folder of the commands
	blocks    []block
	calls     [][]string // of docker and systemctl
	published string     // the host of the gateway for programs on the machine
	g         *gateway
}

// stub is the script that replaces a program. It notes its arguments, one on each line.
const stub = `#!/bin/sh
{ echo "== $(pwd)"; for a in "${0##*/}" "$@"; do echo "$a"; done; } >>'CALLS'
`

// newInstallation runs the commands of the blocks.
func newInstallation(t *testing.T, blocks []block) *installation {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no shell")
	}
	w := &installation{t: t, root: t.TempDir(), dir: t.TempDir(), blocks: blocks}
	w.g = &gateway{dir: t.TempDir(), recorder: newRecorder(t), ports: map[string]string{}, client: new(http.Client)}
	bin, calls := t.TempDir(), filepath.Join(t.TempDir(), "calls")
	caddy := "#!/bin/sh\n[ \"$1\" = run ] && exit\nexec env " + asCaddy + "=1 '" + os.Args[0] + "' \"$@\"\n"
	// A hash at the usual cost takes seconds with the race detector.
	caddy = strings.Replace(caddy, "exec", "[ \"$1\" = hash-password ] && set -- \"$@\" --bcrypt-cost 4\nexec", 1)
	scripts := map[string]string{
		"sudo":   "#!/bin/sh\nexec \"$@\"\n",
		"caddy":  "#!/bin/sh\n[ \"$1\" = add-package ] && exit\n" + strings.TrimPrefix(caddy, "#!/bin/sh\n"),
		"apt":    stub, // the test unpacks
		"docker": stub + "case \"$*\" in *' hash-password') exec caddy hash-password ;; esac\n",
		"gh":     stub, "useradd": stub, "systemctl": stub, "sha256sum": stub,
	}
	for name, text := range scripts {
		//nolint:gosec // a program
		if err := os.WriteFile(filepath.Join(bin, name), []byte(strings.ReplaceAll(text, "CALLS", calls)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"etc/systemd/system", "usr/local/bin"} {
		if err := os.MkdirAll(filepath.Join(w.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	repository, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "caddy"), []byte(caddy), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(repository, "deploy"), filepath.Join(w.dir, "deploy")); err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		if b.language != "sh" {
			continue
		}
		if strings.Contains(b.text, "apt install") {
			w.unpackPackage()
		}
		text := strings.NewReplacer("/etc/", w.root+"/etc/", "/usr/local/", w.root+"/usr/local/",
			"ntfys://ntfy.sh/my-alerts-5j2k", "json"+strings.TrimPrefix(w.g.URL, "http")+"/").Replace(b.text)
		cmd := exec.Command("sh", "-euc", "umask 022\n"+text)
		cmd.Dir, cmd.Stdin = w.dir, strings.NewReader("hiccup\n")
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", b, err, out)
		}
	}
	noted, err := os.ReadFile(calls)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for call := range strings.SplitSeq(string(noted), "== ") {
		if call != "" {
			w.calls = append(w.calls, strings.Split(strings.TrimSuffix(call, "\n"), "\n"))
		}
	}
	return w
}

// call returns the folder and the arguments of the only call of a program whose first
// arguments are words.
func (w *installation) call(words ...string) (dir string, args []string) {
	w.t.Helper()
	for _, c := range w.calls {
		if len(c) > len(words) && strings.Join(c[1:len(words)+1], " ") == strings.Join(words, " ") && c[len(c)-1] != "hash-password" {
			if dir != "" {
				w.t.Fatalf("%q is called twice", words)
			}
			dir, args = c[0], c[len(words)+1:]
		}
	}
	if dir == "" {
		w.t.Fatalf("%q is not called: %q", words, w.calls)
	}
	return dir, args
}

// packageContents are the files of a package, as nfpm.yaml lists them.
type packageContents struct {
	Contents []struct {
		Src, Dst, Type string
		FileInfo       struct{ Mode os.FileMode } `yaml:"file_info"`
	}
}

// unpackPackage puts the files of the package below /etc in place.
func (w *installation) unpackPackage() {
	w.t.Helper()
	var p packageContents
	if err := yaml.Unmarshal([]byte(readFile(w.t, "deploy/package/nfpm.yaml")), &p); err != nil {
		w.t.Fatal(err)
	}
	for _, c := range p.Contents {
		if !strings.HasPrefix(c.Dst, "/etc/") {
			continue
		}
		path := filepath.Join(w.root, c.Dst)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.t.Fatal(err)
		}
		var err error
		if c.Type == "dir" {
			err = os.Mkdir(path, c.FileInfo.Mode)
		} else {
			err = os.WriteFile(path, []byte(readFile(w.t, c.Src)), c.FileInfo.Mode)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// start runs the gateway with a Caddyfile and variables, on another port than that which
// the way publishes.
func (w *installation) start(config string, variables map[string]string) {
	w.t.Helper()
	port := porttest.Free()
	w.g.ports[w.published] = "127.0.0.1:" + port
	if site := variables["NOTIFY_SITE"]; site != "" && site != ":80" {
		w.t.Errorf("the site is %s, so that no request without TLS is taken", site)
	}
	variables["NOTIFY_SITE"] = "http://:" + port
	variables["CADDY_ADMIN"] = "127.0.0.1:" + porttest.Free()
	for name, value := range variables {
		w.g.variables = append(w.g.variables, name+"="+value)
	}
	if err := w.g.start(w.t, config, "127.0.0.1:"+port); err != nil {
		w.t.Fatal(err)
	}
}

// readVariables reads a file of NAME=value lines. With quotes, values may stand in
// single quotes, as systemd and Compose take them.
func (w *installation) readVariables(path string, quotes bool) map[string]string {
	w.t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	variables := map[string]string{}
	for line := range strings.Lines(string(content)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		if quotes {
			if strings.Contains(value, "$") && !strings.HasPrefix(value, "'") {
				w.t.Errorf("%s: %s is not in single quotes", path, name)
			}
			value = strings.Trim(value, "'")
		}
		variables[name] = value
	}
	return variables
}

// runService runs what the unit says.
func (w *installation) runService() {
	w.t.Helper()
	if _, args := w.call("systemctl", "enable"); strings.Join(args, " ") != "--now caddy-notify" {
		w.t.Errorf("systemctl enable %q", args)
	}
	unit := readFile(w.t, "deploy/caddy-notify.service")
	for _, want := range []string{
		"ExecStart=caddy run --config /etc/caddy/Caddyfile\n", "EnvironmentFile=-/etc/caddy/notify.env\n",
		"LoadCredential=ops:/etc/caddy/secrets/ops\n", "Environment=NOTIFY_SECRETS=%d\n",
	} {
		if !strings.Contains(unit, want) {
			w.t.Errorf("the unit lacks %q", want)
		}
	}
	for path, want := range map[string]os.FileMode{"etc/caddy/secrets": 0o700, "etc/caddy/notify.env": 0o600, "etc/caddy/Caddyfile": 0o644} {
		if info, err := os.Stat(filepath.Join(w.root, path)); err != nil || info.Mode().Perm() != want {
			w.t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
	variables := w.readVariables(filepath.Join(w.root, "etc/caddy/notify.env"), true)
	variables["NOTIFY_SECRETS"] = filepath.Join(w.root, "etc/caddy/secrets")
	w.published = "localhost"
	w.start(filepath.Join(w.root, "etc/caddy/Caddyfile"), variables)
}

// checkReadable reports a folder or file that the user of the container cannot read.
func (w *installation) checkReadable(paths ...string) {
	w.t.Helper()
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&0o004 == 0 {
			w.t.Errorf("%s: %v, %v: the user of the container cannot read it", path, info.Mode(), err)
		}
	}
}

// runContainer runs what docker run says.
func (w *installation) runContainer() {
	w.t.Helper()
	dir, args := w.call("docker", "run")
	option := map[string][]string{}
	for i := 0; i+1 < len(args); i++ {
		if strings.HasPrefix(args[i], "--") && !strings.HasPrefix(args[i+1], "--") {
			option[args[i]] = append(option[args[i]], args[i+1])
		}
	}
	if image := args[len(args)-1]; image != "caddynotify/caddy-notify" {
		w.t.Errorf("the image is %s", image)
	}
	variables := w.readVariables(filepath.Join(dir, option["--env-file"][0]), false)
	for _, v := range option["--volume"] {
		if host, ok := strings.CutSuffix(v, ":/run/secrets:ro"); ok {
			variables["NOTIFY_SECRETS"] = host
			w.checkReadable(host, filepath.Join(host, "ops"))
		}
	}
	host, inside, _ := strings.Cut(option["--publish"][0], ":")
	if inside != "80" {
		w.t.Errorf("the port of the container is %s, the Caddyfile has 80", inside)
	}
	w.published = "localhost:" + host
	w.start(w.imageCaddyfile(), variables)
}

// imageCaddyfile returns the path of the Caddyfile that the image has.
func (w *installation) imageCaddyfile() string {
	w.t.Helper()
	dockerfile := readFile(w.t, "deploy/Dockerfile")
	copied := regexp.MustCompile(`(?m)^COPY (\S+) /etc/caddy/Caddyfile$`).FindStringSubmatch(dockerfile)
	if copied == nil || !strings.Contains(dockerfile, `CMD ["run", "--config", "/etc/caddy/Caddyfile"]`) {
		w.t.Fatal("the image does not run /etc/caddy/Caddyfile")
	}
	path, err := filepath.Abs(filepath.Join(root, copied[1]))
	if err != nil {
		w.t.Fatal(err)
	}
	return path
}

// compose is the part of a Compose file that ours uses.
type compose struct {
	Name     string
	Services map[string]struct {
		Image           string
		Restart         string
		Environment     map[string]string
		Ports           []string
		Secrets         []string
		Volumes         []string
		StopGracePeriod string   `yaml:"stop_grace_period"`
		ReadOnly        bool     `yaml:"read_only"`
		Tmpfs           []string `yaml:"tmpfs"`
		CapDrop         []string `yaml:"cap_drop"`
		SecurityOpt     []string `yaml:"security_opt"`
	}
	Secrets map[string]struct{ File string }
	Volumes map[string]any
}

// composeVariable matches a variable of a Compose file, with its default or the text of
// the error if it is not set.
var composeVariable = regexp.MustCompile(`\$\{(\w+):([-?])([^}]*)\}`)

// readCompose reads the Compose file with the variables of .env.
func (w *installation) readCompose(variables map[string]string) (c compose) {
	w.t.Helper()
	text := composeVariable.ReplaceAllStringFunc(readFile(w.t, "deploy/compose.yaml"), func(s string) string {
		m := composeVariable.FindStringSubmatch(s)
		if value := variables[m[1]]; value != "" {
			return value
		}
		if m[2] == "?" {
			w.t.Errorf("%s is not set: %s", m[1], m[3])
		}
		return m[3]
	})
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&c); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// runCompose runs the service of the Compose file.
func (w *installation) runCompose() {
	w.t.Helper()
	dir, args := w.call("docker", "compose")
	if strings.Join(args, " ") != "up --detach" {
		w.t.Errorf("docker compose %q", args)
	}
	c := w.readCompose(w.readVariables(filepath.Join(dir, ".env"), true))
	s := c.Services["gateway"]
	if s.Image != "caddynotify/caddy-notify" || !s.ReadOnly {
		w.t.Errorf("the service is %+v", s)
	}
	for _, v := range s.Volumes {
		if name, _, _ := strings.Cut(v, ":"); !strings.HasPrefix(name, ".") {
			if _, ok := c.Volumes[name]; !ok {
				w.t.Errorf("the volume %s does not exist", name)
			}
		}
	}
	secrets := w.t.TempDir() // as Compose mounts them
	for _, name := range s.Secrets {
		path := filepath.Join(dir, c.Secrets[name].File)
		w.checkReadable(path)
		content, err := os.ReadFile(path)
		if err != nil {
			w.t.Fatal(err)
		}
		writeFile(w.t, filepath.Join(secrets, name), string(content))
	}
	var host string
	if n, _ := fmt.Sscanf(strings.Replace(s.Ports[0], ":", " ", 1), "%s 80", &host); n != 1 {
		w.t.Fatalf("the ports are %q", s.Ports)
	}
	if w.published = "localhost:" + host; host == "80" {
		w.published = "localhost"
	}
	variables := map[string]string{"NOTIFY_SECRETS": secrets}
	maps.Copy(variables, s.Environment)
	w.start(w.imageCaddyfile(), variables)
}

// runCaddyfile runs the Caddyfile of the page.
func (w *installation) runCaddyfile() {
	w.t.Helper()
	w.published = "localhost"
	for _, b := range w.blocks {
		if b.language == "caddyfile" {
			port := porttest.Free()
			path := filepath.Join(w.dir, "Caddyfile")
			writeFile(w.t, path, strings.NewReplacer("http://localhost {", "http://localhost:"+port+" {",
				"ntfys://ntfy.sh/my-alerts-5j2k", "json"+strings.TrimPrefix(w.g.URL, "http")+"/").Replace(b.text))
			w.g.ports[w.published] = "127.0.0.1:" + port
			w.g.variables = []string{"CADDY_ADMIN=127.0.0.1:" + porttest.Free()}
			if err := w.g.start(w.t, path, "127.0.0.1:"+port); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// runInit runs the Caddyfile that caddy notify init has written. The test message has
// arrived.
func (w *installation) runInit() {
	w.t.Helper()
	if m := w.g.take(); m.Title != "It works" {
		w.t.Errorf("the test message is %+v", m)
	}
	text, err := os.ReadFile(filepath.Join(w.dir, "notify", "Caddyfile"))
	if err != nil {
		w.t.Fatal(err)
	}
	port := porttest.Free()
	path := filepath.Join(w.dir, "Caddyfile")
	writeFile(w.t, path, strings.Replace(string(text), "http://:8080 {", "http://:"+port+" {", 1))
	w.published = "127.0.0.1:8080"
	w.g.ports[w.published] = "127.0.0.1:" + port
	w.g.variables = []string{"CADDY_ADMIN=127.0.0.1:" + porttest.Free()}
	if err := w.g.start(w.t, path, "127.0.0.1:"+port); err != nil {
		w.t.Fatal(err)
	}
}
