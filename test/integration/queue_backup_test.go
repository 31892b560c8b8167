package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestBackUpPostgres runs the commands of docs/backup.md for a queue in PostgreSQL: what waited arrives
// from a database that was emptied and restored.
func TestBackUpPostgres(t *testing.T) {
	p := newPostgres(t)
	var mu sync.Mutex
	var up atomic.Bool
	var refused atomic.Int32
	got := map[string]bool{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !up.Load() {
			refused.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		got[r.URL.Path] = true
	}))
	t.Cleanup(s.Close)
	var keys strings.Builder
	for k := range 4 {
		fmt.Fprintf(&keys, "key k%d {\nurl json%s/%[1]d\n}\n", k, strings.TrimPrefix(s.URL, "http"))
	}
	port := freePort(t)
	g := newQueueGatewayOn(t, p, port, "", keys.String())
	for k := range 4 {
		if status, _, text, err := g.post(fmt.Sprint(k), true); err != nil || status != http.StatusAccepted {
			t.Fatalf("message %d: %d %s %v", k, status, text, err)
		}
	}
	database := fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", p.port)
	run := func(words ...string) {
		t.Helper()
		if out, err := p.command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
		}
	}
	ofPage := func(program string) []string {
		t.Helper()
		page, err := os.ReadFile("../../docs/backup.md")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(page)) {
			if strings.HasPrefix(line, program+" ") {
				return strings.Fields(strings.NewReplacer("/backup/", filepath.Dir(p.dir)+"/", `"$DATABASE_URL"`, database, "'", "").Replace(line))
			}
		}
		t.Fatalf("docs/backup.md has no command %s", program)
		return nil
	}
	eventually(t, "all have been tried, and nothing is being sent, which would wait for a minute after the dump", func() bool {
		tried := refused.Load() >= 4
		out, err := p.command("psql", "-d", database, "-tA", "-c", "SELECT count(*) FROM notify_queue_jobs WHERE status = 2").Output()
		return err == nil && strings.TrimSpace(string(out)) == "0" && tried
	})
	run(ofPage("pg_dump")...)
	g.stop()
	run("psql", "-d", database, "-c", "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
	run(ofPage("pg_restore")...)
	up.Store(true)
	newQueueGatewayOn(t, p, port, "", keys.String())
	eventually(t, "what waited arrives", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(got) == 4
	})
}
