package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// postgresPage is docs/postgres.md, and a server with what its commands make. The user notify
// needs the password.
type postgresPage struct {
	text   string
	server *postgres
	secret string // the file
}

func newPostgresPage(t *testing.T) *postgresPage {
	t.Helper()
	text, err := os.ReadFile("../../docs/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	p := &postgresPage{string(text), newPostgres(t), filepath.Join(t.TempDir(), "secret")}
	access := filepath.Join(p.server.dir, "pg_hba.conf")
	lines, err := os.ReadFile(access)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(access, append([]byte("host all notify 127.0.0.1/32 scram-sha-256\n"), lines...), 0o600); err != nil {
		t.Fatal(err)
	}
	p.run(t, "psql -c 'SELECT pg_reload_conf()'")
	commands := regexp.MustCompile(`(?m)^ *(?:sudo -u postgres|openssl) .*$`).FindAllString(p.text, -1)
	if len(commands) != 3 {
		t.Fatalf("the page has other commands than expected: %q", commands)
	}
	for _, c := range commands {
		p.run(t, strings.NewReplacer("sudo -u postgres ", "", "/run/secrets/queue", p.secret).Replace(c))
	}
	return p
}

// run runs a command with the server as the default, and returns what it prints.
func (p *postgresPage) run(t *testing.T, command string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", command)
	cmd.Env = append(os.Environ(), "PATH="+p.server.bin+":"+os.Getenv("PATH"),
		"PGHOST=127.0.0.1", fmt.Sprint("PGPORT=", p.server.port), "PGUSER=postgres")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return strings.TrimSpace(string(out))
}

// caddyfile returns the Caddyfile of the page, with a site at a port.
func (p *postgresPage) caddyfile(t *testing.T, port int) string {
	t.Helper()
	_, text, ok := strings.Cut(p.text, "```caddyfile\n")
	text, _, _ = strings.Cut(text, "```")
	if !ok {
		t.Fatal("the page has no Caddyfile")
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "   {\n", "{\n"), "/run/secrets/queue", p.secret)
	return text + fmt.Sprintf("http://127.0.0.1:%d {\n\tnotify\n}\n", port)
}

// address returns the connection string of the page for another port, user or database.
func (p *postgresPage) address(t *testing.T, port int) string {
	t.Helper()
	url := regexp.MustCompile("DATABASE_URL=(postgres://[^`]*)`").FindStringSubmatch(p.text)
	if url == nil {
		t.Fatal("the page has no address")
	}
	return strings.NewReplacer("@db1/", fmt.Sprintf("@127.0.0.1:%d/", port), "verify-full", "disable").Replace(url[1])
}

// TestSetUpPostgres runs the commands of docs/postgres.md and its Caddyfile: two gateways share a
// queue, so that one delivers what the other one has accepted when that is killed. The
// statements that the page asks the server are valid.
func TestSetUpPostgres(t *testing.T) {
	p := newPostgresPage(t)
	var up atomic.Bool
	var refused, arrived atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			refused.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		arrived.Add(1)
	}))
	t.Cleanup(s.Close)
	t.Setenv("DATABASE_URL", p.address(t, p.server.port))
	t.Setenv("DISCORD_URL", "json"+strings.TrimPrefix(s.URL, "http"))
	var gateways []*server
	var urls []string
	for range 2 {
		port := freePort(t)
		gateways = append(gateways, startGateway(t, port, p.caddyfile(t, port)))
		urls = append(urls, fmt.Sprintf("http://127.0.0.1:%d/notify", port))
		eventually(t, "the gateway can store", func() bool {
			status, text := ask(t, request(t, http.MethodGet, urls[len(urls)-1]+"/status", ""))
			return status == http.StatusOK && strings.TrimSpace(text) == "OK"
		})
	}
	r := request(t, http.MethodPost, urls[0]+"/ops", "body=x")
	r.Header.Set("Prefer", "respond-async")
	if status, text := ask(t, r); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, text)
	}
	eventually(t, "it has been tried, and is not being sent, which would wait for a minute", func() bool {
		return refused.Load() > 0 && p.run(t, "psql -tA -c 'SELECT count(*) FROM notify_queue_jobs WHERE status = 2' notify") == "0"
	})
	statements := regexp.MustCompile("(?m)^\\| `(SELECT [^`]*)`").FindAllStringSubmatch(p.text, -1)
	if len(statements) < 5 {
		t.Fatalf("the page has %d statements", len(statements))
	}
	for _, m := range statements {
		p.run(t, `psql -tA -c "`+m[1]+`" notify`)
	}
	gateways[0].stop()
	up.Store(true)
	eventually(t, "the other gateway delivers it", func() bool { return arrived.Load() == 1 })
}

