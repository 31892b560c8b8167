package integration

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// firstBefore is the version before until there is a release: a commit with which the tests of
// upgrades begin.
const firstBefore = "684ba9ac813692eebb1205ef73719c7a5142f2ab"

// buildBefore builds the version before: the latest release, or else firstBefore. A program is
// built from what git has of it; version is "" if the clone does not have it.
var buildBefore = sync.OnceValues(func() (built struct{ program, version string }, err error) {
	git := func(args ...string) ([]byte, error) {
		c := exec.Command("git", append([]string{"-c", "safe.directory=*"}, args...)...)
		c.Dir = "../.."
		return c.Output()
	}
	version := firstBefore
	// A release that is being made is not before itself.
	if tag, err := git("describe", "--tags", "--abbrev=0", "--match=v[0-9]*", "HEAD^"); err == nil {
		version = strings.TrimSpace(string(tag))
	}
	if _, err := git("cat-file", "-e", version+"^{commit}"); err != nil {
		return built, nil
	}
	source, err := git("archive", version)
	if err != nil {
		return built, fmt.Errorf("reading %s: %w", version, err)
	}
	dir := filepath.Join(scratch, "before")
	if err := unpackTar(dir, source); err != nil {
		return built, err
	}
	program := filepath.Join(scratch, "caddy-before")
	// With the flags of buildGateway, the build cache has what has not changed since.
	build := exec.Command("go", "run", "-exec=cp", "-ldflags=-s -w", "-race=false", "./cmd/caddy", program)
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return built, fmt.Errorf("building %s: %w: %s", version, err, out)
	}
	built.program, built.version = program, version
	return built, nil
})

func unpackTar(dir string, archive []byte) error {
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case h.Typeflag != tar.TypeReg:
			continue
		}
		file := filepath.Join(dir, filepath.FromSlash(h.Name))
		data, err := io.ReadAll(r)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(file), 0o755)
		}
		if err == nil {
			err = os.WriteFile(file, data, 0o644)
		}
		if err != nil {
			return err
		}
	}
}

// upgrade is a queue that two versions of the program use, and the destination of its keys.
type upgrade struct {
	t      *testing.T
	queue  string // the option queue
	now    string // this program
	before string // the version before
	to     string // the notification URL of the destination

	mu  sync.Mutex
	got map[string][]time.Time // when messages have arrived, by key, type and title
}

func newUpgrade(t *testing.T, queue string) *upgrade {
	t.Helper()
	u := &upgrade{t: t, queue: queue, got: map[string][]time.Time{}}
	before, err := buildBefore()
	if err != nil {
		t.Fatal(err)
	}
	if before.version == "" {
		if os.Getenv("GITHUB_ACTIONS") != "" { // there, the workflow fetches the whole history
			t.Fatal("the clone does not have the version before: fetch the whole history")
		}
		t.Skip("the clone does not have the version before")
	}
	u.before = before.program
	if u.now, err = buildGateway(); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m struct{ Type, Title string }
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		what := fmt.Sprintf("%s %s %s", strings.Trim(r.URL.Path, "/"), m.Type, m.Title)
		u.got[what] = append(u.got[what], time.Now())
	}))
	t.Cleanup(func() {
		s.Close()
		if t.Failed() {
			t.Log("arrived: ", u.got)
		}
	})
	u.to = "json" + strings.TrimPrefix(s.URL, "http") + "/"
	return u
}

// phases are the times of an upgrade, each with keys of its own.
var phases = []string{"upgrade", "back", "beside"}

