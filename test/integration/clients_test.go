package integration

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// buildGateway builds the program in the gateway's module, once for each run.
var buildGateway = sync.OnceValues(func() (string, error) {
	program := filepath.Join(scratch, "caddy")
	// As releases are built, with the newest Caddy. Unlike go build, go run keeps what it links
	// in the build cache.
	build := exec.Command("go", "run", "-exec=cp", "-modfile=newest.mod", "-ldflags=-s -w", "-race=false", "./cmd/caddy", program)
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
})

// startGateway runs the gateway with a Caddyfile, which begins with global options, and
// waits until it listens at the port. Its data, such as a queue without a path, are in a
// folder of this run.
func startGateway(t *testing.T, port int, caddyfile string) *server {
	t.Helper()
	caddy, err := buildGateway()
	if err != nil {
		t.Fatal(err)
	}
	options, ok := strings.CutPrefix(caddyfile, "{\n")
	if !ok {
		t.Fatal("the Caddyfile does not begin with global options")
	}
	config := writeFile(t, "Caddyfile", "{\n\tadmin off\n\tpersist_config off\n"+options)
	return start(t, port, caddy, "run", "--config", config, "--adapter", "caddyfile")
}

// newGateway runs a gateway whose notify directive contains block, and returns
// its host and port.
func newGateway(t *testing.T, block string) string {
	t.Helper()
	port := freePort(t)
	startGateway(t, port,
		fmt.Sprintf("{\n}\nhttp://127.0.0.1:%d {\nhandle_path /sub/* {\nnotify {\n%[2]s\n}\n}\nnotify {\n%[2]s\n}\n}\n", port, block))
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// request returns a request whose body, if it has one, is a form.
func request(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return r
}

// ask sends a request and returns the status and the body of the answer, which may lead
// elsewhere.
func ask(t *testing.T, r *http.Request) (int, string) {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// to returns the notification URL of a path of the webhook.
func (w *webhook) to(path string) string {
	return "json://" + strings.TrimPrefix(w.URL, "http://") + path
}

// paths returns the paths at which messages have arrived since the last call,
// sorted.
func (w *webhook) paths() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, p := range w.got {
		out = append(out, strings.Trim(p.Path, "/"))
	}
	w.got = nil
	slices.Sort(out)
	return strings.Join(out, " ")
}

// apprise runs the Apprise command without the user's files. It reports whether
// the command considers the messages sent.
func apprise(t *testing.T, args ...string) (ok bool, said string) {
	t.Helper()
	cmd := exec.Command(program(t, "apprise", "apprise"), append([]string{"-vv"}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	return err == nil, string(out)
}

// TestApprise checks that the Apprise command sends through the gateway with
// apprise:// URLs.
func TestApprise(t *testing.T) {
	hook := newWebhook(t)
	gateway := newGateway(t, fmt.Sprintf("key ops {\nurl %s chat\nurl %s mail\nurl %s refuse\ndefault_tag chat\n}",
		hook.to("/chat"), hook.to("/mail"), hook.to("/refuse")))
	const text = "one <b>&\"quoted\"</b> é 漢字 😀 + % # ?"
	for _, place := range []string{"/ops", "/sub/ops"} {
		for _, method := range []string{"form", "json"} {
			to := "apprise://" + gateway + place + "?method=" + method
			if ok, said := apprise(t, "-t", "A title", "-b", text, "-n", "warning", to); !ok {
				t.Errorf("%s: %s", to, said)
				continue
			}
			p := hook.take(t, "/chat")
			if p.Title != "A title" || p.Message != text || p.Type != "warning" || len(p.Attachments) != 0 {
				t.Errorf("%s: arrived %+v", to, p)
			}
		}
	}
	if ok, said := apprise(t, "-b", "x", "apprise://"+gateway+"/other"); ok {
		t.Errorf("an unknown key is accepted: %s", said)
	}
	// With method=json, a client with tags sends nothing.
	for _, tt := range []struct {
		tags, arrives string
		ok            bool
	}{
		{"mail", "mail", true},
		{"mail,chat", "chat mail", true},
		{"refuse", "refuse", false},
		{"none", "", false},
	} {
		ok, said := apprise(t, "-b", "x", "apprise://"+gateway+"/ops?tags="+tt.tags)
		if got := hook.paths(); ok != tt.ok || got != tt.arrives {
			t.Errorf("tags=%s: success %t, messages at %q, want %q\n%s", tt.tags, ok, got, tt.arrives, said)
		}
	}
}

func TestAppriseFiles(t *testing.T) {
	if _, version := apprise(t, "--version"); strings.Contains(version, "v1.2.") {
		t.Skip("this version of Apprise (Debian 12) sends only JSON and no files to apprise:// URLs")
	}
	hook := newWebhook(t)
	gateway := newGateway(t, "key ops {\nurl "+hook.to("/chat")+"\n}")
	file := writeFile(t, "graph.txt", "the\x00file\n")
	for _, method := range []string{"form", "json"} {
		to := "apprise://" + gateway + "/ops?method=" + method
		if ok, said := apprise(t, "-b", "see", "-a", file, "-a", file, to); !ok {
			t.Errorf("%s: %s", to, said)
			continue
		}
		p := hook.take(t, "/chat")
		if p.Message != "see" || len(p.Attachments) != 2 ||
			string(p.Attachments[1].Base64) != "the\x00file\n" || p.Attachments[0].Filename != "graph.txt" {
			t.Errorf("%s: arrived %+v", to, p)
		}
	}
}

// TestAppriseWebhooks checks that programs that contain Apprise, such as
// changedetection.io, can also send to the gateway with json://, form:// and xml:// URLs.
// Parameters with a hyphen become the query string.
func TestAppriseWebhooks(t *testing.T) {
	hook := newWebhook(t)
	gateway := newGateway(t, "key ops {\nurl "+hook.to("/chat")+"\n}")
	file := writeFile(t, "graph.txt", "the\x00file\n")
	const text = "91% <b>&\"full\"</b> é" // version 1.2 fails to send other characters in XML
	for _, tt := range []struct {
		url   string
		files int
	}{
		{"json://" + gateway + "/notify/ops?-:message=body", 0},
		{"json://" + gateway + "/notify/ops", 0},
		{"json://" + gateway + "/notify/ops", 1},
		{"form://" + gateway + "/notify/ops", 0}, // version 1.2 fails to send a file
		{"xml://" + gateway + "/notify/ops", 0},
		{"xml://" + gateway + "/notify/ops", 1},
	} {
		args := []string{"-t", "A title", "-b", text, "-n", "failure", tt.url}
		if tt.files > 0 {
			args = append(args, "-a", file)
		}
		if ok, said := apprise(t, args...); !ok {
			t.Errorf("%s: %s", tt.url, said)
			continue
		}
		p := hook.take(t, "/chat")
		if p.Title != "A title" || p.Message != text || p.Type != "failure" || len(p.Attachments) != tt.files {
			t.Errorf("%s: arrived %+v", tt.url, p)
		}
		if tt.files > 0 && (p.Attachments[0].Filename != "graph.txt" || string(p.Attachments[0].Base64) != "the\x00file\n") {
			t.Errorf("%s: arrived %+v", tt.url, p.Attachments)
		}
	}
}

// TestImportedConfiguration checks that a configuration file reaches the same
// destinations through the gateway as through Apprise.
func TestImportedConfiguration(t *testing.T) {
	hook := newWebhook(t)
	host := hook.to("")
	more := writeFile(t, "more.conf", "eve="+host+"/eve\n")
	for name, text := range map[string]string{
		"f.conf": "# c\n; c\n\ninclude " + more + "\n" + host + "/plain\n ops, dev = " +
			host + "/a?overflow=split\nops=" + host + "/b\nmail other= " + host + "/c\n",
		"f.yml": `version: 1
include: ` + more + `
urls:
  - ` + host + `/plain
  - ` + host + `/a?overflow=split:
      tag: ops, dev
  - ` + host + `/b:
    - tag: ops
    - tag: mail
      format: markdown
  - ` + host + `/c:
      tag: [mail, other]
      +X-Header: value
`,
	} {
		file := writeFile(t, name, text)
		gateway := newGateway(t, "key k {\nimport_apprise "+file+"\n}")
		for _, tag := range []string{"all", "ops", "dev", "mail", "other", "eve", "none"} {
			_, said := apprise(t, "-b", "x", "-c", file, "-g", tag)
			wanted := hook.paths()
			resp, err := http.PostForm("http://"+gateway+"/notify/k", url.Values{"body": {"x"}, "tag": {tag}})
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if got := hook.paths(); got != wanted || (got == "") != (tag == "none") {
				t.Errorf("%s, tag %s: messages at %q, want %q\n%s", name, tag, got, wanted, said)
			}
		}
	}
}

// TestTagNumbers checks that the numbers of tags select the same destinations as
// in Apprise, with the same outcome.
func TestTagNumbers(t *testing.T) {
	if _, version := apprise(t, "--version"); regexp.MustCompile(`v1\.([0-9]|10)\.`).MatchString(version) {
		t.Skip("this version of Apprise does not have numbers in tags")
	}
	hook := newWebhook(t)
	host := hook.to("")
	var files []string
	var keys strings.Builder
	for _, tags := range [][]string{
		{"1:ops", "2:ops", "3:ops", "db", "always"},
		{"ops", "1:ops db", "2:ops 1:db", "2:db", "2:always"},
		{"2:ops 3:db", "1:ops db", "1:db", "", "10:ops"},
	} {
		for _, refused := range []string{"0", "01"} {
			var b strings.Builder
			for i, tag := range tags {
				name := fmt.Sprint("/good", i)
				if strings.Contains(refused, fmt.Sprint(i)) {
					name = fmt.Sprint("/refuse", i)
				}
				if tag != "" {
					b.WriteString(strings.ReplaceAll(tag, " ", ",") + "=")
				}
				b.WriteString(host + name + "?wait=0\n")
			}
			file := writeFile(t, fmt.Sprintf("f%d.conf", len(files)), b.String())
			fmt.Fprintf(&keys, "key k%d {\nimport_apprise %s\n}\n", len(files), file)
			files = append(files, file)
		}
	}
	gateway := newGateway(t, keys.String())
	for i, file := range files {
		for _, tag := range []string{"ops", "db,ops", "ops db,db", "0:ops", "1:ops,db", "ops:1"} {
			args := []string{"-b", "x", "-c", file}
			for or := range strings.SplitSeq(tag, ",") {
				args = append(args, "-g", or)
			}
			ok, said := apprise(t, args...)
			wanted := hook.paths()
			resp, err := http.PostForm(fmt.Sprintf("http://%s/notify/k%d", gateway, i), url.Values{"body": {"x"}, "tag": {tag}})
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if got := hook.paths(); got != wanted || ok != (resp.StatusCode == http.StatusOK) {
				t.Errorf("%s of %s reached %q (status %d), but Apprise %q (success %v): %s", tag, file, got, resp.StatusCode, wanted, ok, said)
			}
		}
	}
}