// TestMistakesPostgres makes the mistakes of the table of docs/postgres.md. The program prints what
// the page quotes, and never the password.
func TestMistakesPostgres(t *testing.T) {
	p := newPostgresPage(t)
	standby := findPostgres(t)
	p.run(t, "psql -c 'CREATE ROLE stranger LOGIN'")
	if out, err := standby.command("pg_basebackup", "-D", standby.dir, "-R", "-h", "127.0.0.1", "-p",
		fmt.Sprint(p.server.port), "-U", "postgres", "-c", "fast", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("pg_basebackup: %v\n%s", err, out)
	}
	standby.start(t)
	t.Cleanup(func() { standby.stop(syscall.SIGQUIT) })

	address := p.address(t, p.server.port)
	alone := p.address(t, standby.port)
	caddy, err := buildGateway()
	if err != nil {
		t.Fatal(err)
	}
	// says starts a gateway and waits until it prints a text.
	says := func(t *testing.T, dsn, secret, want string) {
		t.Helper()
		if !strings.Contains(p.text, "`"+want+"`") {
			t.Errorf("the page does not quote %q", want)
		}
		file := writeFile(t, "secret", secret)
		config := writeFile(t, "Caddyfile", "{\nadmin off\npersist_config off\n"+
			strings.TrimPrefix(strings.ReplaceAll(p.caddyfile(t, freePort(t)), p.secret, file), "{\n"))
		out := filepath.Join(t.TempDir(), "out")
		w, err := os.Create(out)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		cmd := exec.Command(caddy, "run", "--config", config, "--adapter", "caddyfile")
		home := t.TempDir()
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home,
			"XDG_CONFIG_HOME="+home, "DATABASE_URL="+dsn, "DISCORD_URL=json://127.0.0.1:1")
		cmd.Stdout, cmd.Stderr = w, w
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
		var text string
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("it prints\n%s", text)
			}
		})
		eventually(t, "the program prints "+want, func() bool {
			b, _ := os.ReadFile(out)
			text = string(b)
			return strings.Contains(strings.ReplaceAll(text, `\"`, `"`), want)
		})
		for _, hidden := range []string{"change-me", "hunter2"} {
			if strings.Contains(text, hidden) {
				t.Errorf("the program prints the password %s", hidden)
			}
		}
	}
	secret, err := os.ReadFile(p.secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, old, new, want string }{
		{"port", fmt.Sprint(p.server.port), "port", "invalid port"},
		{"password", "change-me", "hunter2", "password authentication failed for user"},
		{"database", "/notify?", "/other?", `database "other" does not exist`},
		// Such a name is looked up at no name server.
		{"host", "127.0.0.1", "db1..example.com", "no such host"},
		{"nobody listens", fmt.Sprint(p.server.port), fmt.Sprint(freePort(t)), "connection refused"},
		{"a standby alone", address, alone, "in a read-only transaction"},
		{"a standby alone, to be written", address, alone + "&target_session_attrs=read-write", "read only connection"},
		{"starts all the same", address, alone, "the queue's database is not reachable; messages are refused until it is"},
		{"another user", "notify:change-me", "stranger", "permission denied for schema public"},
	} {
		t.Run(tt.name, func(t *testing.T) { says(t, strings.Replace(address, tt.old, tt.new, 1), string(secret), tt.want) })
	}
	t.Run("secret", func(t *testing.T) {
		t.Setenv("DATABASE_URL", address)
		t.Setenv("DISCORD_URL", "json://127.0.0.1:1")
		port := freePort(t)
		startGateway(t, port, p.caddyfile(t, port))
		eventually(t, "the gateway makes the tables", func() bool {
			return p.run(t, `psql -tA -c "SELECT to_regclass('notify_queue_version') IS NOT NULL" notify`) == "t"
		})
		says(t, address, "another secret of the gateway", "the tables of the queue were created with another secret")
	})
}
