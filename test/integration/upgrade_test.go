package integration

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
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
	"strconv"
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
	kills  bool   // programs are killed, in the middle of deliveries

	mu    sync.Mutex
	got   map[string][]time.Time // when messages have arrived, by key, type and title
	links map[string]string      // the last segments of the links of questions, by title
	// While down is set, slow has the messages that are being delivered, without an end, and failed those that
	// were refused.
	down         bool
	slow, failed map[string]bool
}

func newUpgrade(t *testing.T, queue string) *upgrade {
	t.Helper()
	u := &upgrade{
		t: t, queue: queue, got: map[string][]time.Time{}, links: map[string]string{}, slow: map[string]bool{}, failed: map[string]bool{},
	}
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
	s := httptest.NewServer(http.HandlerFunc(u.receive))
	t.Cleanup(func() {
		s.Close()
		if t.Failed() {
			t.Log("arrived: ", u.got)
		}
	})
	u.to = "json" + strings.TrimPrefix(s.URL, "http") + "/"
	return u
}

// receive is the destination.
func (u *upgrade) receive(w http.ResponseWriter, r *http.Request) {
	var m struct {
		Type, Title string
		AnswerURL   string `json:"answer_url"`
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		if !u.kills { // it was killed while it sent
			u.t.Error(err)
		}
		return
	}
	what := fmt.Sprintf("%s %s %s", strings.Trim(r.URL.Path, "/"), m.Type, m.Title)
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.down && strings.HasPrefix(what, "slow-"):
		u.slow[what] = true
		u.mu.Unlock()
		<-r.Context().Done()
		u.mu.Lock()
		return
	case u.down && strings.HasPrefix(what, "failed-"):
		u.failed[what] = true
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	u.got[what] = append(u.got[what], time.Now())
	if _, link, ok := strings.Cut(m.AnswerURL, "/notify/asks/"); ok {
		u.links[m.Title] = link
	}
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
		key("slow", "")
		key("failed", "")
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

// end ends a program as a service manager does, or kills it in the middle of its work.
func (u *upgrade) end(g *queueGateway) {
	u.t.Helper()
	signal := syscall.SIGTERM
	if u.kills {
		signal = syscall.SIGKILL
	}
	if err := g.cmd.Process.Signal(signal); err != nil {
		u.t.Fatal(err)
	}
	_ = g.cmd.Wait()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.down = false
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
	if u.kills {
		u.deliver(send, b)
	}
	return b
}

// inDelivery is how many messages are on their way to a destination when a program is killed.
const inDelivery = 3

// deliver lets messages be on their way, of which some are being sent and others have failed, and what
// was to be sent at once have arrived.
func (u *upgrade) deliver(send func(key string, fields url.Values), b begun) {
	u.t.Helper()
	u.mu.Lock()
	u.down = true
	u.mu.Unlock()
	for i := range inDelivery {
		send("slow", url.Values{"title": {fmt.Sprint("slow ", i)}})
		send("failed", url.Values{"title": {fmt.Sprint("failed ", i)}})
	}
	within(u.t, time.Minute, b.phase+": deliveries are under way", func() bool {
		told := len(u.arrived(b, "asked info asked")) > 0 && len(u.arrived(b, "ruled failure Disk")) > 0
		u.mu.Lock()
		defer u.mu.Unlock()
		return told && len(u.slow) > 0 && len(u.failed) > 0
	})
	time.Sleep(time.Second) // until it is stored that these have arrived: what is not would be sent again
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

// arrived returns when something of a phase has arrived, given as its kind of key, its type and its title.
func (u *upgrade) arrived(b begun, what string) (at []time.Time) {
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
	if u.kills {
		for i := range inDelivery {
			want[fmt.Sprintf("slow info slow %d", i)], want[fmt.Sprintf("failed info failed %d", i)] = 0, 0
		}
	}
	u.rule(g, b, time.Minute) // a repetition, which tells nothing
	time.Sleep(time.Until(b.at.Add(15 * time.Second)))
	u.rule(g, b, -time.Second)
	for what := range want {
		within(u.t, 2*time.Minute, b.phase+": "+what+" arrives", func() bool { return len(u.arrived(b, what)) > 0 })
	}
	within(u.t, time.Minute, b.phase+": the question has expired", func() bool { return u.state(g, b) == "expired" })
	time.Sleep(3 * time.Second) // what is sent twice comes at once, which nothing but time can show
	for what, after := range want {
		at := u.arrived(b, what)
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

// answered checks that a question that was asked through one gateway can be answered through another, and
// that who asked hears of it: a client that waits, and one that reads the stream.
func (u *upgrade) answered(asks, answers *queueGateway, title string) {
	u.t.Helper()
	var question struct{ ID string }
	u.do(asks, "/notify/asked-"+phases[0], jsonType,
		fmt.Sprintf(`{"title": %q, "body": "x", "ask": {"options": ["yes", "no"], "timeout": "1h"}}`, title), &question)
	path := "/notify/messages/" + question.ID
	heard := make(chan string)
	for _, accept := range []string{jsonType, "text/event-stream"} {
		go func() { heard <- accept + ": " + hear(u.t, asks.url+path+"?wait=60", accept, `"answer":"yes"`) }()
	}
	link := ""
	eventually(u.t, title+": the question arrives", func() bool {
		u.mu.Lock()
		defer u.mu.Unlock()
		link = u.links[title]
		return link != ""
	})
	time.Sleep(time.Second) // until both listen
	u.do(answers, "/notify/asks/"+link, formType, "answer=yes&by=Ann", nil)
	for range 2 {
		if text := <-heard; !strings.Contains(text, `"answer":"yes"`) || !strings.Contains(text, "Ann") {
			u.t.Errorf("%s: heard is %s", title, text)
		}
	}
	if s := u.state(asks, begun{question: path}); s != "answered" {
		u.t.Errorf("%s: the question is %q", title, s)
	}
}

// hear reads an answer or a stream until it has a text.
func hear(t *testing.T, address, accept, until string) (heard string) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err.Error()
	}
	r.Header.Set("Accept", accept)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); !strings.Contains(heard, until) && lines.Scan(); {
		heard += lines.Text() + "\n"
	}
	return heard
}

// TestUpgradePostgres is a rolling upgrade and the way back: the version before and this one share a
// database, each in turn begins what the other one ends, and both work at the same time: a question of one
// is answered through the other.
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
	u.answered(before, now, "asked before")
	u.answered(now, before, "asked now")
	u.ends(now, b)
}

