package integration

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// postgres is a PostgreSQL server on loopback.
type postgres struct {
	bin, dir string
	port     int
	attr     *syscall.SysProcAttr
	cmd      *exec.Cmd
}

// newPostgres creates and starts a server, which is stopped when the test ends.
func newPostgres(t *testing.T) *postgres {
	t.Helper()
	p := findPostgres(t)
	if out, err := p.command("initdb", "-D", p.dir, "-U", "postgres", "-A", "trust",
		"--no-sync", "-E", "UTF8", "--locale=C").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	p.start(t)
	t.Cleanup(func() { p.stop(syscall.SIGQUIT) })
	return p
}

// findPostgres returns a server that has a port and a folder, but no data yet. Its programs
// run as another user than root, which the folder belongs to.
func findPostgres(t *testing.T) *postgres {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		found = []string{program(t, "initdb", "postgresql")}
	}
	p := &postgres{bin: filepath.Dir(found[len(found)-1]), port: freePort(t)}
	dir, err := os.MkdirTemp("", "postgres")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p.dir = filepath.Join(dir, "data")
	if os.Getuid() == 0 { // initdb does not run as root
		u, err := user.Lookup("postgres")
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		p.attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// command returns a command that runs a program of PostgreSQL.
func (p *postgres) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.bin, name), args...)
	cmd.SysProcAttr, cmd.Dir = p.attr, filepath.Dir(p.dir)
	return cmd
}

// start starts the server and waits until it takes connections.
func (p *postgres) start(t *testing.T) {
	t.Helper()
	// The server ends and the machine stays, so what it has written needs no fsync.
	p.cmd = p.command("postgres", "-D", p.dir, "-p", strconv.Itoa(p.port), "-h", "127.0.0.1", "-k", p.dir, "-c", "fsync=off")
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	within(t, 3*time.Minute, "PostgreSQL is ready", func() bool {
		return p.command("pg_isready", "-h", "127.0.0.1", "-p", strconv.Itoa(p.port), "-U", "postgres", "-d", "postgres").Run() == nil
	})
}

// stop ends the server: at once with SIGQUIT, so that it recovers at the next
// start.
func (p *postgres) stop(sig syscall.Signal) {
	_ = p.cmd.Process.Signal(sig)
	_ = p.cmd.Wait()
}

// arrivals counts the messages that arrive at a destination, by their titles.
type arrivals struct {
	url string
	mu  sync.Mutex
	got map[string]int
}

func newArrivals(t *testing.T) *arrivals {
	t.Helper()
	a := &arrivals{got: map[string]int{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct{ Title string }
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			return // the gateway was killed while it sent
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.got[m.Title]++
	}))
	t.Cleanup(s.Close)
	a.url = "json://" + strings.TrimPrefix(s.URL, "http://")
	return a
}

// lost returns how many of the titles have not arrived, and how many arrivals
// there were of a message that had arrived before.
func (a *arrivals) lost(titles *sync.Map) (lost, again int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	titles.Range(func(title, _ any) bool {
		if a.got[title.(string)] == 0 {
			lost++
		}
		return true
	})
	for _, n := range a.got {
		again += n - 1
	}
	return lost, again
}

// queueGateway is a gateway with its queue in Postgres.
type queueGateway struct {
	*server
	url      string
	accepted atomic.Int64 // messages
}

// newQueueGateway starts a gateway that delivers to the four keys k0 to k3, all
// at one destination.
func newQueueGateway(t *testing.T, p *postgres, destination string) *queueGateway {
	t.Helper()
	keys := fmt.Sprintf("key closed {\nurl json://user:%s@127.0.0.1:%d\n}\n", postgresTexts["password"], freePort(t))
	for k := range 4 {
		keys += fmt.Sprintf("key k%d {\nurl %s/%[1]d\n}\n", k, destination)
	}
	return newQueueGatewayWith(t, p, "", keys)
}

// newQueueGatewayWith starts a gateway with keys for all sites, which gateways with
// other addresses share, and with keys of its site.
func newQueueGatewayWith(t *testing.T, p *postgres, all, site string) *queueGateway {
	t.Helper()
	return newQueueGatewayOn(t, p, freePort(t), all, site)
}