// run starts a program with the queue.
func (u *upgrade) run(program string) *queueGateway {
	u.t.Helper()
	var keys strings.Builder
	for _, phase := range phases {
		key := func(kind, options string) {
			fmt.Fprintf(&keys, "key %s-%s {\nurl %s%[1]s-%[2]s\n%[4]s\n}\n", kind, phase, u.to, options)
		}
		key("planned", "")
		key("digest", "digest 20s")
		key("quiet", "")
		key("asked", "")
		key("ruled", "")
		key("beat", `expect job cron "0 0 1 1 *" max_run 15s`)
	}
	port := freePort(u.t)
	config := writeFile(u.t, "Caddyfile", fmt.Sprintf(`{
	admin off
	persist_config off
	notify {
		%s
		public_url https://alerts.example.com
		from prometheus {
			group_wait 1s
			group_interval 3s
		}
		%s
	}
}
http://127.0.0.1:%d {
	notify {
		site alerts
		console {
			manage open
		}
	}
}
`, u.queue, keys.String(), port))
	s := start(u.t, port, program, "run", "--config", config, "--adapter", "caddyfile")
	return &queueGateway{server: s, url: fmt.Sprintf("http://127.0.0.1:%d", port)}
}

// end ends a program as a service manager does.
func (u *upgrade) end(g *queueGateway) {
	u.t.Helper()
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		u.t.Fatal(err)
	}
	_ = g.cmd.Wait()
}

// do posts to a gateway, and decodes the answer into out if it is not nil.
func (u *upgrade) do(g *queueGateway, path, contentType, body string, out any) {
	u.t.Helper()
	r := request(u.t, http.MethodPost, g.url+path, body)
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Accept", "application/json")
	status, text := ask(u.t, r)
	if status >= http.StatusMultipleChoices {
		u.t.Fatalf("%s: %d %s", path, status, text)
	}
	if out != nil {
		if err := json.Unmarshal([]byte(text), out); err != nil {
			u.t.Fatalf("%s: %v: %s", path, err, text)
		}
	}
}

// begun is what is under way in a phase.
type begun struct {
	phase    string
	at       time.Time
	question string // its path
}

const formType, jsonType = "application/x-www-form-urlencoded", "application/json"

// begin lets a gateway have under way what a rule, a time or somebody decides later.
func (u *upgrade) begin(g *queueGateway, phase string) begun {
	u.t.Helper()
	b := begun{phase: phase, at: time.Now()}
	send := func(key string, fields url.Values) {
		fields.Set("body", "x")
		u.do(g, "/notify/"+key+"-"+phase, formType, fields.Encode(), nil)
	}
	u.do(g, "/notify/quiet-"+phase+"/silences", formType, "for=20s&title=cellar", nil)
	send("planned", url.Values{"title": {"planned"}, "send_at": {"20s"}})
	for range 3 {
		send("digest", url.Values{"title": {"part"}})
	}
	time.Sleep(1500 * time.Millisecond) // until every gateway knows the silence
	send("quiet", url.Values{"title": {"cellar"}, "type": {"failure"}, "incident": {"cellar"}})
	var question struct{ ID string }
	u.do(g, "/notify/asked-"+phase, jsonType,
		`{"title": "asked", "body": "x", "ask": {"options": ["yes", "no"], "timeout": "20s", "default": "no"}}`, &question)
	b.question = "/notify/messages/" + question.ID
	u.rule(g, b, time.Minute)
	u.do(g, "/notify/beat-"+phase+"?beat=job&state=start", formType, "", nil)
	return b
}

// rule posts an alert as a ruler does, which lasts for a time from now on.
func (u *upgrade) rule(g *queueGateway, b begun, lasts time.Duration) {
	u.t.Helper()
	u.do(g, "/notify/ruled-"+b.phase+"/prometheus/api/v2/alerts", jsonType, fmt.Sprintf(
		`[{"labels": {"alertname": "Disk", "severity": "critical"}, "endsAt": %q}]`, time.Now().Add(lasts).UTC().Format(time.RFC3339Nano)), nil)
}

