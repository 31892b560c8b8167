package integration

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// newPgbouncer starts a pooler in a mode in front of a server, with a number of sessions,
// and returns its port.
func newPgbouncer(t *testing.T, p *postgres, mode string, sessions int) int {
	t.Helper()
	port, dir := freePort(t), t.TempDir()
	name, users := filepath.Join(dir, "pgbouncer.ini"), filepath.Join(dir, "users")
	config := fmt.Sprintf(`[databases]
postgres = host=127.0.0.1 port=%d dbname=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = %s
pool_mode = %s
default_pool_size = %d
`, p.port, port, users, mode, sessions)
	for file, text := range map[string]string{name: config, users: "\"postgres\" \"\"\n"} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{name}
	if os.Getuid() == 0 { // it does not run as root
		for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		args = append([]string{"-u", "postgres"}, args...)
	}
	start(t, port, program(t, "pgbouncer", "pgbouncer"), args...)
	return port
}

// TestQueuePostgresPooler sends messages to two gateways that share a database behind
// pgbouncer in transaction mode, where each statement may be in another of a few sessions,
// and in session mode. Each message arrives once, and the gateways tell that they are not
// notified where that is so.
func TestQueuePostgresPooler(t *testing.T) {
	t.Parallel()
	const unheard = "the pooler in front of the queue's database does not pass notifications on"
	for _, tt := range []struct {
		mode     string
		sessions int
		heard    bool
	}{{"transaction", 4, false}, {"session", 60, true}} {
		t.Run(tt.mode, func(t *testing.T) {
			t.Parallel()
			p, a := newPostgres(t), newArrivals(t)
			behind := *p
			behind.port = newPgbouncer(t, p, tt.mode, tt.sessions)
			gateways := []*queueGateway{newQueueGateway(t, &behind, a.url), newQueueGateway(t, &behind, a.url)}
			var titles sync.Map
			var wg sync.WaitGroup
			for i, g := range gateways {
				for client := range 4 {
					wg.Go(func() {
						for n := range 100 {
							title := strconv.Itoa(1000*(4*i+client) + n)
							status, _, text, err := g.post(title, true)
							if err != nil || status != http.StatusAccepted && status != http.StatusOK {
								t.Errorf("message %s: %d %s %v", title, status, text, err)
								return
							}
							titles.Store(title, true)
						}
					})
				}
			}
			wg.Wait()
			within(t, time.Minute, "all messages have arrived", func() bool { lost, _ := a.lost(&titles); return lost == 0 })
			if _, again := a.lost(&titles); again > 0 {
				t.Errorf("%d arrivals were of messages that had arrived", again)
			}
			listens := func() bool {
				out, err := p.command("psql", "-h", "127.0.0.1", "-p", strconv.Itoa(p.port), "-U", "postgres", "-tAc",
					"SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN notify_queue'").Output()
				return err == nil && strings.TrimSpace(string(out)) == strconv.Itoa(len(gateways))
			}
			if tt.heard {
				eventually(t, "the gateways listen", listens)
			}
			for _, g := range gateways {
				if !tt.heard {
					eventually(t, "a gateway tells that it is not notified", func() bool { return strings.Contains(g.out.String(), unheard) })
				}
				text := g.out.String()
				if tt.heard && strings.Contains(text, unheard) {
					t.Error("a gateway is not notified in session mode")
				}
				if strings.Contains(text, `"level":"error"`) || strings.Contains(text, "ERROR") || strings.Contains(text, "SQLSTATE") {
					t.Errorf("a gateway has logged an error:\n%s", text)
				}
			}
		})
	}
}