// newQueueGatewayOn is newQueueGatewayWith with the port of the gateway.
func newQueueGatewayOn(t *testing.T, p *postgres, port int, all, site string) *queueGateway {
	t.Helper()
	return newQueueGatewayAt(t, fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", p.port), port, all, site)
}

// newQueueGatewayAt is newQueueGatewayOn with a connection string.
func newQueueGatewayAt(t *testing.T, dsn string, port int, all, site string) *queueGateway {
	t.Helper()
	s := startGateway(t, port, fmt.Sprintf(`{
	notify {
		queue postgres %s {
			secret a-secret-for-the-test
		}
		%s
	}
}
http://127.0.0.1:%d {
	notify {
		%s
	}
}
`, dsn, all, port, site))
	return &queueGateway{server: s, url: fmt.Sprintf("http://127.0.0.1:%d", port)}
}

// TestSiteOfGatewaysPostgres checks that gateways which share a database and differ in bind are
// one site: each knows the messages and idempotency keys of the other.
func TestSiteOfGatewaysPostgres(t *testing.T) {
	t.Parallel()
	p, port := newPostgres(t), freePort(t)
	destination := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(destination.Close)
	send := func(host string) (id string) {
		t.Helper()
		r := request(t, http.MethodPost, fmt.Sprintf("http://%s:%d/notify/k", host, port), "body=x")
		r.Header.Set("Idempotency-Key", "same")
		r.Header.Set("Accept", "application/json")
		status, text := ask(t, r)
		var a struct{ ID string }
		if err := json.Unmarshal([]byte(text), &a); status != http.StatusOK || err != nil {
			t.Fatalf("%s: %d %s", host, status, text)
		}
		return a.ID
	}
	ids := map[string]bool{}
	hosts := []string{"127.0.0.1", "127.0.0.2"}
	for _, host := range hosts {
		up := freePort(t) // the other gateway listens at its port already
		startGateway(t, up, fmt.Sprintf(`{
	notify {
		queue postgres postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable {
			secret a-secret-for-the-test
		}
	}
}
http://127.0.0.1:%d {
	respond up
}
:%d {
	bind %s
	notify {
		key k {
			url %s
		}
	}
}
`, p.port, up, port, host, strings.Replace(destination.URL, "http", "json", 1)))
		ids[send(host)] = true
	}
	if len(ids) != 1 {
		t.Errorf("the same request is %d messages", len(ids))
	}
	for id := range ids {
		for _, host := range hosts {
			if status, text := ask(t, request(t, http.MethodGet,
				fmt.Sprintf("http://%s:%d/notify/messages/%s", host, port, id), "")); status != http.StatusOK {
				t.Errorf("%s: %d %s", host, status, text)
			}
		}
	}
}

// postgresTexts are texts that must not be in the database in plain, by what they
// are part of.
var postgresTexts = map[string]string{
	"password": "swordfish-of-the-url", "title": "the mark in the title", "body": "the mark in the body",
	"file": "the mark in the file", "file name": "marked-name.txt", "Idempotency-Key": "the mark in the header",
}

// inDatabase returns which of postgresTexts a dump of the database contains, in
// plain or in the digits in which it writes bytes, and the number of rows of each
// table.
func (p *postgres) inDatabase(t *testing.T) (found []string, rows map[string]int) {
	t.Helper()
	dump, err := p.command("pg_dump", "-h", "127.0.0.1", "-p", strconv.Itoa(p.port), "-U", "postgres", "--inserts", "postgres").Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	for name, text := range postgresTexts {
		if bytes.Contains(dump, []byte(text)) || bytes.Contains(dump, fmt.Appendf(nil, "%x", text)) {
			found = append(found, name)
		}
	}
	rows = map[string]int{}
	for _, insert := range regexp.MustCompile(`(?m)^INSERT INTO \S*?(\w+) VALUES`).FindAllSubmatch(dump, -1) {
		rows[string(insert[1])]++
	}
	return found, rows
}

// TestQueuePostgresInPlain checks that nothing of a message that waits is in the
// database in plain: not its text, its files, nor the URL it goes to.
func TestQueuePostgresInPlain(t *testing.T) {
	t.Parallel()
	p := newPostgres(t)
	g := newQueueGateway(t, p, "json://127.0.0.1:1")
	body, err := json.Marshal(map[string]any{
		"title": postgresTexts["title"], "body": postgresTexts["body"],
		"attach": map[string]string{
			"base64":   base64.StdEncoding.EncodeToString([]byte(postgresTexts["file"])),
			"filename": postgresTexts["file name"],
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := request(t, http.MethodPost, g.url+"/notify/closed", string(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", postgresTexts["Idempotency-Key"])
	if status, text := ask(t, r); status != http.StatusOK || !strings.Contains(text, "Queued") {
		t.Fatalf("%d %s", status, text)
	}
	found, rows := p.inDatabase(t)
	if len(found) > 0 {
		t.Errorf("not encrypted: %v", found)
	}
	for _, table := range []string{"notify_queue_messages", "notify_queue_jobs", "notify_queue_files"} {
		if rows[table] == 0 {
			t.Errorf("%s is empty: %v", table, rows)
		}
	}
}

// post sends a message, which is stored before the answer if async is true.
func (g *queueGateway) post(title string, async bool) (status int, header http.Header, text string, err error) {
	return g.postAs(title, async, "")
}

// postAs is post with an idempotency key, unless that is "".
func (g *queueGateway) postAs(title string, async bool, idempotency string) (status int, header http.Header, text string, err error) {
	n, _ := strconv.Atoi(title)
	r, err := http.NewRequest(http.MethodPost, fmt.Sprintf("%s/notify/k%d", g.url, n%4),
		strings.NewReader(fmt.Sprintf(`{"title": %q, "body": "x"}`, title)))
	if err != nil {
		return 0, nil, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	if async {
		r.Header.Set("Prefer", "respond-async")
	}
	if idempotency != "" {
		r.Header.Set("Idempotency-Key", idempotency)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(b), err
}

// TestQueuePostgres sends messages to three gateways that share a database. One of
// them is killed. Then the database ends at once: the other gateways answer 503,
// still send what need not be stored, and accept messages again by themselves when
// the database is back. Each message that any of them has accepted arrives.
func TestQueuePostgres(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a lease of a minute")
	}
	t.Parallel()
	p, a := newPostgres(t), newArrivals(t)
	var gateways []*queueGateway
	for range 3 {
		gateways = append(gateways, newQueueGateway(t, p, a.url))
	}
	const clients = 4 // of each gateway
	var next, refused atomic.Int64
	var titles sync.Map // of the accepted messages
	var stop atomic.Bool
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop.Store(true)
	down := make([]atomic.Bool, len(gateways)) // the gateway was killed
	for i, g := range gateways {
		for range clients {
			wg.Go(func() {
				for !stop.Load() && !t.Failed() {
					n := next.Add(1)
					title := strconv.FormatInt(n, 10)
					status, header, text, err := g.post(title, n%3 != 0)
					switch {
					case err != nil && down[i].Load():
						return
					case err != nil:
						t.Errorf("message %s: %v", title, err)
					case status == http.StatusOK || status == http.StatusAccepted:
						titles.Store(title, true)
						g.accepted.Add(1)
					case status == http.StatusServiceUnavailable && header.Get("Retry-After") != "" && !strings.Contains(text, "127.0.0.1"):
						refused.Add(1)
						time.Sleep(20 * time.Millisecond)
					default:
						t.Errorf("message %s: %d %s", title, status, text)
					}
				}
			})
		}
	}
	// more waits until each gateway has accepted more messages.
	more := func(what string, gateways []*queueGateway) {
		t.Helper()
		for _, g := range gateways {
			want := g.accepted.Load() + 300
			eventually(t, "a gateway accepts messages "+what, func() bool { return t.Failed() || g.accepted.Load() >= want })
		}
	}
	more("at first", gateways)
	down[2].Store(true)
	gateways[2].stop()
	gateways = gateways[:2]
	more("after another gateway was killed", gateways)

	before := refused.Load()
	p.stop(syscall.SIGQUIT)
	for i, g := range gateways {
		eventually(t, "a gateway answers 503", func() bool {
			status, header, _, err := g.post("0", true)
			return err == nil && status == http.StatusServiceUnavailable && header.Get("Retry-After") != ""
		})
		title := fmt.Sprint(1_000_000 + i)
		if status, _, text, err := g.post(title, false); err != nil || status != http.StatusOK {
			t.Errorf("a message that need not be stored: %d %s %v", status, text, err)
		} else {
			titles.Store(title, true)
		}
	}
	eventually(t, "clients read 503", func() bool { return t.Failed() || refused.Load() > before })
	p.start(t)
	more("after PostgreSQL is back", gateways)
	stop.Store(true)
	wg.Wait()

	// What the killed gateway had claimed is free when its lease has ended.
	lost, again := a.lost(&titles)
	for deadline := time.Now().Add(3 * time.Minute); lost > 0 && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		lost, again = a.lost(&titles)
	}
	accepted := 0
	titles.Range(func(_, _ any) bool { accepted++; return true })
	t.Logf("%d messages accepted, %d lost, %d delivered twice, %d refused", accepted, lost, again, refused.Load())
	if lost > 0 {
		t.Errorf("%d messages are lost", lost)
	}
	// The gateway that was killed had four deliveries to each of the four URLs
	// under way. What the others could not settle while PostgreSQL was down, they
	// settle afterwards.
	if again > 4*4 {
		t.Errorf("%d messages were delivered twice", again)
	}
}