// TestUpgradePostgresKilled is an upgrade and the way back if the programs are killed in the middle of their
// work. What a killed program was sending waits for a minute, and is sent by the next one. Each way has a
// database, so that the two minutes are one.
func TestUpgradePostgresKilled(t *testing.T) {
	t.Parallel()
	p := newPostgres(t)
	killed(t, func(t *testing.T, phase string) string {
		create := p.command("createdb", "-h", "127.0.0.1", "-p", strconv.Itoa(p.port), "-U", "postgres", phase)
		if out, err := create.CombinedOutput(); err != nil {
			t.Fatalf("createdb: %v\n%s", err, out)
		}
		return fmt.Sprintf("queue postgres postgres://postgres@127.0.0.1:%d/%s?sslmode=disable {\n"+
			"secret a-secret-for-the-test\n}", p.port, phase)
	})
}

// killed kills the version before in the middle of its work and starts this one, and the other way round. queue
// returns the option queue.
func killed(t *testing.T, queue func(t *testing.T, phase string) string) {
	t.Helper()
	for _, phase := range []string{"upgrade", "back"} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			u := newUpgrade(t, queue(t, phase))
			u.kills = true
			first, second := u.before, u.now
			if phase == "back" {
				first, second = second, first
			}
			g := u.run(first)
			b := u.begin(g, phase)
			u.end(g)
			u.ends(u.run(second), b)
		})
	}
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

// TestUpgradeFolderKilled is TestUpgradeFolder if the programs are killed in the middle of their work.
func TestUpgradeFolderKilled(t *testing.T) {
	t.Parallel()
	killed(t, func(t *testing.T, _ string) string { return "queue {\npath " + t.TempDir() + "\n}" })
}