// state returns the state of a question.
func (u *upgrade) state(g *queueGateway, b begun) string {
	u.t.Helper()
	r := request(u.t, http.MethodGet, g.url+b.question, "")
	r.Header.Set("Accept", "application/json")
	_, text := ask(u.t, r)
	var q struct{ Ask struct{ State string } }
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		u.t.Errorf("the question: %v: %s", err, text)
	}
	return q.Ask.State
}

// ends checks that a gateway does all that was under way: nothing is lost, and each message comes
// once, not before its time.
func (u *upgrade) ends(g *queueGateway, b begun) {
	u.t.Helper()
	if s := u.state(g, b); s != "open" {
		u.t.Errorf("%s: the question is %q", b.phase, s)
	}
	want := map[string]time.Duration{ // when each message comes at the earliest
		"planned info planned": 20 * time.Second, "digest info digest-" + b.phase: 20 * time.Second, "quiet failure cellar": 20 * time.Second,
		"asked info asked": 0, "ruled failure Disk": 0, "ruled success Disk": 15 * time.Second, "beat failure job": 15 * time.Second,
	}
	u.rule(g, b, time.Minute) // a repetition, which tells nothing
	time.Sleep(time.Until(b.at.Add(15 * time.Second)))
	u.rule(g, b, -time.Second)
	arrived := func(what string) (at []time.Time) {
		kind, rest, _ := strings.Cut(what, " ")
		u.mu.Lock()
		defer u.mu.Unlock()
		for name, times := range u.got {
			if strings.HasPrefix(name, kind+"-"+b.phase+" "+rest) {
				at = append(at, times...)
			}
		}
		return at
	}
	for what := range want {
		within(u.t, 2*time.Minute, b.phase+": "+what+" arrives", func() bool { return len(arrived(what)) > 0 })
	}
	within(u.t, time.Minute, b.phase+": the question has expired", func() bool { return u.state(g, b) == "expired" })
	time.Sleep(3 * time.Second) // what is sent twice comes at once, which nothing but time can show
	for what, after := range want {
		at := arrived(what)
		if early := b.at.Add(after - time.Second); len(at) != 1 || at[0].Before(early) {
			u.t.Errorf("%s: %s arrived %d times, first %s after the phase began, want once after %s", b.phase, what, len(at),
				at[0].Sub(b.at).Round(time.Millisecond), after)
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for name := range u.got {
		known := !strings.Contains(name, "-"+b.phase+" ")
		for what := range want {
			kind, rest, _ := strings.Cut(what, " ")
			known = known || strings.HasPrefix(name, kind+"-"+b.phase+" "+rest)
		}
		if !known {
			u.t.Errorf("%q has arrived, too", name)
		}
	}
}

// TestUpgradePostgres is a rolling upgrade and the way back: the version before and this one share a
// database, each in turn begins what the other one ends, and both work at the same time.
func TestUpgradePostgres(t *testing.T) {
	t.Parallel()
	p := newPostgres(t)
	u := newUpgrade(t, fmt.Sprintf("queue postgres postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable {\n"+
		"secret a-secret-for-the-test\n}", p.port))
	before := u.run(u.before)
	b := u.begin(before, "upgrade")
	now := u.run(u.now)
	time.Sleep(3 * time.Second) // the version before looks at the tables every two seconds
	u.end(before)
	u.ends(now, b)

	b = u.begin(now, "back")
	before = u.run(u.before)
	u.end(now)
	u.ends(before, b)

	now = u.run(u.now)
	b = u.begin(before, "beside")
	u.ends(now, b)
}

// TestUpgradeFolder is an upgrade and the way back with the queue in a folder.
func TestUpgradeFolder(t *testing.T) {
	t.Parallel()
	u := newUpgrade(t, "queue {\npath "+t.TempDir()+"\n}")
	before := u.run(u.before)
	b := u.begin(before, "upgrade")
	u.end(before)
	now := u.run(u.now)
	u.ends(now, b)

	b = u.begin(now, "back")
	u.end(now)
	u.ends(u.run(u.before), b)
}
